"""Score many data sets on many grids, with or without noise on the counts.

The engine of `mic` groups the grids of one plan. Tuning tries hundreds of plans, so here each grid
is scored on its own, padded to one of a few shapes whose compiled programs serve every plan, n and
amount of noise. A statistic is then the largest score among the grids of its plan.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float32, Int, Int32

from dpmic_jax.mic import backends, batch, kernel, programs
from dpmic_jax.mic.grids import Bucket, Grid
from dpmic_jax.mic.optimise import at_most
from dpmic_jax.mic.padding import rung
from dpmic_jax.mic.xlogx import UNIT, FastGains

LANES = backends.CPU.lanes  # (data set, grid, orientation) triples scored side by side, at most
WIDTH = 8 * LANES  # lanes in one call
BLOCK = 32_768  # the most records counted in one call


class Lanes(NamedTuple):
    """The data set, orientation and grid of each lane."""

    data: Int32[np.ndarray, " lanes"]
    flipped: Int32[np.ndarray, " lanes"]  # 1 where y is merged and x is fixed
    master: Int32[np.ndarray, " lanes"]
    rows: Int32[np.ndarray, " lanes"]
    parts: Int32[np.ndarray, " lanes"]


# The counts of each lane's grid, row by row of the padded shape, then zeros up to a power of two:
# programs that only count or add noise then serve many shapes.
Counts = Int32[Array, "lanes cells"]
# Takes the counts, their lanes, the length of a padded row, and a number unique to the call.
Noise = Callable[[Counts, Lanes, int, int], Counts]


def shape_of(grid: Grid) -> Grid:
    """The padded grid whose compiled program scores `grid`.

    The shapes are few, as compiling takes longer than scoring. Empty rows and columns change no
    score, and more parts cost little.
    """
    parts = rung(grid.parts, 1)
    return Grid(rung(grid.rows, 2), max(rung(grid.master, 2), parts), parts)


def cells_of(shape: Grid) -> int:
    """The number of counts of a lane, padded to a power of two."""
    return rung(shape.master * shape.rows, 1)


def by_shape(grids: Iterable[Grid]) -> dict[Grid, list[Grid]]:
    """Group grids by the shape whose program scores them."""
    groups: dict[Grid, list[Grid]] = {}
    for grid in sorted(set(grids)):
        groups.setdefault(shape_of(grid), []).append(grid)
    return groups


def lanes_of(grids: Sequence[Grid], sets: int) -> Lanes:
    """A lane for each grid, orientation and data set, with the data set varying fastest."""
    grid, flipped, data = np.indices((len(grids), 2, sets)).reshape(3, -1)
    rows, master, parts = np.array([each[:3] for each in grids], np.int32).reshape(-1, 3)[grid].T
    return Lanes(data.astype(np.int32), flipped.astype(np.int32), master, rows, parts)


def best_entries(
    x: Float32[np.ndarray, "sets n"],
    y: Float32[np.ndarray, "sets n"],
    grids: Sequence[Grid],
    *,
    noise: Noise | None = None,
    done: Callable[[int], object] = lambda lanes: None,
) -> dict[Grid, Float32[np.ndarray, " sets"]]:
    """The largest normalised entry of each grid over both orientations, on the unit square.

    Args:
      x, y: data sets of n records each.
      grids: the grids to score.
      noise: added to the counts before they are scored; each grid is then normalised by its own
        noisy number of records, and an empty grid scores 0.
      done: called with the number of lanes that have just been finished.
    """
    sets = len(x)
    found: dict[Grid, np.ndarray] = {}
    begin = 0  # lanes of the shapes before, so that `noise` gets unique numbers
    for shape, some in ready(by_shape(grids)):
        lanes = lanes_of(some, sets)
        values = np.empty(len(lanes.data), np.float32)

        def run(part: slice, lanes=lanes, shape=shape, values=values, begin=begin) -> int:
            chosen = _filled(Lanes(*(column[part] for column in lanes)))
            counts = count(x, y, chosen, shape)
            if noise is not None:
                counts = noise(counts, chosen, shape.rows, begin + part.start)
            values[part] = score(counts, lanes.parts[part], shape)
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
    """MICr of each data set for a plan: the largest entry over its grids."""
    return np.max([entries[grid] for grid in grids], axis=0)


def _filled(lanes: Lanes) -> Lanes:
    """Repeat lanes up to a fixed number, so that one compiled program serves every call."""
    return Lanes(*(np.resize(column, WIDTH) for column in lanes))


def in_threads(run: Callable[[slice], int], lanes: int) -> Iterator[int]:
    """Run slices of lanes in one thread per core, as XLA uses little more than a core for each."""
    parts = [slice(start, min(start + WIDTH, lanes)) for start in range(0, lanes, WIDTH)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(run, parts)


def count(
    x: Float32[np.ndarray, "sets n"], y: Float32[np.ndarray, "sets n"], lanes: Lanes, shape: Grid
) -> Counts:
    """Count the records in each cell of each lane's grid, one block of records at a time."""
    total = jnp.zeros((len(lanes.data), cells_of(shape)), jnp.int32)
    # Only the data sets of these lanes are copied; `place` is where each lane finds its own.
    some, place = np.unique(lanes.data, return_inverse=True)
    for both in _blocks(x, y, some):
        total = _add(total, both, place.astype(np.int32), lanes, np.int32(shape.rows))
    return total


def _blocks(
    x: Float32[np.ndarray, "sets n"],
    y: Float32[np.ndarray, "sets n"],
    some: Int[np.ndarray, " chosen"],
) -> Iterator[Float32[np.ndarray, "2 sets_up block"]]:
    """Blocks of records of a few sizes, padded with records at -1, which are not counted."""
    sets, n = len(some), x.shape[1]
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        both = np.full((2, rung(sets, 1), rung(stop - start, 2)), -1, np.float32)
        both[0, :sets, : stop - start], both[1, :sets, : stop - start] = (
            x[some, start:stop],
            y[some, start:stop],
        )
        yield both


@partial(jax.jit, donate_argnums=0)  # copying the totals would take longer than counting
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


def score(
    counts: Counts, parts: Int32[np.ndarray, " some"], shape: Grid
) -> Float32[np.ndarray, " some"]:
    """The largest normalised entry of each of the first lanes.

    Args:
      counts: of all lanes, padded ones included.
      parts: the largest number of parts of each lane that is wanted.
      shape: the padded grid of all lanes.
    """
    cells = np.asarray(counts)[:, : shape.master * shape.rows]
    records = cells[: len(parts)].sum(axis=1)
    # Gains are in units of the next power of two of the largest lane, since noise changes how
    # many records a lane has; each lane is normalised by its own number in the end.
    power = 1 << (max(2, int(records.max())) - 1).bit_length()
    tables, number = cells.reshape(-1, shape.master, shape.rows), np.array([len(parts)], np.int32)
    gains = FastGains.of(power)
    found = np.asarray(optimiser(shape, len(tables))(tables, number, gains))
    found = np.moveaxis(found, 1, 0).reshape(shape.parts - 1, -1)[:, : len(parts)]
    found = at_most(found, gains)
    sizes = np.arange(2, shape.parts + 1)[:, None]
    entries = np.where(sizes <= parts, found / (np.log2(sizes) * UNIT), 0).max(axis=0)
    return np.clip(entries * (power / np.maximum(records, 1)), 0, 1).astype(np.float32)


def optimiser(shape: Grid, width: int) -> Callable[..., Any]:
    """The engine's compiled program that optimises `width` lanes of one shape."""
    devices = jax.devices()[:1]
    mesh, backend = Mesh(np.array(devices), ("pairs",)), backends.backend(devices[0].platform)
    counts = jax.ShapeDtypeStruct((width, shape.master, shape.rows), np.int32)
    program = kernel.optimising_program(
        Bucket((shape,)),
        LANES if backend.lane_by_lane else width,
        together=not backend.lane_by_lane,
        by_triton=backend.triton,
    )
    return programs.compiled(program, mesh, counts, np.zeros(1, np.int32), FastGains.of(2))


def ready(groups: dict[Grid, list[Grid]]) -> Iterator[tuple[Grid, list[Grid]]]:
    """Yield each shape when its program is compiled; the next programs compile in the meantime."""
    compiled = batch.in_order(partial(optimiser, width=WIDTH), groups, os.cpu_count() or 1)
    for item, _ in zip(groups.items(), compiled, strict=True):
        yield item
