"""Score many data sets on many grids, with or without noise on the counts.

The engine compiles a program for one plan and one n. Tuning tries hundreds of plans, so here a
grid is scored on its own: padded to one of a few shapes, whose programs serve every plan, n and
amount of noise. A statistic is then the largest score among the grids of its plan.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Float32, Int, Int32

from dpmic_jax.mic.gains import EXPONENT, UNIT, xlog2x
from dpmic_jax.mic.grids import Grid
from dpmic_jax.mic.optimise import best_information

LANES = 64  # (data set, grid, orientation) scored side by side
TOGETHER = 8  # times so many in one call
_BLOCKS = (64, 256, 1024, 4096, 32_768)  # records counted in one call
_RATIO = 1.2  # between padded sizes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MassGains:
    """phi in float32 as `FastGains` has it, for any number of records: n is no constant here.

    Attributes:
      shrink: a power of two that brings counts to at most 1.
      grow: brings a gain back, and divides it by n.
    """

    shrink: Any
    grow: Any
    least = 8

    def prepare(self, counts: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
        return counts.astype(jnp.float32) * self.shrink

    def phi(self, counts: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return xlog2x(counts)

    def units(self, gain: Float[Array, "*shape"]) -> Int[Array, "*shape"]:
        return (gain * self.grow).astype(jnp.int32)


class Shape(NamedTuple):
    """What grids are padded to; empty rows and columns change no score."""

    master: int
    rows: int
    parts: int

    @property
    def cells(self) -> int:
        """How many counts a lane has: a power of two."""
        return 1 << (self.master * self.rows - 1).bit_length()


class Lanes(NamedTuple):
    """Which data set, grid and orientation each lane has."""

    data: Int32[np.ndarray, " lanes"]
    flipped: Int32[np.ndarray, " lanes"]  # 1 where y is merged and x is fixed
    master: Int32[np.ndarray, " lanes"]
    rows: Int32[np.ndarray, " lanes"]
    parts: Int32[np.ndarray, " lanes"]


# Of each lane's grid, row by row of the padded shape, and zeros up to a power of two: programs
# that only count or add noise serve many shapes.
Counts = Int32[Array, "lanes cells"]
# Given the counts, their lanes, the length of a padded row, and a number of their own.
Noise = Callable[[Counts, Lanes, int, int], Counts]


def _rung(size: int, ratio: float) -> int:
    """The next of 2, 3, 4, ... with at least `ratio` from one to the next beyond 4."""
    rung = 2
    while rung < size:
        rung = max(rung + 1, round(rung * ratio)) if rung >= 4 else rung + 1
    return rung


@lru_cache(maxsize=4096)
def shape_of(grid: Grid) -> Shape:
    """The padded shape that scores a grid: coarse, since compiling takes longer than scoring."""
    # More parts cost little.
    parts = _rung(grid.parts, 2)
    return Shape(max(_rung(grid.master, 2**0.5), parts), _rung(grid.rows, 2**0.5), parts)


def by_shape(grids: Iterable[Grid]) -> dict[Shape, list[Grid]]:
    """Grids that one program serves."""
    groups: dict[Shape, list[Grid]] = {}
    for grid in sorted(set(grids)):
        groups.setdefault(shape_of(grid), []).append(grid)
    return groups


def lanes_of(grids: Sequence[Grid], sets: int) -> Lanes:
    """Every grid in both orientations for each data set, the data set varying fastest."""
    grid, flipped, data = np.indices((len(grids), 2, sets)).reshape(3, -1)
    rows, master, parts = np.array(grids, np.int32).reshape(-1, 3)[grid].T
    return Lanes(data.astype(np.int32), flipped.astype(np.int32), master, rows, parts)


def best_entries(
    x: Float32[np.ndarray, "sets n"],
    y: Float32[np.ndarray, "sets n"],
    grids: Sequence[Grid],
    *,
    noise: Noise | None = None,
    done: Callable[[int], object] = lambda lanes: None,
) -> dict[Grid, Float32[np.ndarray, " sets"]]:
    """The largest entry that each grid gives in either orientation, of data on the unit square.

    Args:
      x, y: data sets of n records each.
      grids: what to score.
      noise: added to counts before they are scored; each grid is then divided by its own
        number of records, and one that has none tells nothing.
      done: told of every few lanes that are finished.
    """
    sets = len(x)
    found: dict[Grid, np.ndarray] = {}
    begin = 0  # lanes done with other shapes
    for shape, some in by_shape(grids).items():
        lanes = lanes_of(some, sets)
        values = np.empty(len(lanes.data), np.float32)

        def run(part: slice, lanes=lanes, shape=shape, values=values, begin=begin) -> int:
            chosen = _filled(Lanes(*(column[part] for column in lanes)))
            counts = count(x, y, chosen, shape)
            if noise is not None:
                counts = noise(counts, chosen, shape.rows, begin + part.start)
            values[part] = np.asarray(score(counts, chosen, shape))[: part.stop - part.start]
            return part.stop - part.start

        for finished in in_threads(run, len(values)):
            done(finished)
        scores = values.reshape(len(some), 2, sets).max(axis=1)
        found |= dict(zip(some, scores, strict=True))
        begin += len(values)
    return found


def micr(
    entries: dict[Grid, Float32[np.ndarray, " sets"]], grids: Sequence[Grid]
) -> Float32[np.ndarray, " sets"]:
    """The statistic whose plan is `grids`."""
    return np.max([entries[grid] for grid in grids], axis=0)


def _filled(lanes: Lanes) -> Lanes:
    """Filled up to one width, so that one program serves all."""
    return Lanes(*(np.resize(column, LANES * TOGETHER) for column in lanes))


def in_threads(run: Callable[[slice], int], lanes: int) -> Iterator[int]:
    """One call a core at a time: XLA uses little more than a core for each."""
    width = LANES * TOGETHER
    parts = [slice(start, min(start + width, lanes)) for start in range(0, lanes, width)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(run, parts)


def count(
    x: Float32[np.ndarray, "sets n"], y: Float32[np.ndarray, "sets n"], lanes: Lanes, shape: Shape
) -> Counts:
    """Records in each cell of each lane's grid, a block of records at a time."""
    total = jnp.zeros((len(lanes.data), shape.cells), jnp.int32)
    # The data sets of these lanes, and where each lane finds its own among them.
    some, place = np.unique(lanes.data, return_inverse=True)
    for both in _blocks(x, y, some):
        total = _add(total, both, place.astype(np.int32), lanes, np.int32(shape.rows))
    return total


def _blocks(
    x: Float32[np.ndarray, "sets n"],
    y: Float32[np.ndarray, "sets n"],
    some: Int[np.ndarray, " chosen"],
) -> Iterator[Float32[np.ndarray, "2 sets_up block"]]:
    """Records in blocks of a few sizes, filled up with records below 0, which count nowhere."""
    sets, n = len(some), x.shape[1]
    sets_up, start = 1 << (sets - 1).bit_length(), 0
    while start < n:
        block = next((size for size in _BLOCKS if n - start <= size), _BLOCKS[-1])
        both = np.full((2, sets_up, block), -1, np.float32)
        stop = min(n, start + block)
        both[0, :sets, : stop - start], both[1, :sets, : stop - start] = (
            x[some, start:stop],
            y[some, start:stop],
        )
        yield both
        start = stop


@partial(jax.jit, donate_argnums=0)  # a copy for every block would take longer than counting
def _add(total, both, place, lanes, stride):
    merged, fixed = both[lanes.flipped, place], both[1 - lanes.flipped, place]
    lane = jnp.arange(len(merged), dtype=jnp.int32)[:, None]
    cell = _code(merged, lanes.master) * stride + _code(fixed, lanes.rows)
    counted = (merged >= 0).astype(jnp.int32)
    return total.at[lane, cell].add(counted, mode="promise_in_bounds")


def _code(values, sizes):
    sizes = sizes[:, None]
    code = (values * sizes.astype(jnp.float32)).astype(jnp.int32)
    return jnp.clip(code, 0, sizes - 1)


@partial(jax.jit, static_argnames="shape")
def score(counts: Counts, lanes: Lanes, shape: Shape) -> Float32[Array, " lanes"]:
    """The largest normalised entry of each lane."""
    records = counts.sum(axis=1)
    # As few bits as the largest lane needs, found on the device: noise changes how many.
    power = jnp.exp2(jnp.ceil(jnp.log2(jnp.maximum(records.max(), 2).astype(jnp.float32))))
    gains = MassGains(1 / power, jnp.float32(UNIT / EXPONENT))
    entries = jnp.arange(2, shape.parts + 1, dtype=jnp.int32)
    bits = jnp.log2(entries.astype(jnp.float32)) * UNIT

    def best(group):
        counts, wanted, records = group
        table = counts[:, : shape.master * shape.rows].T.reshape(shape.master, shape.rows, -1)
        before = jnp.pad(jnp.cumsum(table, axis=0), ((1, 0), (0, 0), (0, 0)))
        found = best_information(before, shape.parts, gains).astype(jnp.float32)
        found = found * (power / jnp.maximum(records, 1).astype(jnp.float32))[None]
        allowed = entries[:, None] <= wanted[None]
        return jnp.where(allowed, found / bits[:, None], 0).max(axis=0)

    groups = (
        counts.reshape(-1, LANES, counts.shape[1]),
        lanes.parts.reshape(-1, LANES),
        records.reshape(-1, LANES),
    )
    return jnp.clip(lax.map(best, groups).reshape(-1), 0, 1)
