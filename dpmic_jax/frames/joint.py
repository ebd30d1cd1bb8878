"""What several columns together tell about one. Not private."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpmic_jax.data.frame import TakenColumn, frame_of
from dpmic_jax.data.table import FEWEST_RECORDS
from dpmic_jax.frames.rows import column_at
from dpmic_jax.mic.grids import Cells, cells, power
from dpmic_jax.mic.joint import best_product


class JointMIC(NamedTuple):
    """What several columns together tell about one.

    Attributes:
      value: from 0 to 1.
      parts: into how many parts the best product cuts each column; 1 if the column is not used.
      target_parts: parts of the target.
      records: complete records of all columns, which are those that were used.
    """

    value: float
    parts: dict[str, int]
    target_parts: int
    records: int


def joint_mic(
    X: Any, target: str, *, using: Sequence[str], B: Cells = power(0.6), c: float = 15
) -> JointMIC:
    """How much several columns together tell about one, by the best product of partitions.

    It is not the MIC of the literature, which is of two columns (docs/beyond_pairs.md). It finds
    dependences that no pair shows, as of y on the parity of two columns.
    More columns reach larger values by chance: compare it with its value for a shuffled target.
    All products are tried, so pass few columns, and for many records a smaller B.

    Args:
      X: a table, as for `pairwise`.
      target: the name of the column to tell about.
      using: the names of the columns that tell.
      B: the most cells of the product times parts of the target, or a rule of n.
      c: how many times finer than floor(sqrt B) the master partition of the target is.
    """
    frame = frame_of(X, "X")
    if not using or isinstance(using, str) or target in using or len({*using}) < len(using):
        raise ValueError(
            f"expected using to be names of other columns than {target!r}, each once, got {using!r}"
        )
    places = [column_at(frame, name, "using") for name in using]
    taken = [frame.columns[i] for i in (*places, column_at(frame, target, "target"))]
    complete = ~np.logical_or.reduce([column.missing for column in taken])
    n = int(complete.sum())
    if n < FEWEST_RECORDS:
        raise ValueError(f"expected at least {FEWEST_RECORDS} complete records, got {n}")
    (*columns, y), (*bins, y_bins) = zip(*(_known(each, complete) for each in taken), strict=True)
    found = best_product(columns, bins, y, y_bins, B=cells(B, n), c=c)
    return JointMIC(found.value, dict(zip(using, found.parts, strict=True)), found.y_parts, n)


def _known(column: TakenColumn, complete: np.ndarray) -> tuple[np.ndarray, int]:
    """Its complete records, and how many categories of a nominal column they have."""
    values = column.values[complete]
    if not column.nominal:
        return values, 0
    occur, codes = np.unique(values, return_inverse=True)
    return codes, len(occur) if len(occur) > 2 else 0
