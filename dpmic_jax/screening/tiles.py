"""Tiles of a screen: from records to noised values or encrypted noisy scores, in any process.

The content of a tile depends on the plan, the run's key and the records only, not on the size of
tiles or batches, the device or the process.
"""

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
from dpmic_jax.mechanisms.release import PointNoise, add_noise, on_lattice
from dpmic_jax.mic import batch, streaming
from dpmic_jax.mic.batch import Device
from dpmic_jax.mic.characteristic import integer_mic
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.mic.xlogx import exact_gains
from dpmic_jax.runs.encryption import decrypt, encrypt
from dpmic_jax.screening.planning import Choice, Plan
from dpmic_jax.screening.queries import Above, Positions

Progress = Callable[[int], object]

_PIECE = 2**16  # records that sources code at a time

# Words folded into the event's key. Noise on values is drawn from the event's key itself.
_SCORES, _CHOICE, _ORDER = 1, 2, 3


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
    cut, pairs = plan.statistic.cut(no_records, bounds), len(plan.pairs)
    # Twice: once as they are read, and once on the device.
    codes = 2 * plan.n * streaming.code_bytes(cut)
    if codes <= resources.memory:
        size = min(resources.tile, pairs)
        return Tiling(size, -(-pairs // size), False, codes)
    each = 2 * streaming.count_bytes(cut)
    size = max(1, min(resources.memory // each, pairs))
    return Tiling(size, -(-pairs // size), True, size * each)


def table_identity(source: Source) -> list[str | int]:
    """The path and the time of a table's file, to detect that it has changed since a run began.

    It is stored unencrypted, so it does not contain the size of the file, which depends on values.
    """
    if source.path is None:
        return ["in memory"]
    return [str(source.path.resolve()), source.path.stat().st_mtime_ns]


class TileScorer:
    """Scores pairs of a table. No other class holds exact values."""

    def __init__(
        self, source: Source, plan: Plan, resources: Resources, devices: Sequence[Device] = ()
    ):
        self._source, self._plan, self._resources, self._devices = source, plan, resources, devices
        self._tiling = tiling(plan, source.bounds, resources)
        self._gains, self._scorer = exact_gains(plan.n), None
        if not self._tiling.streams:
            # Sources make pieces of this size; only their codes, which are smaller, are joined.
            cut = streaming.joined(self._cuts(min(_PIECE, resources.rows)), plan.n)
            self._scorer = batch.scorer(
                cut, self._gains, devices=devices, pairs=len(plan.pairs), tile=self._tiling.size
            )

    def _cuts(self, rows: int) -> Iterator[BinnedTable]:
        for columns in self._source.batches(rows):
            yield self._plan.statistic.cut(columns, self._source.bounds)

    def _points(self, pairs: Positions, lattice: Lattice) -> Iterator[Int[np.ndarray, " some"]]:
        """Exact values on a lattice, in groups of consecutive pairs."""
        grids = self._plan.statistic.grids(self._plan.n)
        found = (
            self._scorer(pairs)
            if self._scorer
            else streaming.score_batches(
                partial(self._cuts, self._resources.rows),
                pairs,
                self._gains,
                rows=self._resources.rows,
                group=self._tiling.size,
                devices=self._devices,
            )
        )
        for information in found:
            yield on_lattice(lattice, integer_mic(grids, information))

    def tiles(
        self, numbers: Sequence[int], size: int, key: AnyKey, progress: Progress
    ) -> Iterator[Int[np.ndarray, " tile"]]:
        """The contents of tiles in order: noised values, or noisy scores if pairs are selected.

        Args:
          numbers: numbers of the tiles.
          size: number of pairs in a tile.
          key: the key of the run.
          progress: called with the number of pairs that were scored since the last call.
        """
        plan, pairs = self._plan, self._plan.pairs
        tiles = [pairs[number * size : (number + 1) * size] for number in numbers]
        noise, lattice, noise_key = _first_noise(plan, key)
        points = self._points(np.concatenate(tiles), lattice)
        grouped = _regrouped(points, [len(tile) for tile in tiles], progress)
        for tile, values in zip(tiles, grouped, strict=True):
            yield add_noise(noise, values, tile, noise_key)

    def noised(self, chosen: Positions, key: AnyKey) -> Int[np.ndarray, " chosen"]:
        """The noised values of selected pairs."""
        if not len(chosen):
            return np.zeros(0, np.int32)
        noise = self._plan.values
        points = np.concatenate(list(self._points(chosen, noise.lattice)))
        return add_noise(noise, points, chosen, event_key(key, self._plan.event))


def packed(plan: Plan, number: int, tile: Int[np.ndarray, " tile"], key: AnyKey) -> bytes:
    """A tile in bytes. Noisy scores are encrypted, because only the selection is private."""
    content = tile.astype("<i4").tobytes()  # the same bytes on every platform
    if plan.choice is None:
        return content
    return encrypt(content, key=key, purpose=_purpose(plan, number))


def unpacked(plan: Plan, number: int, content: bytes, key: AnyKey) -> Int[np.ndarray, " tile"]:
    """The noised values or noisy scores of a tile."""
    if plan.choice is not None:
        content = decrypt(content, key=key, purpose=_purpose(plan, number))
    return np.frombuffer(content, "<i4")


def chosen_pairs(
    plan: Plan, choice: Choice, noisy: Int[np.ndarray, " pairs"], key: AnyKey
) -> Positions:
    """The pairs that are selected by the noisy scores of all candidates."""
    scores, base, pairs = np.asarray(noisy, np.int32), event_key(key, plan.event), plan.pairs
    order = np.arange(len(pairs))
    if isinstance(plan.ask, Above):
        # A random order: in that of the table the search would often end before the last columns.
        order = np.asarray(jax.random.permutation(_folded(base, _ORDER), len(pairs)))
    found = choice.selector.choose(jnp.asarray(scores[order]), key=_folded(base, _CHOICE))
    # In the order of the candidates: the order in which they were found is not released.
    return pairs[np.sort(order[np.asarray(found)])]


def _first_noise(
    plan: Plan, key: AnyKey
) -> tuple[PointNoise | LatticeCube, Lattice, Key[Array, ""]]:
    """The noise of a tile, its lattice, and the key from which it is drawn."""
    base = event_key(key, plan.event)
    if plan.choice is None:
        return plan.values, plan.values.lattice, base
    return plan.choice.selector, plan.choice.lattice, _folded(base, _SCORES)


def _folded(key: Key[Array, ""], word: int) -> Key[Array, ""]:
    return fold(key, jnp.asarray([word], jnp.uint32))


def _purpose(plan: Plan, number: int) -> str:
    return f"{plan.event.label} tile {number}"


def _regrouped(
    arrays: Iterator[Int[np.ndarray, " some"]], lengths: Sequence[int], progress: Progress
) -> Iterator[Int[np.ndarray, " length"]]:
    """Concatenate arrays of any lengths, and split them into the given lengths."""
    waiting = np.zeros(0, np.int64)
    for length in lengths:
        while len(waiting) < length:
            array = next(arrays)
            progress(len(array))
            waiting = np.concatenate([waiting, array])
        yield waiting[:length]
        waiting = waiting[length:]
