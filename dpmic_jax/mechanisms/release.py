"""What a mechanism gives back, and noise for many pairs from one key."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int32, Int64, PRNGKeyArray, Shaped, UInt32

from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.ledger.file import Receipt
from dpmic_jax.dp.noise.cube import BLOCK, random_bits
from dpmic_jax.dp.noise.lattice import Lattice, LatticeCube, LatticeNoise
from dpmic_jax.dp.rng.keys import SecretKey, fold, is_secret, pair_key, wrap
from dpmic_jax.mic.characteristic import VALUE_BITS
from dpmic_jax.mic.grids import MasterRule, Sizes, all_sizes, cells, definition, ladder, reshef
from dpmic_jax.mic.statistics import Statistic
from dpmic_jax.runs.charged import ChargedRun

Key = SecretKey | PRNGKeyArray

_OURS = (all_sizes, definition, reshef)


@dataclass(frozen=True)
class PrivateValue:
    """Private values of one pair of columns, or of many.

    Attributes:
      value: in [0, 1]: a number, or an array with one a pair.
      event: what was charged for it.
      key_is_secret: whether the noise came from a secret key. If not, anyone who guesses the
        seed can subtract the noise: the release is for research, not for publication.
      receipt: of the charge, if `ledger=` was given.
    """

    value: float | Float[np.ndarray, " pairs"]
    event: Event
    key_is_secret: bool
    receipt: Receipt | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Release(PrivateValue):
    """Private values with additive noise of a known distribution.

    Attributes:
      noise: the noise on the values before they were clipped, and the lattice that they are on.
    """

    noise: LatticeNoise

    @property
    def lattice(self) -> Lattice:
        """The points that `value` can have."""
        return self.noise.lattice

    @property
    def scale(self) -> float:
        """Scale of the noise in the units of `value`.

        b of Laplace noise, whose standard deviation is sqrt(2) b; the standard deviation of
        Gaussian noise; for cube noise the b that one value alone would have.
        """
        return self.noise.scale


def release_of(
    noisy: Int[np.ndarray, " pairs"],
    noise: LatticeNoise,
    run: ChargedRun,
) -> Release:
    """Noisy points of a lattice, as the release of a charged run."""
    top = noise.lattice.top
    return Release(noisy / top, run.event, is_secret(run.key), noise, receipt=run.receipt)


class PointNoise(Protocol):
    """Noise on points of a lattice."""

    def release(
        self, values: Int32[Array, "*shape"], /, *, key: PRNGKeyArray
    ) -> Int32[Array, "*shape"]:
        """Points of the lattice with noise drawn from `key` added to them."""
        ...


def event_settings(statistic: Statistic, n: int) -> tuple[tuple[str, str], ...]:
    """A statistic's public settings, as an event keeps them."""
    rules = {"master": statistic.master, "sizes": statistic.sizes}
    named = {name: _told(rule, statistic, n) for name, rule in rules.items()}
    numbers = {"B": str(cells(statistic.B, n)), "c": str(statistic.c)}
    return tuple(sorted({**numbers, **named}.items()))


def _told(rule: MasterRule | Sizes, statistic: Statistic, n: int) -> str:
    """A rule by its name if it is one of ours, else with the plan of grids that it leads to.

    Names do not tell functions apart: two lambdas share theirs, and events that are equal share
    their noise.
    """
    name = getattr(rule, "__name__", repr(rule))
    if rule in _OURS or isinstance(rule, ladder):
        return name
    plan = hashlib.sha256(repr(statistic.grids(n)).encode()).hexdigest()
    return f"{name}, grids {plan[:32]}"


_TOGETHER = 4096  # pairs that get their noise in one call: memory stays flat
# Words folded into keys where pairs have a column: no table has as many.
_RADIUS, _MORE = 2**32 - 2, 2**32 - 1
_WORDS = 16  # of a pair's cube noise: one block of ChaCha20, four random integers


def add_noise(
    noise: PointNoise | LatticeCube,
    points: Int[np.ndarray, "pairs *shape"],
    pairs: Int[np.ndarray, "pairs 2"],
    key: PRNGKeyArray,
) -> Int[np.ndarray, "pairs *shape"]:
    """Noise for every pair (i, j) from `key` folded with i, then j.

    So the noise of a pair does not depend on which other pairs are released in the same call. The
    radius of cube noise is drawn from `key` alone, and is the same in every call.
    """
    if isinstance(noise, LatticeCube):
        return noise.release(points, np.concatenate([*cube_noise(noise, pairs, key)]))
    noisy = jax.vmap(lambda key, point: noise.release(point, key=key))
    width = _width(len(pairs), many=points.ndim > 1)
    done = []
    for begin, keys in _keys(pairs, key, width):
        some = points[begin : begin + width]
        found = noisy(wrap(keys), jnp.asarray(_filled(some, width), jnp.int32))
        done.append(np.asarray(found)[: len(some)])
    return np.concatenate(done)


def cube_noise(
    noise: LatticeCube, pairs: Int[np.ndarray, "pairs 2"], key: PRNGKeyArray
) -> Iterator[Int64[np.ndarray, " some"]]:
    """The noise that `add_noise` adds to pairs, in order, some of them at a time.

    It can be drawn before what it is added to is known: for many pairs at once that is quicker.
    """
    radius = noise.noise.radius(fold(key, np.array([_RADIUS], np.uint32)))
    width = _width(len(pairs), many=False)
    for begin, keys in _keys(pairs, key, width):
        some = pairs[begin : begin + width]
        words = np.asarray(_block_words(keys)).T[: len(some)]
        yield noise.drawn(radius, words, partial(_blocks, some, key))


def _keys(
    pairs: Int[np.ndarray, "pairs 2"], key: PRNGKeyArray, width: int
) -> Iterator[tuple[int, UInt32[Array, "width words"]]]:
    """Where the next `width` pairs begin, and their keys (`pair_key`) in words.

    Pairs share their first columns, with which `key` is folded once only.
    """
    columns, place = np.unique(pairs[:, 0], return_inverse=True)
    start = _filled(np.asarray(jax.random.key_data(key))[None], width)
    firsts = [
        np.asarray(_folded(start, _words_of(columns[begin : begin + width], width)))
        for begin in range(0, len(columns), width)
    ]
    of_column = np.concatenate(firsts)
    for begin in range(0, len(pairs), width):
        own = of_column[place[begin : begin + width]]
        seconds = _words_of(pairs[begin : begin + width, 1], width)
        yield begin, _folded(_filled(own, width), seconds)


@jax.jit
def _folded(
    keys: UInt32[Array, "some words"], columns: UInt32[Array, " some"]
) -> UInt32[Array, "some words"]:
    return jax.random.key_data(jax.vmap(jax.random.fold_in)(wrap(keys), columns))


@jax.jit
def _block_words(keys: UInt32[Array, "pairs words"]) -> UInt32[Array, "4 pairs"]:
    """The first random integer of every pair, in words."""
    words = jax.vmap(lambda key: jax.random.bits(key, (_WORDS,), jnp.uint32))(wrap(keys))
    return words[:, : BLOCK // 32].T


def _blocks(pairs: Int[np.ndarray, "pairs 2"], key: PRNGKeyArray, place: int) -> Iterator[int]:
    """The random integers of a pair: of its first words, and of more if these do not suffice.

    More than the first is rare (2^-64) as long as the radius is below 2^63.
    """
    own, size = pair_key(key, *pairs[place]), BLOCK // 8
    drawn = np.asarray(jax.random.bits(own, (_WORDS,), jnp.uint32)).astype("<u4").tobytes()
    for start in range(0, len(drawn), size):
        yield int.from_bytes(drawn[start : start + size], "little")
    more = random_bits(jax.random.fold_in(own, np.uint32(_MORE)))
    while True:
        yield more.take(BLOCK)


def _words_of(columns: Int[np.ndarray, " some"], width: int) -> UInt32[np.ndarray, " width"]:
    return _filled(columns, width).astype(np.uint32)


def _filled(
    values: Shaped[np.ndarray, "some *shape"], width: int
) -> Shaped[np.ndarray, "width *shape"]:
    """Values, repeated to fill up."""
    return np.resize(values, (width, *values.shape[1:]))


def _width(pairs: int, *, many: bool) -> int:
    """How many pairs are handled in a call, filled up so that few programs are compiled.

    16, 256 or 4096 numbers take no time; where each pair has many, the next power of two.
    """
    bits = (min(pairs, _TOGETHER) - 1).bit_length()
    return 1 << (bits if many else 4 * max(1, -(-bits // 4)))


def on_lattice(lattice: Lattice, values: Int[np.ndarray, " pairs"]) -> Int[np.ndarray, " pairs"]:
    """`characteristic.integer_mic` rounded down to the lattice: exact, so not private."""
    return np.clip(values >> (VALUE_BITS - lattice.bits), 0, lattice.top)
