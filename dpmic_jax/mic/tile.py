"""The tile program: a tile of pairs -> all the information in their characteristic matrices.

One function for every device: static shapes, no host callback, integers in and out. It
counts in either of two ways, which give the same integers.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Integer

from dpmic_jax.mic import counting
from dpmic_jax.mic.binning import Partitions, codes
from dpmic_jax.mic.gains import Gains
from dpmic_jax.mic.grids import Bucket, Grid
from dpmic_jax.mic.optimise import best_information


class Layout(NamedTuple):
    """How a plan is laid out on a device; it changes the speed, never the result."""

    buckets: tuple[Bucket, ...]
    lanes: int  # about how many (grid, pair, orientation) run side by side

    @property
    def grids(self) -> tuple[Grid, ...]:
        return tuple(grid for bucket in self.buckets for grid in bucket.grids)

    @property
    def masters(self) -> tuple[int, ...]:
        return tuple(sorted({grid.master for grid in self.grids}))


class DirectCodes(NamedTuple):
    """Every column's part in every size, for counting grid by grid."""

    masters: Integer[Array, "sizes columns n"]
    rows: Integer[Array, "grids columns n"]


class FineCodes(NamedTuple):
    """Every column's bin in the two finest partitions, for counting once."""

    masters: Integer[Array, "columns n"]
    rows: Integer[Array, "columns n"]


class FineEdges(NamedTuple):
    """The fine bin at which each part of each size begins."""

    masters: Integer[Array, "sizes columns edges"]
    rows: Integer[Array, "grids columns row_edges"]


class RefinedCodes(NamedTuple):
    """What counting on the common refinement takes."""

    codes: FineCodes
    edges: FineEdges
    empty: Integer[Array, "columns rows"]  # the refinement, for its shape

    @property
    def counts_shape(self) -> tuple[int, int, int]:
        """Of one pair's counts in both orientations."""
        columns, rows = self.empty.shape
        return columns, 2, rows


# Codes of every size are kept up to here; beyond it only the finest ones are.
DIRECT_BYTES = 2**29

Codes = DirectCodes | RefinedCodes
Information = Integer[Array, "entries 2 pairs"]
EdgeCounts = Integer[Array, "edges rows lanes"]


def direct_codes(masters: Partitions, rows: Partitions) -> DirectCodes:
    """Make ready for counting grid by grid."""
    beyond = masters.edges.shape[2]
    # device_put, not asarray, which compiles a program for every shape.
    return DirectCodes(
        jax.device_put(counting.pad_records(codes(masters), beyond)),
        jax.device_put(counting.pad_records(codes(rows), 0)),
    )


def refined_codes(masters: Partitions, rows: Partitions) -> RefinedCodes:
    """Make ready for counting on the common refinement."""
    beyond = 1 + max(map(len, masters.cuts))
    return RefinedCodes(
        FineCodes(
            jax.device_put(counting.pad_records(masters.fine, beyond)),
            jax.device_put(counting.pad_records(rows.fine, 0)),
        ),
        FineEdges(
            jax.device_put(np.moveaxis(masters.edges, 1, 0)),
            jax.device_put(np.moveaxis(rows.edges, 1, 0)),
        ),
        jnp.zeros((beyond + 1, 1 + max(map(len, rows.cuts))), jnp.int32),
    )


def cheaper_codes(masters: Partitions, rows: Partitions) -> Codes:
    """Whichever way counts faster, by nanoseconds a record and a cell measured on one core."""
    (columns, grids, _), n = rows.edges.shape, rows.fine.shape[1]
    cells = (1 + max(map(len, masters.cuts))) * (1 + max(map(len, rows.cuts)))
    codes_fit = n * columns * (grids + masters.edges.shape[1]) <= DIRECT_BYTES
    if codes_fit and 1.5 * n * grids < 2 * n + 6 * cells:
        return direct_codes(masters, rows)
    return refined_codes(masters, rows)


def score(
    columns: Codes,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    gains: Gains,
    *,
    layout: Layout,
) -> Information:
    """The tile program: score pairs of columns.

    Args:
      columns: codes of all columns, for either way of counting.
      first, second: which two columns each pair has.
      gains: how phi is evaluated.
      layout: the plan, in buckets; static.

    Returns:
      Information in units of 2^-26 bits: for each grid in turn, for 2, 3, ..., `parts`
      parts; for `first` merged and `second` fixed, then the other way round.
    """
    if isinstance(columns, DirectCodes):
        return _score_directly(columns, first, second, gains, layout)
    empty = jnp.zeros(columns.counts_shape, jnp.int32)

    def read_off(pair):
        one, other = pair
        total = _add(empty, columns.codes, one, other)
        return _read_off(total, columns.edges, one, other, layout)

    # A pair at a time: its counts stay in cache while its records stream past.
    grids = lax.map(read_off, (first, second))
    return score_grids(grids, gains, layout=layout)


def _score_directly(
    columns: DirectCodes,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    gains: Gains,
    layout: Layout,
) -> Information:
    merged, fixed = jnp.concatenate([first, second]), jnp.concatenate([second, first])

    def counts(bucket, masters, rows):
        def of_grids(at):
            return counting.direct(
                _pick(columns.masters, masters[at], merged),
                _pick(columns.rows, rows[at], fixed),
                (bucket.master, bucket.rows),
            )

        return of_grids

    return _score_buckets(counts, len(first), gains, layout)


def _pick(
    table: Integer[Array, "sizes columns n"],
    sizes: Integer[Array, " grids"],
    columns: Integer[Array, " both"],
) -> Integer[Array, "lanes n"]:
    """Codes of one size and column a lane."""
    picked = table.at[sizes[:, None], columns[None]].get(mode="promise_in_bounds")
    return picked.reshape(-1, table.shape[2])


def add_records(
    total: Integer[Array, "pairs columns 2 rows"],
    columns: FineCodes,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
) -> Integer[Array, "pairs columns 2 rows"]:
    """Add a batch of records to the counts on the common refinement of all grids."""
    return lax.map(lambda pair: _add(pair[0], columns, pair[1], pair[2]), (total, first, second))


def score_counts(
    total: Integer[Array, "pairs columns 2 rows"],
    edges: FineEdges,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    gains: Gains,
    *,
    layout: Layout,
) -> Information:
    """Score pairs off the counts that `add_records` has made, in one batch or in many."""
    grids = lax.map(
        lambda pair: _read_off(pair[0], edges, pair[1], pair[2], layout), (total, first, second)
    )
    return score_grids(grids, gains, layout=layout)


def _add(
    total: Integer[Array, "columns 2 rows"],
    columns: FineCodes,
    first: Integer[Array, ""],
    second: Integer[Array, ""],
) -> Integer[Array, "columns 2 rows"]:
    """Count one pair in both orientations."""
    merged, fixed = jnp.stack([first, second]), jnp.stack([second, first])
    return counting.refine(total, columns.masters[merged], columns.rows[fixed])


def _read_off(
    total: Integer[Array, "columns 2 rows"],
    edges: FineEdges,
    first: Integer[Array, ""],
    second: Integer[Array, ""],
    layout: Layout,
) -> list[Integer[Array, "_ _ _ 2"]]:
    """The counts of one pair at the edges of every grid, bucket by bucket."""
    merged, fixed = jnp.stack([first, second]), jnp.stack([second, first])
    before = counting.prefix(total)
    return [
        counting.read_off(
            before,
            edges.masters[masters][:, merged, : bucket.master + 1].swapaxes(1, 2),
            edges.rows[rows][:, fixed, : bucket.rows + 1].swapaxes(1, 2),
        )
        for bucket, masters, rows in _spots(layout)
    ]


def score_grids(
    grids: list[Integer[Array, "pairs _ _ _ 2"]], gains: Gains, *, layout: Layout
) -> Information:
    """Score pairs off their counts at the edges of every grid, bucket by bucket."""
    pairs = len(grids[0])
    by_bucket = {
        bucket: jnp.moveaxis(grid, (4, 0), (3, 4))
        for bucket, grid in zip(layout.buckets, grids, strict=True)
    }

    def counts(bucket, masters, rows):
        def of_grids(at):
            picked = jnp.moveaxis(by_bucket[bucket][at], 0, 2)
            return picked.reshape(*picked.shape[:2], -1)

        return of_grids

    return _score_buckets(counts, pairs, gains, layout)


def _spots(layout: Layout) -> Iterator[tuple[Bucket, Array, Array]]:
    """Each bucket, with where the tables of codes or edges have its masters and rows."""
    place = {size: index for index, size in enumerate(layout.masters)}
    begin = 0
    for bucket in layout.buckets:
        masters = np.array([place[grid.master] for grid in bucket.grids], np.int32)
        rows = np.arange(begin, begin + len(bucket.grids), dtype=np.int32)
        begin += len(bucket.grids)
        yield bucket, jnp.asarray(masters), jnp.asarray(rows)


def _score_buckets(
    counts: Callable[[Bucket, Array, Array], Callable[[Array], EdgeCounts]],
    pairs: int,
    gains: Gains,
    layout: Layout,
) -> Information:
    """Run every bucket, as many grids side by side as the lanes allow."""
    entries = []
    for bucket, masters, rows in _spots(layout):
        of_grids = counts(bucket, masters, rows)
        size, parts = len(bucket.grids), bucket.parts
        together = min(size, max(1, layout.lanes // (2 * pairs)))
        turns = -(-size // together)
        at = np.minimum(np.arange(turns * together), size - 1)  # the last fills up

        def score(at, bucket=bucket, of_grids=of_grids):
            return best_information(of_grids(at), bucket.parts, gains, blocks=bucket.blocks)

        found = lax.map(score, jnp.asarray(at.reshape(turns, together), jnp.int32))
        found = found.reshape(turns, parts - 1, together, 2 * pairs)
        found = jnp.moveaxis(found, 2, 1).reshape(turns * together, parts - 1, 2 * pairs)
        entries += [found[i, : grid.parts - 1] for i, grid in enumerate(bucket.grids)]
    return jnp.concatenate(entries).reshape(-1, 2, pairs)
