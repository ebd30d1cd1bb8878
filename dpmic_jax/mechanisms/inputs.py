"""What a mechanism is given -> columns of floats, in two steps: what is public, then the values.

A mechanism looks at the structure first: names, how many records, types of containers. What may be
refused is refused there. The values are looked at once the release is charged, and none of them
is refused: how a record is coded depends on the public bounds and on that record alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float

from dpmic_jax.data.limits import Column, NumberLimits
from dpmic_jax.data.scales import middle
from dpmic_jax.data.schema import Number
from dpmic_jax.data.source import memory
from dpmic_jax.data.source.coding import holding
from dpmic_jax.data.source.memory import Held as Container
from dpmic_jax.data.table import FEWEST_RECORDS, Table

_NUMBERS = Number(0, 1)  # what containers have to hold, whatever the bounds


@dataclass(frozen=True, eq=False)
class Held:
    """Columns of one length, of which no cell has been looked at.

    Attributes:
      names: of the columns.
      containers: what holds them.
      source: the data frame they came from, if it was one.
    """

    names: tuple[str, ...]
    containers: tuple[Container, ...]
    source: Any = None

    @property
    def n(self) -> int:
        """The number of records, which is public."""
        return len(self.containers[0])

    def coded(self, limits: Sequence[NumberLimits] | None) -> Table:
        """The columns as floats.

        What is no number counts as the middle of the bounds, on their scale. Without bounds it is
        -inf, the lowest rank.
        """
        columns = [
            memory.floats_in(container, _NUMBERS, name)
            for container, name in zip(self.containers, self.names, strict=True)
        ]
        if limits is None:
            filled = [_filled(column, -np.inf) for column in columns]
        else:
            filled = [
                _filled(holding(column, ends[0], ends[1]), middle(ends))
                for column, ends in zip(columns, limits, strict=True)
            ]
        return Table(self.names, tuple(filled), self.source)


def held_column(x: Any) -> Held:
    """One column, called x."""
    return _checked(Held(("x",), (_one_dimension(x, "x"),)), "x")


def held_pair(x: Any, y: Any) -> Held:
    """Two columns of the same records, called x and y."""
    pair = Held(("x", "y"), (_one_dimension(x, "x"), _one_dimension(y, "y")))
    lengths = [len(container) for container in pair.containers]
    if lengths[0] != lengths[1]:
        raise ValueError(
            "expected x and y to have the same number of records, "
            f"got {lengths[0]} and {lengths[1]}"
        )
    return _checked(pair, "x")


def held_table(X: Any) -> Held:
    """The columns of an (n, m) array, a list of records, a `Table` or a data frame."""
    if isinstance(X, Table):
        return _checked(Held(X.names, X.columns, X.source), "X")
    if isinstance(X, Mapping):
        return _checked(Held(tuple(X), tuple(map(memory.held_column, X.values()))), "X")
    if (frame := _frame(X)) is not None:
        names = tuple(frame.columns)
        return _checked(Held(names, tuple(map(frame.get_column, names)), X), "X")
    columns = memory.records(X)
    if columns is None:
        raise ValueError(
            "expected X to be a data frame or an array of records by columns, "
            f"got {type(X).__name__}; for one pair use release"
        )
    return _checked(Held(tuple(f"x{index}" for index in range(len(columns))), columns), "X")


def _frame(X: Any) -> nw.DataFrame | None:
    """A data frame whose names are distinct; nothing if it is no data frame."""
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        names = frame.columns if isinstance(frame, nw.DataFrame) else ()
        if len(set(names)) == len(names):
            return frame if isinstance(frame, nw.DataFrame) else None
    except ValueError:  # so says narwhals itself of some frames
        pass
    raise ValueError("expected X to have distinct column names; rename one of those of one name")


def _filled(values: Float[np.ndarray, " n"], filler: float) -> Column:
    return np.where(np.isnan(values), values.dtype.type(filler), values)


def _one_dimension(values: Any, argument: str) -> Container:
    try:
        return memory.held_column(values)
    except ValueError:
        pass
    raise ValueError(f"expected {argument} to have one dimension; for many pairs use release_batch")


def _checked(given: Held, argument: str) -> Held:
    if not given.containers:
        raise ValueError(f"expected {argument} to have columns, got none")
    if len({len(container) for container in given.containers}) > 1:
        raise ValueError(f"expected all columns of {argument} to have the same number of records")
    if given.n < FEWEST_RECORDS:
        raise ValueError(
            f"expected {argument} to have at least {FEWEST_RECORDS} records, got {given.n}"
        )
    for container, name in zip(given.containers, given.names, strict=True):
        memory.check_type(container, _NUMBERS, name)
    return given
