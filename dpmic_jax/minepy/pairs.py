"""pstats and cstats: MIC and TIC of all pairs of a table, or of two tables."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Float, Int

from dpmic_jax.mic import batch
from dpmic_jax.mic.characteristic import Characteristic
from dpmic_jax.mic.kernel import Layout
from dpmic_jax.mic.programs import on_devices
from dpmic_jax.mic.xlogx import UNIT, gains_for
from dpmic_jax.minepy import one_pair, tile
from dpmic_jax.minepy.mine import numbers, same_length
from dpmic_jax.minepy.partitions import Columns, cut_columns
from dpmic_jax.minepy.settings import Plan, Settings, characteristic

# Fewer pairs than this are scored one by one: compiling a program would take longer.
FEW = 48


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
    """An array of variables by records, one variable a row, as minepy takes it."""
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
    n, devices = columns.order.shape[1], jax.devices()[:1]
    mesh, platform = Mesh(np.array(devices), ("pairs",)), devices[0].platform
    layout = tile.layout_for(plan.grids, len(pairs), platform)
    counting = tile.counting_program(layout, tile.blocks_for(layout, columns, platform))
    table, gains = on_devices(mesh, (tile.pack(columns), gains_for(n)))
    none = batch.share_out(pairs[:0], 1, layout.pairs)
    optimise = batch.Optimiser(layout, mesh, gains, [(counting, (table, *none, np.int32(n)))])
    (count,) = optimise.others

    def run(wanted: Int[np.ndarray, "some 2"]) -> Characteristic:
        share = batch.share_out(wanted, 1, layout.pairs)
        bits = optimise(count(table, *share, np.int32(n)), share.number) / UNIT
        return characteristic(plan, bits, columns.obtained[wanted[:, ::-1].T].transpose(2, 0, 1))

    workers = batch.workers(devices)
    yield from batch.in_order(run, tiles(pairs, layout, workers), workers)


def tiles(
    pairs: Int[np.ndarray, "pairs 2"], layout: Layout, workers: int
) -> list[Int[np.ndarray, "some 2"]]:
    """As many tiles as keep all workers busy to the end, and no turn half empty but the last."""
    turn = min(max(layout.lanes // 2, 1), layout.pairs)
    turns = -(-len(pairs) // turn)
    rounds = -(-turns // (layout.pairs // turn * workers))
    shares = np.array_split(np.arange(turns), min(rounds * workers, turns))
    return np.split(pairs, [turn * (share[-1] + 1) for share in shares[:-1]])
