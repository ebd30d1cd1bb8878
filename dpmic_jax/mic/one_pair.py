"""Score one pair at a time, many times: programs of few shapes, which serve every n.

Grids are padded to shapes that plans of many n have in common. Padded rows and columns hold no
records, and empty parts cost nothing, so results are the same. Calls are scored in numpy until that
has taken as long as compiling would; all arithmetic is in integers (`exact_gains`), so both give
the same bits.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Int

from dpmic_jax.mic import kernel, numpy_scorer
from dpmic_jax.mic.grids import Bucket, Grid, compile_seconds, masters
from dpmic_jax.mic.numpy_scorer import part_codes
from dpmic_jax.mic.optimise import at_most
from dpmic_jax.mic.padding import rung
from dpmic_jax.mic.programs import Call, compiled_together, on_devices
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.mic.xlogx import ExactGains, exact_gains

Information = Int[np.ndarray, "entries 2 1"]

_LANES = 16  # side by side: few, as a pair has few lanes of a shape
MOST_CELLS = 2**23  # of all counts of a pair
_spent: dict[tuple["Shape", ...], float] = {}  # seconds in numpy, about


class Shape(NamedTuple):
    """Grids of a plan that share a program.

    Attributes:
      bucket: the padded shape.
      places: positions of the grids in the plan.
    """

    bucket: Bucket
    places: tuple[int, ...]

    @property
    def room(self) -> int:
        """Lanes of a pair: every grid in both orientations, filled up."""
        return _LANES * rung(-(-2 * len(self.places) // _LANES), 3)

    @property
    def cells(self) -> int:
        """Of the counts of a pair."""
        return self.room * self.bucket.master * self.bucket.rows


@lru_cache(maxsize=256)
def shapes(grids: tuple[Grid, ...]) -> tuple[Shape, ...]:
    """The padded shapes of a plan."""
    found: dict[tuple[int, int], list[int]] = {}
    for place, grid in enumerate(grids):
        found.setdefault((rung(grid.master, 4), rung(grid.parts, 3)), []).append(place)
    return tuple(
        Shape(Bucket((Grid(rung(max(grids[i].rows for i in some), 3), master, parts),)), (*some,))
        for (master, parts), some in found.items()
    )


def score_pair(cut: BinnedTable) -> Information | None:
    """Information in the grids of columns 0 and 1, None if the plan is too large for this way."""
    found, gains = shapes(cut.grids), _gains(cut.n)
    if sum(shape.cells for shape in found) > MOST_CELLS:
        return None
    own = tuple(shape._replace(places=()) for shape in found)
    spent = _spent.get(own, 0.0)
    if spent < sum(compile_seconds(shape.bucket) for shape in found):
        _spent[own] = spent + numpy_scorer.seconds(cut.grids, cut.n, 1)
        return next(numpy_scorer.FewScorer(cut, gains)(np.array([[0, 1]])))
    return _compiled(cut, found, gains)


def _compiled(cut: BinnedTable, found: tuple[Shape, ...], gains: ExactGains) -> Information:
    entries: list[Int[np.ndarray, "sizes 2"]] = [np.zeros((0, 2), np.int32)] * len(cut.grids)
    counts = _counts(cut, found)
    device = _on_device(cut.n)
    waiting = [
        program(some, np.array([2 * len(shape.places)], np.int32), device)
        for program, some, shape in zip(_programs(found, cut.n), counts, found, strict=True)
    ]
    for shape, some in zip(found, waiting, strict=True):
        lanes = np.moveaxis(np.asarray(some), 1, 0)
        lanes = at_most(lanes.reshape(len(lanes), -1), gains)
        for at, place in enumerate(shape.places):
            entries[place] = lanes[: cut.grids[place].scores, 2 * at : 2 * at + 2]
    return np.concatenate(entries)[..., None]


def _counts(cut: BinnedTable, found: tuple[Shape, ...]) -> list[Int[np.ndarray, "_ _ _"]]:
    """The counts of every lane: of each grid with column 0 merged, then with column 1 merged."""
    sizes = masters(cut.grids)
    merged = [[part_codes(cut.masters, i, size) for size in range(len(sizes))] for i in (0, 1)]
    counts = []
    for shape in found:
        master, rows = shape.bucket.master, shape.bucket.rows
        own = np.zeros((shape.room, master * rows), np.int32)
        for at, place in enumerate(shape.places):
            size = sizes.index(cut.grids[place].columns)
            for side in (0, 1):
                fixed = part_codes(cut.rows, 1 - side, place)
                cell = merged[side][size] * rows + fixed
                own[2 * at + side] = np.bincount(cell, minlength=master * rows)
        counts.append(own.reshape(-1, master, rows))
    return counts


@lru_cache(maxsize=256)
def _programs(found: tuple[Shape, ...], n: int) -> list[Callable[..., jax.Array]]:
    """The compiled program of each shape. Those of other n are the same, if tables are as long."""
    gains, number = _on_device(n), np.zeros(1, np.int32)

    def call(shape: Shape) -> Call:
        bucket = shape.bucket
        counts = jax.ShapeDtypeStruct((shape.room, bucket.master, bucket.rows), np.int32)
        return kernel.optimising_program(bucket, _LANES), (counts, number, gains)

    return compiled_together(_mesh(), [call(shape) for shape in found])


@lru_cache(maxsize=8)
def _gains(n: int) -> ExactGains:
    return exact_gains(n)


@lru_cache(maxsize=8)
def _on_device(n: int) -> ExactGains:
    return on_devices(_mesh(), _gains(n))


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:1]), ("pairs",))
