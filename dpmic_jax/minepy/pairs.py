"""pstats and cstats: MIC and TIC of all pairs of a table, or of two tables."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.mic.characteristic import Characteristic
from dpmic_jax.mic.gains import UNIT, gains_for
from dpmic_jax.mic.grids import buckets
from dpmic_jax.minepy import one_pair, tile
from dpmic_jax.minepy.mine import numbers, same_length
from dpmic_jax.minepy.partitions import Columns, cut_columns
from dpmic_jax.minepy.settings import Plan, Settings, characteristic

# Fewer pairs than this are scored one by one: compiling a program would take longer.
FEW = 48
# The layout is that for as many pairs at least: tight, at the price of some compiling.
MANY = 10_000
# Pairs side by side on a CPU: as many, within limits, as its cache has room for ranks times lanes.
FEWEST, MOST, CACHED = 32, 256, 3 * 2**19
# Pairs side by side on anything larger.
LARGER_TILE = 512


class PairStatistics(NamedTuple):
    """MIC and normalised TIC of many pairs: unpacks as minepy's `mic, tic`."""

    mic: Float[np.ndarray, "..."]
    tic: Float[np.ndarray, "..."]


def pstats(X: Any, alpha: float = 0.6, c: float = 15, est: str = "mic_approx") -> PairStatistics:
    """MIC and normalised TIC of all pairs of variables.

    Args:
      X: variables by records: one variable a row.
      alpha, c, est: as for `MINE`.

    Returns:
      Two condensed matrices, the upper triangle by rows: the pair i < j of m variables is at
      `m * i - i * (i + 1) // 2 - i - 1 + j`.
    """
    settings = Settings(alpha, c, est)
    values = variables(X, "X")
    first, second = np.triu_indices(len(values), 1)
    return _statistics(values, np.stack([first, second], axis=1), settings)


def cstats(
    X: Any, Y: Any, alpha: float = 0.6, c: float = 15, est: str = "mic_approx"
) -> PairStatistics:
    """MIC and normalised TIC of each variable of X with each one of Y.

    Args:
      X, Y: variables by records, with the same records.
      alpha, c, est: as for `MINE`.

    Returns:
      Two matrices, a row for each variable of X and a column for each one of Y.
    """
    settings = Settings(alpha, c, est)
    left, right = same_length(variables(X, "X"), variables(Y, "Y"))
    shape = len(left), len(right)
    first, second = np.indices(shape).reshape(2, -1)
    pairs = np.stack([first, len(left) + second], axis=1)
    found = _statistics(np.concatenate([left, right]), pairs, settings)
    return PairStatistics(found.mic.reshape(shape), found.tic.reshape(shape))


def variables(values: Any, argument: str) -> Float[np.ndarray, "columns n"]:
    found = numbers(values, argument)
    if found.ndim != 2 or not found.size:
        raise ValueError(
            f"expected {argument} to be an array of variables by records, one variable a row, "
            f"got shape {found.shape}"
        )
    return found


def _statistics(
    values: Float[np.ndarray, "columns n"], pairs: Int[np.ndarray, "pairs 2"], settings: Settings
) -> PairStatistics:
    plan = settings.plan(values.shape[1])
    if not plan.grids or not len(pairs) or values.shape[1] == 1:
        return PairStatistics(np.zeros(len(pairs)), np.zeros(len(pairs)))
    columns = cut_columns(values, plan.grids)
    found = list((_one_by_one if len(pairs) < FEW else _together)(columns, pairs, plan))
    return PairStatistics(
        np.concatenate([matrix.mic for matrix in found]),
        np.concatenate([matrix.tic_normalised for matrix in found]),
    )


def _one_by_one(
    columns: Columns, pairs: Int[np.ndarray, "pairs 2"], plan: Plan
) -> Iterator[Characteristic]:
    for x, y in pairs.tolist():
        found = one_pair.score(columns, x, y, plan)
        yield Characteristic(found.values[None], found.entries)


def _together(
    columns: Columns, pairs: Int[np.ndarray, "pairs 2"], plan: Plan
) -> Iterator[Characteristic]:
    """Score tiles of pairs, on every core of a CPU."""
    n, backend = columns.order.shape[1], jax.default_backend()
    # XLA uses little more than one core for a tile, so a CPU takes a tile a core at a time.
    threads = (os.cpu_count() or 1) if backend == "cpu" else 2
    width = tile_width(len(pairs), 2 * n * len(plan.grids), threads, backend)
    tied = bool((columns.ties.end - columns.ties.start > 1).any())
    layout = tile.Layout(buckets(plan.grids, max(len(pairs), MANY)), columns.rows.dtype, tied)
    table, gains = tile.put(columns), gains_for(n)
    score = tile.program(layout, n, len(table.order), len(table.rows), width, backend)

    def run(begin: int) -> Characteristic:
        wanted = pairs[begin : begin + width]
        # The last tile is filled up by repeating its pairs.
        first, second = np.resize(wanted, (width, 2)).astype(np.int32).T
        bits = np.asarray(score(table, first, second, gains))[..., : len(wanted)] / UNIT
        return characteristic(plan, bits, columns.obtained[wanted[:, ::-1].T].transpose(2, 0, 1))

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(run, range(0, len(pairs), width))


def tile_width(pairs: int, held: int, threads: int, backend: str) -> int:
    """How many pairs a tile has, of which each holds so many ranks times lanes."""
    most = min(max(CACHED // held // 8 * 8, FEWEST), MOST) if backend == "cpu" else LARGER_TILE
    # As many tiles as keep all threads busy to the end, and their sizes rounded up, so that few
    # programs serve all; less where `tile.score` would take many turns.
    tiles = -(-pairs // (most * threads)) * threads if backend == "cpu" else -(-pairs // most)
    width = -(-pairs // (8 * tiles)) * 8
    return max(1, min(width, 8 * tile.MOST_HELD // held))
