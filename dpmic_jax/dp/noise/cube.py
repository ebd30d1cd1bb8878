"""Cube noise: one random radius for all values that one person moves together.

One person's records move each of d values by at most S steps, all at once: the sensitivity of the
vector is S in the maximum norm. The noise is

    P(Z = z) = C q^max|z_i|,    q = e^(-epsilon / S),    z in Z^d

(the K-norm mechanism of the maximum norm: Hardt and Talwar 2010; Steinke and Ullman 2015, Theorem
4.1, on the reals). Two centres that differ by at most S in the maximum norm give every outcome
probabilities within a factor of q^-S = e^epsilon, so all d values together are epsilon-DP.
Releasing some of them, clipping them, or choosing which to release by those released before is
post-processing of the whole vector. For d = 1 it is discrete Laplace noise.

**Sampling.** sum_{r >= m} q^r = q^m / (1 - q), so Z is a mixture of cubes: draw the radius R with
P(R = r) ~ f(r) = q^r (2r + 1)^d, then each Z_i independently and uniformly from -R .. R. Both are
exact in unbounded integers: no table, no truncation, no word of a fixed width.

- ln f is concave. Let m be its mode among the integers, and w such that f(m +- w) <= f(m) / 2.
  Then f(m + t) <= f(m) 2^-floor(t / w) for t >= 0, and the same holds for m - 1 - t. So a side, a
  geometric block by fair coins and a uniform place in the block propose r with a mass
  proportional to 2^-floor(t / w), and it is accepted with probability
  f(r) / (f(m) 2^-floor(t / w)). About 0.4 (d = 1) to 0.5 of the proposals are accepted as long
  as epsilon is below S, whatever d is, and an eighth at least.
- That probability is irrational. It is compared with a uniform number whose bits are drawn one
  word after the other until rigorous decimal bounds on both sides decide.
- A uniform integer below M is a number of enough bits, drawn again if it is in the last,
  incomplete run of M.

**The radius is as secret as the key**: with R known the support of Z_i gives records away. It is
derived from the run's key wherever it is needed, and kept nowhere.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Shaped, UInt32
from scipy.special import gammaincc, gammainccinv, gammaincinv

from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.arithmetic.intervals import exact, integer
from dpmic_jax.dp.rng.keys import AnyKey, fold, noise_key

MOST_VALUES = 2**40
Steps = float | Float[np.ndarray, "*shape"]
BLOCK = 128  # bits of the random integers that coordinates are made of
_QUANTILES = 2048  # of the radius, for probabilities in floats; as many for its tail
_WORDS = 64  # random words that are drawn in one call
_DIGITS = 30  # of the first comparison, beyond those that the numbers themselves have


class Proposal(NamedTuple):
    """The step function above f: 2^-floor(t / width) at mode + t and at mode - 1 - t."""

    mode: int
    width: int


@dataclass(frozen=True, kw_only=True)
class CubeNoise:
    """P(Z = z) ~ e^(-max|z_i| epsilon / sensitivity) for vectors z of `values` integers.

    Attributes:
      epsilon: of all values together.
      sensitivity: the most that one person's records move any of the values.
      values: how many values share the radius; none more may be released with it.
    """

    epsilon: float | Fraction
    sensitivity: int
    values: int

    def __post_init__(self):
        exact("epsilon", self.epsilon)
        integer("sensitivity", self.sensitivity, 1, 2**60)
        integer("values", self.values, 1, MOST_VALUES)

    @cached_property
    def rate(self) -> Fraction:
        """a of q = e^-a: epsilon / sensitivity, exactly."""
        return exact("epsilon", self.epsilon) / self.sensitivity

    def radius(self, key: AnyKey) -> int:
        """Draw R. As secret as the key: do not store, print or send it."""
        return self.radius_from(random_bits(key))

    def radius_from(self, bits: "RandomBits") -> int:
        """Draw R from the next of some random bits; as secret as these."""
        mode, width = self._proposal
        while True:
            block, right = 0, bits.take(1)
            while bits.take(1):
                block += 1
            t = block * width + bits.below(width)
            radius = mode + t if right else mode - 1 - t
            if radius >= 0 and self._accepted(radius, block, bits):
                return radius

    @property
    def _proposal(self) -> Proposal:
        return _proposal(self.rate, self.values)

    def _accepted(self, radius: int, block: int, bits: "RandomBits") -> bool:
        """Whether a uniform number is below f(radius) / (f(mode) 2^-block)."""
        drawn, width, digits = bits.take(64), 64, _DIGITS
        while True:
            low, high = self._acceptance(radius, block, digits, least=-width - 2)
            if Fraction(drawn + 1, 1 << width) <= low:
                return True
            if Fraction(drawn, 1 << width) >= high:
                return False
            drawn, width, digits = (drawn << 64) | bits.take(64), width + 64, 2 * digits

    def _acceptance(
        self, radius: int, block: int, digits: int, *, least: int
    ) -> tuple[Fraction, Fraction]:
        """Bounds on the probability; of one below e^least only that it is below 2^least."""
        low, high = _log_ratio(self.rate, self.values, radius, self._proposal.mode, digits)
        # e^-N as a fraction has N digits: what is too small to matter is not written out.
        if high + block < least:
            return Fraction(0), Fraction(1, 1 << -least)
        with localcontext(_context(digits)) as context:
            context.rounding = ROUND_FLOOR
            below = max(low, Decimal(2 * least - block)).exp().next_minus()
            context.rounding = ROUND_CEILING
            above = high.exp().next_plus()
        # A lower bound that was too small to be written out is replaced by 0.
        below = Fraction(below) if low >= 2 * least - block else Fraction(0)
        return below * 2**block, Fraction(above) * 2**block

    # The distribution in floats, for limits and plans. a (R + 1/2) is Gamma(d + 1) but for terms
    # of the order of 1/R^2, and Z_i / (R + 1/2) is uniform on [-1, 1].

    @property
    def sd(self) -> float:
        """Standard deviation of one value's noise, sqrt(E[R (R + 1)] / 3)."""
        return math.sqrt((self.values + 1) * (self.values + 2) / 3) / float(self.rate)

    def tail(self, t: Steps) -> Steps:
        """P(Z_i > t) of one value, for t >= 0: [Q(d+1, at) - (at/d) Q(d, at)] / 2."""
        d, x = self.values, float(self.rate) * np.asarray(t)
        return (gammaincc(d + 1, x) - x / d * gammaincc(d, x)) / 2

    def quantile(self, above: float) -> float:
        """The t >= 0 that one value's noise exceeds with a probability of at most 1/2."""
        return self._reached(self.tail, above)

    def radii(self, count: int) -> Float[np.ndarray, " count"]:
        """Quantiles of R + 1/2, at the middles of `count` equal shares of its distribution."""
        return _gamma_quantiles(self.values + 1, count) / float(self.rate)

    def largest_tail(self, t: float, count: int) -> float:
        """P(max Z_i > t) over `count` of the values, for t >= 0.

        Given R the values are independent: E[1 - ((1 + t/R) / 2)^count; R > t], over quantiles
        of R that are dense where R is large. Accurate down to probabilities of 1e-12.
        """
        radii, weights = _upper_quantiles(self.values + 1)
        inside = np.minimum(1, (1 + float(self.rate) * t / radii) / 2)
        return float(-np.expm1(count * np.log(inside)) @ weights)

    def largest_quantile(self, above: float, count: int) -> float:
        """The t >= 0 that the largest of `count` values' noises exceeds with a probability."""
        return self._reached(lambda t: self.largest_tail(t, count), above)

    def _reached(self, tail: Callable[[float], Steps], above: float) -> float:
        def exceeded(t: float) -> bool:
            return bool(tail(t) > above)

        found = doubled(exceeded, 1 / float(self.rate))
        return 0.0 if found is None else bisect(exceeded, *found).fails


@lru_cache(maxsize=16)
def _upper_quantiles(
    shape: int,
) -> tuple[Float[np.ndarray, " quantiles"], Float[np.ndarray, " quantiles"]]:
    """Quantiles of a Gamma number and their weights: evenly spaced, then by factors in the tail."""
    tail = np.geomspace(1e-15, 0.05, _QUANTILES)
    exceeded = np.concatenate([[0.0], tail, np.linspace(0.05, 1, _QUANTILES)[1:]])
    return gammainccinv(shape, (exceeded[1:] + exceeded[:-1]) / 2), np.diff(exceeded)


@lru_cache(maxsize=16)
def _gamma_quantiles(shape: int, count: int) -> Float[np.ndarray, " count"]:
    return gammaincinv(shape, (np.arange(count) + 0.5) / count)


def uniform(radius: int, blocks: Iterator[int]) -> int:
    """An integer from -radius .. radius, exactly uniform if the blocks are.

    Args:
      radius: of the cube.
      blocks: random integers below 2^BLOCK; as many as it takes, nearly always one.
    """
    return _below(2 * radius + 1, blocks, BLOCK) - radius


def uniforms(
    radius: int,
    words: UInt32[np.ndarray, "some words"],
    blocks: Callable[[int], Iterator[int]],
) -> Shaped[np.ndarray, " some"]:
    """`uniform` of many streams of blocks at once.

    Args:
      radius: of the cube.
      words: the words of the first block of every stream, lowest first.
      blocks: gives the stream at a place; asked only for the few that need more than `words`.

    Returns:
      Integers of 64 bits, or those of Python where these might not do.
    """
    size = 2 * radius + 1
    # The remainder of a block from its highest bits down, as many at a time as 64 bits have room.
    width = next((w for w in (32, 16, 8, 4, 2, 1) if size.bit_length() + w <= 64), None)
    if width is None:
        return np.array([uniform(radius, blocks(i)) for i in range(len(words))], object)
    drawn, some = np.zeros(len(words), np.uint64), np.uint64(2**width - 1)
    for place in reversed(range(0, BLOCK, width)):
        drawn = (drawn << np.uint64(width)) | ((words[:, place // 32] >> place % 32) & some)
        # numpy divides by one number much faster than it finds the remainder.
        drawn -= drawn // np.uint64(size) * np.uint64(size)
    found = drawn.astype(np.int64) - radius
    # Only the highest 2^64 blocks can be in an incomplete run.
    for place in np.flatnonzero((words[:, 2 : BLOCK // 32] == 2**32 - 1).all(axis=1)).tolist():
        found[place] = uniform(radius, blocks(place))
    return found


def _below(size: int, blocks: Iterator[int], width: int) -> int:
    """A uniform integer below `size`: drawn again where the last run of `size` is incomplete."""
    # 64 bits more than size has, so that drawing again is rare (2^-64), never impossible.
    count = -(-(size.bit_length() + 64) // width)
    whole = (1 << (count * width)) // size * size
    while True:
        drawn = 0
        for _ in range(count):
            drawn = (drawn << width) | next(blocks)
        if drawn < whole:
            return drawn % size


class RandomBits:
    """An endless stream of random bits, from blocks of 32-bit words."""

    def __init__(self, words: Iterator[int]):
        self._words, self._held, self._length = words, 0, 0

    def take(self, length: int) -> int:
        """The next `length` bits, as an integer."""
        while self._length < length:
            self._held = (self._held << 32) | next(self._words)
            self._length += 32
        self._length -= length
        taken, self._held = self._held >> self._length, self._held & ((1 << self._length) - 1)
        return taken

    def below(self, size: int) -> int:
        """A uniform integer below `size`."""
        return _below(size, iter(lambda: self.take(64), None), 64)


def random_bits(key: AnyKey) -> RandomBits:
    """The random bits of a key: the words of the key folded with 0, then 1, 2, ..."""
    key = noise_key(key)

    def words() -> Iterator[int]:
        for number in range(2**32):
            yield from np.asarray(_words(fold(key, np.array([number], np.uint32)))).tolist()

    return RandomBits(words())


@jax.jit
def _words(key: Key[Array, ""]) -> UInt32[Array, " words"]:
    return jax.random.bits(key, (_WORDS,), jnp.uint32)


# --- bounds on ln f ----------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _proposal(rate: Fraction, values: int) -> Proposal:
    """The mode of f, and a width at which it has fallen to half, both by rigorous bounds."""
    # f grows from r - 1 to r as long as ln f(r) - ln f(r - 1) > 0: near values / rate - 1/2.
    mode = max(0, math.floor(values / rate - Fraction(1, 2)))
    while _grows(rate, values, mode + 1):
        mode += 1
    while mode > 0 and not _grows(rate, values, mode):
        mode -= 1
    width = max(1, math.isqrt(math.ceil(Fraction(139, 100) * values / rate**2)))
    while not _halved(rate, values, mode, width):
        width += width // 16 + 1
    return Proposal(mode, width)


def _grows(rate: Fraction, values: int, radius: int) -> bool:
    """Whether f(radius) > f(radius - 1). Equality would make e^rate algebraic: it is decided."""
    digits = _DIGITS
    while True:
        low, high = _log_ratio(rate, values, radius, radius - 1, digits)
        if low > 0 or high < 0:
            return low > 0
        digits *= 2


def _halved(rate: Fraction, values: int, mode: int, width: int) -> bool:
    """Whether f(mode + width) and f(mode - width) are at most f(mode) / 2, surely."""
    with localcontext(_context(_DIGITS)):
        half = -Decimal(2).ln().next_plus()
    sides = [mode + width, mode - width] if width <= mode else [mode + width]
    return all(_log_ratio(rate, values, side, mode, _DIGITS)[1] <= half for side in sides)


def _log_ratio(
    rate: Fraction, values: int, radius: int, other: int, digits: int
) -> tuple[Decimal, Decimal]:
    """Bounds on ln f(radius) - ln f(other) = a (other - radius) + d ln((2r + 1) / (2o + 1)).

    Each of the few operations rounds once, by a share of at most 10^(1 - precision): so does the
    quotient, which moves the logarithm by as much. The margin is ten times their sum.
    """
    with localcontext(_context(digits)) as context:
        linear = Decimal(rate.numerator * (other - radius)) / Decimal(rate.denominator)
        logarithm = (Decimal(2 * radius + 1) / Decimal(2 * other + 1)).ln()
        size = abs(linear) + values * (1 + abs(logarithm))
        margin = (size + 1).scaleb(2 - context.prec)
        total = linear + values * logarithm
        return total - margin, total + margin


def _context(digits: int) -> Context:
    return Context(prec=digits + 20, Emax=10**9, Emin=-(10**9))
