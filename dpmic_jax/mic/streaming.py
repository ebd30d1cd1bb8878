"""Score pairs of a table that is read in row batches, whether or not it fits in memory.

Counts add up over batches, so the records need not be held at once: either their bin codes are
(a few bytes a value), or the counts of a group of pairs are, while the records stream past.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Int, Integer

from dpmic_jax.mic.gains import Gains
from dpmic_jax.mic.grids import buckets
from dpmic_jax.mic.settings import Cut
from dpmic_jax.mic.sweep import LANES, MORE_LANES, Device, split_over
from dpmic_jax.mic.tile import FineCodes, FineEdges, Layout, add_records, score_counts


def joined(cuts: Iterable[Cut], n: int) -> Cut:
    """One cut of all n records, from cuts of their batches in order."""
    whole, done = None, 0
    for cut in cuts:
        if whole is None:
            whole = Cut(
                cut.grids,
                *(
                    part._replace(fine=np.empty((len(part.fine), n), part.fine.dtype))
                    for part in (cut.masters, cut.rows)
                ),
            )
        for to, part in ((whole.masters, cut.masters), (whole.rows, cut.rows)):
            to.fine[:, done : done + cut.n] = part.fine
        done += cut.n
    if whole is None or done != n:
        raise ValueError(f"expected batches of {n} records in all, got {done}")
    return whole


def code_bytes(cut: Cut) -> int:
    """What the codes of one record take."""
    return sum(len(part.fine) * part.fine.itemsize for part in (cut.masters, cut.rows))


def count_bytes(cut: Cut) -> int:
    """What the counts of one pair take on the common refinement."""
    return 4 * math.prod(refined_shape(cut))


def score_batches(
    batches: Callable[[], Iterable[Cut]],
    pairs: Int[np.ndarray, "pairs 2"],
    gains: Gains,
    *,
    rows: int,
    group: int,
    devices: Sequence[Device] = (),
) -> Iterator[Int[np.ndarray, "entries 2 group"]]:
    """Score pairs, a group at a time, reading the table once a group.

    Args:
      batches: starts a pass over the table, cut batch by batch.
      pairs: the two columns of each pair.
      gains: how phi is evaluated.
      rows: the most records that a batch has.
      group: how many pairs are counted at a time: what memory has to hold.
      devices: where to run; tiles of a group are split evenly over them.

    Yields:
      Information in units of 2^-26 bits (`tile.score`), of the next so many pairs.
    """
    devices = devices or jax.devices()[:1]
    mesh = Mesh(np.array(devices), ("pairs",))
    for start in range(0, len(pairs), group):
        wanted = pairs[start : start + group]
        yield _one_pass(batches(), rows, wanted, len(pairs), gains, mesh)


def _one_pass(
    batches: Iterable[Cut],
    rows: int,
    pairs: Int[np.ndarray, "group 2"],
    all_pairs: int,
    gains: Gains,
    mesh: Mesh,
) -> Int[np.ndarray, "entries 2 group"]:
    platform, split = mesh.devices.flat[0].platform, NamedSharding(mesh, PartitionSpec("pairs"))
    lanes = LANES.get(platform, MORE_LANES)
    width = min(lanes // 2, -(-len(pairs) // mesh.size)) * mesh.size
    # The last tile is filled up by repeating its pairs, so that one program serves all.
    tiles = [
        jax.device_put(tuple(np.resize(part, (width, 2)).astype(np.int32).T), split)
        for part in np.split(pairs, range(width, len(pairs), width))
    ]
    firsts, seconds = zip(*tiles, strict=True)
    totals, edges, layout = [], None, None
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for cut in batches:
            if layout is None:
                empty = np.zeros((width, *refined_shape(cut)), np.int32)
                totals = [jax.device_put(empty, split) for _ in tiles]
                edges = _fine_edges(cut)
                layout = Layout(buckets(cut.grids, all_pairs), lanes)
            add = partial(_counting(mesh), _fine_codes(cut, rows))
            totals = list(pool.map(add, totals, firsts, seconds))
        if layout is None:
            raise ValueError("expected batches of records, got none")
        score = partial(_scoring(layout, mesh), edges, gains)
        found = pool.map(score, totals, firsts, seconds)
        return np.concatenate([*map(np.asarray, found)], axis=2)[..., : len(pairs)]


def refined_shape(cut: Cut) -> tuple[int, int, int]:
    """Of one pair's counts; the last column takes what only pads."""
    columns, rows = (1 + max(map(len, part.cuts)) for part in (cut.masters, cut.rows))
    return columns + 1, 2, rows


def _fine_codes(cut: Cut, rows: int) -> FineCodes:
    """A batch on the device, filled up to `rows` records so that one program serves all."""
    beyond = 1 + max(map(len, cut.masters.cuts))
    return FineCodes(
        jax.device_put(_filled(cut.masters.fine, rows, beyond)),
        jax.device_put(_filled(cut.rows.fine, rows, 0)),
    )


def _filled(
    fine: Integer[np.ndarray, "columns n"], rows: int, fill: int
) -> Integer[np.ndarray, "columns rows"]:
    wide = np.promote_types(fine.dtype, np.min_scalar_type(fill))
    filled = np.full((len(fine), rows), fill, wide)
    filled[:, : fine.shape[1]] = fine
    return filled


def _fine_edges(cut: Cut) -> FineEdges:
    masters, rows = (np.moveaxis(part.edges, 1, 0) for part in (cut.masters, cut.rows))
    return FineEdges(jax.device_put(masters), jax.device_put(rows))


@lru_cache(maxsize=64)
def _counting(mesh: Mesh) -> jax.stages.Wrapped:
    def count(codes, total, first, second):
        return add_records(total, codes, first, second)

    split = PartitionSpec("pairs")
    return split_over(mesh, count, (PartitionSpec(), split, split, split), split)


@lru_cache(maxsize=64)
def _scoring(layout: Layout, mesh: Mesh) -> jax.stages.Wrapped:
    def score(edges, gains, total, first, second):
        return score_counts(total, edges, first, second, gains, layout=layout)

    split, everywhere = PartitionSpec("pairs"), PartitionSpec()
    specs = (everywhere, everywhere, split, split, split)
    return split_over(mesh, score, specs, PartitionSpec(None, None, "pairs"))
