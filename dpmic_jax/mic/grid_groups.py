"""Score plans of many grids on many records, a group of grids at a time.

Counting takes the codes of all columns in all sizes, or the counts on the common refinement of all
grids. Of a full plan (c = 15, every size) for 10^5 records or more, neither fits in memory.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Int

from dpmic_jax.mic import batch
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.coding import DIRECT_BYTES, refined_shape
from dpmic_jax.mic.grids import masters
from dpmic_jax.mic.padding import decade
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.mic.xlogx import Gains

_REFINED_CELLS = 2**26  # of the counts of one pair on the refinement, at most
_PAIRS = 1024  # whose information is held, as it is complete after the last group only


def score_pairs(
    cut: BinnedTable,
    pairs: Int[np.ndarray, "pairs 2"],
    gains: Gains | None,
    *,
    devices: Sequence[Device] = (),
) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
    """Score pairs of columns of a table that has been cut: all grids at once, if they fit."""
    groups = groups_of(cut)
    if len(groups) == 1:
        yield from batch.score_pairs(cut, pairs, gains, devices=devices)
        return
    for begin in range(0, len(pairs), _PAIRS):
        some, found = pairs[begin : begin + _PAIRS], []
        for group in groups:
            tiles = batch.score_pairs(cut.of_grids(group), some, gains, devices=devices)
            found.append(np.concatenate(list(tiles), axis=2))
        yield np.concatenate(found)


def groups_of(cut: BinnedTable) -> list[range]:
    """The positions of grids that are scored together."""
    n, columns, grids = decade(cut.n), len(cut.rows.fine), len(cut.grids)
    refined = np.prod(refined_shape(cut.masters, cut.rows), dtype=float)
    codes = n * columns * (grids + len(masters(cut.grids)))
    if codes <= DIRECT_BYTES or refined <= _REFINED_CELLS:
        return [range(grids)]
    # Codes of two bytes, with each grid's own master partition at worst.
    most = max(1, DIRECT_BYTES // (4 * n * columns))
    return [range(begin, min(begin + most, grids)) for begin in range(0, grids, most)]
