"""Tiles of a screen: from records to noised values or encrypted noisy scores, in any process.

The content of a tile depends on the plan, the run's key and the records only, not on the size of
tiles or batches, the device or the process.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from dpmic_jax.data.limits import Limits
from dpmic_jax.data.source import Source
from dpmic_jax.dp.noise.lattice import Lattice, LatticeCube
from dpmic_jax.dp.rng.keys import AnyKey, event_key, fold
from dpmic_jax.dp.selection import ZCDPTopK
from dpmic_jax.mechanisms.release import PointNoise, add_noise, cube_noise, on_lattice
from dpmic_jax.mic import batch, distance, streaming
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.characteristic import integer_mic, table_weights
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.mic.xlogx import exact_gains
from dpmic_jax.runs.encryption import decrypt, encrypt
from dpmic_jax.screening.noises import Choice, ValueNoise
from dpmic_jax.screening.plan import Plan
from dpmic_jax.screening.queries import Above, Positions

Progress = Callable[[int], object]

_PIECE = 2**16  # records that sources code at a time

# Words folded into the event's key.
_SCORES, _CHOICE, _ORDER, _DISTANCES, _VALUES = 1, 2, 3, 4, 5

# Of each pair a distance and, if it is released, a MICr: points of their lattices.
Points = Int[np.ndarray, "pairs measures"]


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Resources of a screen, on which its result does not depend.

    Attributes:
      memory: bytes for the bin codes of all records or, if these do not fit, for the counts of the
        pairs that are counted in one pass over the table.
      rows: number of records that are read at a time.
      tile: number of pairs that are stored together.
    """

    memory: int = 2**30
    rows: int = 2**18
    tile: int = 256

    def __post_init__(self):
        for name, least in (("memory", 2**20), ("rows", 1), ("tile", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(
                    f"expected {name} to be an integer of at least {least}, got {value!r}"
                )


DEFAULT = Resources()


class Tiling(NamedTuple):
    """How the pairs of a plan are grouped for scoring.

    Attributes:
      size: number of pairs in a tile.
      tiles: number of tiles.
      streams: whether counts are held in memory, instead of bin codes.
      memory: bytes of codes or counts.
    """

    size: int
    tiles: int
    streams: bool
    memory: int

    @property
    def passes(self) -> int:
        """Number of passes over the table after its structure was checked.

        For `TopK` and `Above`, a table that does not fit is read once more for the values.
        """
        return self.tiles if self.streams else 1


def tiling(plan: Plan, bounds: Sequence[Limits], resources: Resources) -> Tiling:
    """Hold the codes of all records if they fit, else the counts of as many pairs as fit."""
    no_records = [np.zeros(0)] * len(bounds)
    cut, pairs = plan.measured.cut(no_records, bounds), len(plan.scored)
    # Twice: once as they are read, and once on the device.
    codes = 2 * plan.n * streaming.code_bytes(cut)
    if codes <= resources.memory:
        size = min(resources.tile, pairs)
        return Tiling(size, -(-pairs // size), False, codes)
    each = 2 * streaming.count_bytes(cut)
    size = max(1, min(resources.memory // each, pairs))
    return Tiling(size, -(-pairs // size), True, size * each)


class TileScorer:
    """Scores pairs of a table. No other class holds exact values.

    Args:
      source: the table.
      plan: what is measured, of which pairs.
      resources: the memory for codes or counts, and how many pairs are stored together.
      devices: where to run; by default on the first device of JAX's default backend.
      together: whether many tiles are asked for at a time, so that a GPU scores as many pairs
        together as it has memory for, however few are stored together.
    """

    def __init__(
        self,
        source: Source,
        plan: Plan,
        resources: Resources,
        devices: Sequence[Device] = (),
        *,
        together: bool = False,
    ):
        self._source, self._plan, self._resources, self._devices = source, plan, resources, devices
        self._tiling = tiling(plan, source.bounds, resources)
        self._gains, self._scorer = exact_gains(plan.n) if plan.statistic else None, None
        if not self._tiling.streams:
            # Sources make pieces of this size; only their codes, which are smaller, are joined.
            cut = streaming.joined(self._cuts(min(_PIECE, resources.rows)), plan.n)
            self._scorer = batch.scorer(
                cut,
                self._gains,
                devices=devices,
                pairs=len(plan.scored),
                tile=self._tiling.size,
                together=together,
            )

    def _cuts(self, rows: int) -> Iterator[BinnedTable]:
        for columns in self._source.batches(rows):
            yield self._plan.measured.cut(columns, self._source.bounds)

    def _points(self, pairs: Positions, lattices: Sequence[Lattice]) -> Iterator[Points]:
        """Exact values, each on its lattice, in groups of consecutive pairs."""
        n, start = self._plan.n, 0
        grids, tables = self._plan.measured.grids(n), self._plan.measured.tables
        found = (
            self._scorer(pairs)
            if self._scorer
            else streaming.score_batches(
                partial(self._cuts, self._resources.rows),
                pairs,
                self._gains,
                n=n,
                rows=self._resources.rows,
                group=self._tiling.size,
                devices=self._devices,
            )
        )
        for information in found:
            points = [distance_points(lattices[0], information, n)]
            if len(lattices) > 1:
                some = pairs[start : start + information.shape[2]]
                weights = table_weights(self._source.bounds, some) if tables else None
                points.append(on_lattice(lattices[1], integer_mic(grids, information, weights)))
            start += information.shape[2]
            yield np.stack(points, axis=1)

    def tiles(
        self, numbers: Sequence[int], size: int, key: AnyKey, progress: Progress
    ) -> Iterator[Points]:
        """The contents of tiles in order: noised values, or scores if pairs are selected.

        Scores are noisy, but for the exponential mechanism, which selects by exact ones. Both are
        encrypted wherever they leave the process.

        Args:
          numbers: numbers of the tiles.
          size: number of pairs in a tile.
          key: the key of the run.
          progress: called with the number of pairs that were scored since the last call.
        """
        plan, pairs = self._plan, self._plan.scored
        tiles = [pairs[number * size : (number + 1) * size] for number in numbers]
        noises = _scores(plan, plan.choice, key) if plan.choice else _values(plan, key)
        together, lengths = np.concatenate(tiles), [len(tile) for tile in tiles]
        points = self._points(together, [lattice for _, lattice, _ in noises])
        adding = [_adding(noise, key, together, tiles) for noise, _, key in noises]
        for values in _regrouped(points, lengths, progress):
            yield np.stack(
                [next(each)(own) for each, own in zip(adding, values.T, strict=True)], axis=1
            )

    def noised(self, chosen: Positions, key: AnyKey) -> Points:
        """The noised values of selected pairs."""
        noises = _values(self._plan, key)
        if not len(chosen):
            return np.zeros((0, len(noises)), np.int32)
        lattices = [lattice for _, lattice, _ in noises]
        return _noised(noises, np.concatenate(list(self._points(chosen, lattices))), chosen)


def distance_points(
    lattice: Lattice, information: Int[np.ndarray, "entries 2 pairs"], n: int
) -> Int[np.ndarray, " pairs"]:
    """Distances from independence, rounded down to the lattice: exact, so not private."""
    found = information[-1].max(axis=0).astype(np.int64)
    # Below 2^61: D is at most 2 G n < 2^31, and the top of a lattice 2^30.
    return found * lattice.top // (2 * distance.steps_of(n) * n)


def packed(plan: Plan, number: int, tile: Points, key: AnyKey) -> bytes:
    """A tile in bytes. Scores are encrypted, because only the selection is private."""
    content = tile.astype("<i4").tobytes()  # the same bytes on every platform
    if plan.choice is None:
        return content
    return encrypt(content, key=key, purpose=_purpose(plan, number))


def unpacked(plan: Plan, number: int, content: bytes, key: AnyKey) -> Points:
    """The noised values or scores of a tile."""
    if plan.choice is not None:
        content = decrypt(content, key=key, purpose=_purpose(plan, number))
    measures = 2 if plan.values and not plan.choice else 1
    return np.frombuffer(content, "<i4").reshape(-1, measures)


def chosen_pairs(plan: Plan, choice: Choice, points: Points, key: AnyKey) -> Positions:
    """The pairs that are selected by the scores of all candidates."""
    scores, base, pairs = points[:, 0].astype(np.int32), event_key(key, plan.event), plan.pairs
    order = np.arange(len(pairs))
    if isinstance(plan.ask, Above):
        # A random order: in that of the table the search would often end before the last columns.
        order = np.asarray(jax.random.permutation(_folded(base, _ORDER), len(pairs)))
    if isinstance(choice.selector, ZCDPTopK):
        found = choice.selector.select(jnp.asarray(scores), key=_folded(base, _CHOICE))
    else:
        found = choice.selector.choose(jnp.asarray(scores[order]), key=_folded(base, _CHOICE))
    # In the order of the candidates: the order in which they were found is not released.
    return pairs[np.sort(order[np.asarray(found)])]


def largest_pairs(plan: Plan, points: Points) -> Int[np.ndarray, " kept"]:
    """Which pairs of a released table a `TopK` or an `Above` asks for: post-processing."""
    distances = points[:, 0]
    order = np.argsort(-distances, kind="stable")[: plan.released]
    if isinstance(plan.ask, Above):
        order = order[distances[order] >= plan.distances.lattice.top * plan.workload.threshold]
    return np.sort(order)


# A noise, the lattice of what it is added to, and the key from which it is drawn.
_Noise = tuple[PointNoise | LatticeCube | None, Lattice, Key[Array, ""]]


def _values(plan: Plan, key: AnyKey) -> list[_Noise]:
    """The noise on distances, and that on MICr if it is released."""
    base = event_key(key, plan.event)
    keys = _folded(base, _DISTANCES), _folded(base, _VALUES)
    found: list[ValueNoise | None] = [plan.distances, plan.values]
    return [(noise, noise.lattice, own) for noise, own in zip(found, keys, strict=True) if noise]


def _scores(plan: Plan, choice: Choice, key: AnyKey) -> list[_Noise]:
    """The noise on the scores by which pairs are selected."""
    noise = None if isinstance(choice.selector, ZCDPTopK) else choice.selector
    return [(noise, choice.lattice, _folded(event_key(key, plan.event), _SCORES))]


def _adding(
    noise: PointNoise | LatticeCube | None,
    key: Key[Array, ""],
    together: Positions,
    tiles: Sequence[Positions],
) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """For every tile in turn what adds its noise; cube noise is drawn for many tiles at once."""
    if noise is None:
        yield from itertools.repeat(lambda points: points, len(tiles))
    elif isinstance(noise, LatticeCube):
        drawn = cube_noise(noise, together, key)
        for some in _regrouped(drawn, [len(tile) for tile in tiles], lambda _: None):
            yield partial(noise.release, drawn=some)
    else:
        for tile in tiles:
            yield partial(add_noise, noise, pairs=tile, key=key)


def _noised(noises: Sequence[_Noise], points: Points, pairs: Positions) -> Points:
    drawn = [
        own if noise is None else add_noise(noise, own, pairs, key)
        for (noise, _, key), own in zip(noises, points.T, strict=True)
    ]
    return np.stack(drawn, axis=1)


def _folded(key: Key[Array, ""], word: int) -> Key[Array, ""]:
    return fold(key, jnp.asarray([word], jnp.uint32))


def _purpose(plan: Plan, number: int) -> str:
    return f"{plan.event.label} tile {number}"


def _regrouped(
    arrays: Iterator[Points], lengths: Sequence[int], progress: Progress
) -> Iterator[Points]:
    """Concatenate arrays of any lengths, and split them into the given lengths."""
    waiting = None
    for length in lengths:
        while waiting is None or len(waiting) < length:
            array = next(arrays)
            progress(len(array))
            waiting = array if waiting is None else np.concatenate([waiting, array])
        yield waiting[:length]
        waiting = waiting[length:]
