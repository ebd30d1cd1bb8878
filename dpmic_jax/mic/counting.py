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
    return _before(_before(total, 0), 2)


def read_off(
    before: Integer[Array, "rows_plus_1 columns_plus_1 lanes"],
    column_edges: Integer[Array, "grids lanes edges"],
    row_edges: Integer[Array, "grids lanes row_edges"],
) -> Integer[Array, "grids lanes master rows"]:
    """Counts on coarser grids, off the prefix sums on the finest one."""
    _, columns, lanes = before.shape
    # One index, and unsigned: three, which may be negative, take twice as long.
    lane = jnp.arange(lanes, dtype=jnp.uint32)[None, :, None]
    row = row_edges.astype(jnp.uint32) * np.uint32(columns * lanes) + lane
    column = column_edges.astype(jnp.uint32) * np.uint32(lanes)
    spot = row[:, :, None] + column[..., None]
    corner = before.reshape(-1).at[spot].get(mode="promise_in_bounds")
    by_column = corner[..., 1:, :] - corner[..., :-1, :]
    return by_column[..., 1:] - by_column[..., :-1]


def _before(counts: Integer[Array, "*shape"], axis: int) -> Integer[Array, "length_plus_1 *rest"]:
    """Prefix sums along an axis, which comes first, from 0 to the sum of all."""

    def add(place, carry):
        before, total = carry
        total = total + lax.dynamic_index_in_dim(counts, place, axis, keepdims=False)
        return lax.dynamic_update_index_in_dim(before, total, place + 1, 0), total

    length, rest = counts.shape[axis], counts.shape[:axis] + counts.shape[axis + 1 :]
    empty = jnp.zeros((length + 1, *rest), counts.dtype)
    return lax.fori_loop(0, length, add, (empty, empty[0]))[0]
