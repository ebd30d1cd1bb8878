"""Tiles of a screen: from records to noised values or sealed noisy scores, in any process.

What a tile holds depends on the plan, the run's key and the records only: not on how large tiles
or row batches are, nor on the device or the process.
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
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.dp.rng.keys import AnyKey, event_key, fold
from dpmic_jax.mechanisms.release import Law, add_noise, on_lattice
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

# Folded into the event's key. Noise on values is drawn from the event's key itself.
_SCORES, _CHOICE, _ORDER = 1, 2, 3


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What the work may take; results do not depend on it.

    Attributes:
      memory: bytes for the bin codes of all records or, where these do not fit, for the counts
        of the pairs that are counted in one pass over the table.
      rows: the most records that are read at a time.
      tile: how many pairs are stored together.
    """

    memory: int = 2**30
    rows: int = 2**18
    tile: int = 256

    def __post_init__(self):
        for name, least in (("memory", 2**20), ("rows", 1), ("tile", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(
                    f"expected {name} to be a whole number from {least} up, got {value!r}"
                )


DEFAULT = Resources()


class Tiling(NamedTuple):
    """How the pairs of a plan are worked off.

    Attributes:
      size: pairs in a tile.
      tiles: how many tiles there are.
      streams: whether counts are held, and not codes.
      memory: bytes of codes or counts.
    """

    size: int
    tiles: int
    streams: bool
    memory: int

    @property
    def passes(self) -> int:
        """How often the table is read, after it has been checked.

        TopK and Above read a table that does not fit once more, for the values.
        """
        return self.tiles if self.streams else 1


def tiling(plan: Plan, bounds: Sequence[Limits], resources: Resources) -> Tiling:
    """Codes in memory if they fit, else as many pairs a pass as have counts that fit."""
    nothing = [np.zeros(0)] * len(bounds)
    cut, pairs = plan.statistic.cut(nothing, bounds), len(plan.pairs)
    # Twice: as they are read, and on the device.
    codes = 2 * plan.n * streaming.code_bytes(cut)
    if codes <= resources.memory:
        size = min(resources.tile, pairs)
        return Tiling(size, -(-pairs // size), False, codes)
    each = 2 * streaming.count_bytes(cut)
    size = max(1, min(resources.memory // each, pairs))
    return Tiling(size, -(-pairs // size), True, size * each)


def table_identity(source: Source) -> list[str | int]:
    """What tells whether a file is still the one that a run began with.

    It is kept in the open, so the file's size is not in it: that depends on the values.
    """
    if source.path is None:
        return ["in memory"]
    return [str(source.path.resolve()), source.path.stat().st_mtime_ns]


class TileScorer:
    """A table made ready to be scored: the only place where exact values are."""

    def __init__(
        self, source: Source, plan: Plan, resources: Resources, devices: Sequence[Device] = ()
    ):
        self._source, self._plan, self._resources, self._devices = source, plan, resources, devices
        self._tiling = tiling(plan, source.bounds, resources)
        self._gains, self._scorer = exact_gains(plan.n), None
        if not self._tiling.streams:
            # As short as sources have them: these are joined only once they are codes.
            cut = streaming.joined(self._cuts(min(_PIECE, resources.rows)), plan.n)
            self._scorer = batch.scorer(
                cut, self._gains, devices=devices, pairs=len(plan.pairs), tile=self._tiling.size
            )

    def _cuts(self, rows: int) -> Iterator[BinnedTable]:
        for columns in self._source.batches(rows):
            yield self._plan.statistic.cut(columns, self._source.bounds)

    def _points(self, pairs: Positions, lattice: Lattice) -> Iterator[Int[np.ndarray, " some"]]:
        """Exact values on a lattice, of the next so many pairs."""
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
        """What tiles hold, one after the other: noised values, or noisy scores.

        Args:
          numbers: of the tiles.
          size: of a tile, in pairs.
          key: the run's.
          progress: told how many pairs more are scored.
        """
        plan, pairs = self._plan, self._plan.pairs
        parts = [pairs[number * size : (number + 1) * size] for number in numbers]
        law, lattice, noise = _first_noise(plan, key)
        points = self._points(np.concatenate(parts), lattice)
        grouped = _regrouped(points, [len(part) for part in parts], progress)
        for part, values in zip(parts, grouped, strict=True):
            yield add_noise(law, values, part, noise)

    def noised(self, chosen: Positions, key: AnyKey) -> Int[np.ndarray, " chosen"]:
        """The values of chosen pairs, with noise."""
        if not len(chosen):
            return np.zeros(0, np.int32)
        law = self._plan.values
        points = np.concatenate(list(self._points(chosen, law.lattice)))
        return add_noise(law, points, chosen, event_key(key, self._plan.event))


def packed(plan: Plan, number: int, tile: Int[np.ndarray, " tile"], key: AnyKey) -> bytes:
    """A tile as it leaves this process. Noisy scores are hidden: only the choice is private."""
    content = tile.astype("<i4").tobytes()
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
    """Which pairs a selecting plan releases, from the noisy scores of all of them."""
    scores, base, pairs = np.asarray(noisy, np.int32), event_key(key, plan.event), plan.pairs
    order = np.arange(len(pairs))
    if isinstance(plan.ask, Above):
        # Not in the table's order: its last columns would never have a chance.
        order = np.asarray(jax.random.permutation(_folded(base, _ORDER), len(pairs)))
    found = choice.selector.choose(jnp.asarray(scores[order]), key=_folded(base, _CHOICE))
    return pairs[np.sort(order[np.asarray(found)])]


def _first_noise(plan: Plan, key: AnyKey) -> tuple[Law, Lattice, Key[Array, ""]]:
    """The noise of a tile, its lattice, and the key it is drawn from."""
    base = event_key(key, plan.event)
    if plan.choice is None:
        return plan.values, plan.values.lattice, base
    return plan.choice.selector, plan.choice.lattice, _folded(base, _SCORES)


def _folded(key: Key[Array, ""], word: int) -> Key[Array, ""]:
    return fold(key, jnp.asarray([word], jnp.uint32))


def _purpose(plan: Plan, number: int) -> str:
    return f"{plan.event.label} tile {number}"


def _regrouped(
    parts: Iterator[Int[np.ndarray, " some"]], lengths: Sequence[int], progress: Progress
) -> Iterator[Int[np.ndarray, " length"]]:
    """What comes in parts that end anywhere, in parts of the given lengths."""
    waiting = np.zeros(0, np.int64)
    for length in lengths:
        while len(waiting) < length:
            part = next(parts)
            progress(len(part))
            waiting = np.concatenate([waiting, part])
        yield waiting[:length]
        waiting = waiting[length:]
