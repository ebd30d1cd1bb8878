"""Bin codes of pairs -> integer counts of every cell of every master grid.

Two ways, which give the same integers. Direct: one scatter-add for each grid. Refined: one
scatter-add on the common refinement of all grids, then prefix sums, off which every grid is read.
The first is cheaper for few records, the second for many.

Tables are filled up with records of code 0 everywhere, so that tables of many lengths share a
program. These count for nothing: they add 0, or are taken off cell (0, 0) again.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Integer


def direct(
    total: Integer[Array, " cells"],
    columns: Integer[Array, "*lanes n"],
    rows: Integer[Array, "*lanes n"],
    record: Integer[Array, " n"],
    first: Integer[Array, "*lanes"],
    height: int,
) -> Integer[Array, " cells"]:
    """Add records to the counts of a grid, whose first cell in `total` is given for each lane.

    `record` has 1 for a record and 0 for what only pads.
    """
    cell = _cell(columns, rows, height) + first.astype(jnp.uint32)[..., None]
    return total.at[cell].add(jnp.broadcast_to(record, cell.shape), mode="promise_in_bounds")


def refine(
    total: Integer[Array, "columns lanes rows"],
    lane: int,
    columns: Integer[Array, " n"],
    rows: Integer[Array, " n"],
) -> Integer[Array, "columns lanes rows"]:
    """Add a block of records to the counts of one lane on the finest grid."""
    _, lanes, height = total.shape
    cell = _cell(columns, rows, lanes * height) + np.uint32(lane * height)
    return total.reshape(-1).at[cell].add(1, mode="promise_in_bounds").reshape(total.shape)


def _cell(
    columns: Integer[Array, "*lanes n"], rows: Integer[Array, "*lanes n"], height: int
) -> Integer[Array, "*lanes n"]:
    """Where a record counts: unsigned, as an index that may be negative takes as long again.

    With so few operations a record, XLA does not split them over threads, which are busy.
    """
    return columns.astype(jnp.uint32) * np.uint32(height) + rows.astype(jnp.uint32)


def prefix(
    total: Integer[Array, "columns lanes rows"],
) -> Integer[Array, "rows_plus_1 columns_plus_1 lanes"]:
    """How many records lie before each fine column and each fine row, and before the ends."""
    by_row = jnp.moveaxis(_before(jnp.pad(total, ((0, 1), (0, 0), (0, 0)))), 2, 0)
    return _before(jnp.pad(by_row, ((0, 1), (0, 0), (0, 0))))


def read_off(
    before: Integer[Array, "rows_plus_1 columns_plus_1 lanes"],
    column_edges: Integer[Array, "grids lanes edges"],
    row_edges: Integer[Array, "grids lanes row_edges"],
) -> Integer[Array, "grids lanes master rows"]:
    """Counts on coarser grids, off the prefix sums on the finest one."""
    lane = jnp.arange(before.shape[2], dtype=jnp.int32)[None, :, None, None]
    corner = before.at[row_edges[:, :, None], column_edges[..., None], lane]
    corner = corner.get(mode="promise_in_bounds")
    by_column = corner[..., 1:, :] - corner[..., :-1, :]
    return by_column[..., 1:] - by_column[..., :-1]


def _before(counts: Integer[Array, "length *rest"]) -> Integer[Array, "length *rest"]:
    """Exclusive prefix sums along the first axis."""
    start = jnp.zeros(counts.shape[1:], counts.dtype)
    return lax.scan(lambda total, part: (total + part, total), start, counts)[1]
