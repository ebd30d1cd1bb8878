"""Bin codes of many pairs -> integer counts at the edges of every master grid.

Both ways of counting end in the same integers, `edge_counts[t, r, lane]`: how many records
of a lane lie in row r and before column t of its master grid. A lane is one pair of columns
in one orientation on one grid. Lanes come last, so that neighbouring lanes fill the vector
units of a CPU and the threads of a GPU.

Direct: one scatter-add for each grid. Refined: one scatter-add on the common refinement of
all grids, then prefix sums, off which every grid is read. The first is cheaper for few
records, the second for many.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Integer

# Row lengths that are a multiple of this let XLA vectorise what it does along records.
ALIGN = 8


def pad_records(
    codes: Integer[np.ndarray, "*batch n"], beyond: int
) -> Integer[np.ndarray, "*batch m"]:
    """Fill up with records that lie past the last edge, where nothing is counted."""
    short = -codes.shape[-1] % ALIGN
    wide = np.promote_types(codes.dtype, np.min_scalar_type(beyond))
    widths = [(0, 0)] * (codes.ndim - 1) + [(0, short)]
    return np.pad(codes.astype(wide, copy=False), widths, constant_values=beyond)


def direct(
    columns: Integer[Array, "lanes n"], rows: Integer[Array, "lanes n"], shape: tuple[int, int]
) -> Integer[Array, "edges rows lanes"]:
    """Count on one grid a lane.

    Args:
      columns: master codes; at or past `shape[0]` for a record that only pads.
      rows: fixed-axis codes.
      shape: columns and rows of the padded master grid.
    """
    lanes = len(columns)
    width, height = shape[0] + 1, shape[1]  # the last column takes what only pads
    column = jnp.minimum(columns.astype(jnp.int32), shape[0])
    lane = jnp.arange(lanes, dtype=jnp.int32)[:, None]
    cell = lane * (width * height) + (column * height + rows.astype(jnp.int32))
    counts = jnp.zeros(lanes * width * height, jnp.int32)
    counts = counts.at[cell].add(1, mode="promise_in_bounds")
    return _before(jnp.moveaxis(counts.reshape(lanes, width, height), 0, -1))


def refine(
    total: Integer[Array, "columns lanes rows"],
    columns: Integer[Array, "lanes n"],
    rows: Integer[Array, "lanes n"],
) -> Integer[Array, "columns lanes rows"]:
    """Add a batch of records to the counts on the finest grid of a few lanes.

    The last column of `total` takes the records that only pad.
    """
    _, lanes, height = total.shape
    flat = total.reshape(-1)
    for lane in range(lanes):
        line = columns[lane].astype(jnp.int32) * lanes + lane
        cell = line * height + rows[lane].astype(jnp.int32)
        flat = flat.at[cell].add(1, mode="promise_in_bounds")
    return flat.reshape(total.shape)


def prefix(
    total: Integer[Array, "columns lanes rows"],
) -> Integer[Array, "rows_plus_1 columns lanes"]:
    """How many records lie before each fine column and each fine row, and before the end."""
    by_row = jnp.moveaxis(_before(total), 2, 0)
    return _before(jnp.pad(by_row, ((0, 1), (0, 0), (0, 0))))


def read_off(
    before: Integer[Array, "rows_plus_1 columns lanes"],
    column_edges: Integer[Array, "grids edges lanes"],
    row_edges: Integer[Array, "grids row_edges lanes"],
) -> Integer[Array, "grids edges rows lanes"]:
    """Counts on coarser grids, off the prefix sums on the finest one."""
    lane = jnp.arange(before.shape[2], dtype=jnp.int32)
    corner = before.at[row_edges[:, None], column_edges[:, :, None], lane[None, None, None]]
    corner = corner.get(mode="promise_in_bounds")
    return corner[:, :, 1:] - corner[:, :, :-1]


def _before(counts: Integer[Array, "length *rest"]) -> Integer[Array, "length *rest"]:
    """Exclusive prefix sums along the first axis."""
    start = jnp.zeros(counts.shape[1:], counts.dtype)
    return lax.scan(lambda total, part: (total + part, total), start, counts)[1]
