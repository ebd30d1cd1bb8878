"""What may be released: an integer in 0 .. top, noise added, kept in that range.

A release law has `release(values, *, key)`, `pmf(value, out)`, the exact probability that `value`
is released as `out`, and `certificate()`. Pure laws are exactly epsilon-DP, delta_numerical = 0:

Let |v - v'| <= S, X the noise, e its epsilon_realised, E = P(|X| > reach - S). For every point o,
P(clip(v + X) = o) <= e^e P(clip(v' + X) = o) + E: term by term for noise within reach, and the
rest is at most E.
(a) With probability f the release is instead a point drawn without looking at v, any of them
with probability u or more. Then P_v(o) <= e^e P_v'(o) as soon as E <= (e^e - 1) f u.
(b) In a range no longer than the reach only the two ends can meet E, since only they collect
tails. Where their least probability T is far above E the loss is at most e + E / T, and no such
floor is needed.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, Key, UInt32

from dpmic_jax.dp.arithmetic.intervals import exact, growth, integer, rounded_up
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.noise.distributions import (
    DiscreteGaussian,
    DiscreteLaplace,
    laplace_certificate,
    signed_magnitude,
)
from dpmic_jax.dp.rng.keys import AnyKey, noise_key

LARGEST = 2**30  # of a range: a value and Gaussian noise add up within int32
_FLOOR_BITS = range(40, 32, -1)  # a floor of probability 2^-40, higher where that is too low


class PureCertificate(NamedTuple):
    """What exact arithmetic says of a pure release.

    Attributes:
      epsilon_realised: bound on the loss, at most the epsilon asked for.
      delta_numerical: 0, nothing is left out.
      floor: probability of a point drawn without looking at the value; 0 where none is needed.
      edge_mass: E above.
      edge_allowed: the most that E could be.
    """

    epsilon_realised: Fraction
    delta_numerical: Fraction
    floor: Fraction
    edge_mass: Fraction
    edge_allowed: Fraction


@dataclass(frozen=True, kw_only=True)
class ClippedLaplace:
    """clip(v + X, 0, top) with discrete Laplace noise X, and the floor.

    Attributes:
      epsilon: of one release.
      sensitivity: how far one record moves a value.
      top: the end of the range.
    """

    epsilon: float | Fraction
    sensitivity: int
    top: int

    def __post_init__(self):
        integer("top", self.top, 1, LARGEST)
        self.certificate()

    @property
    def noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(epsilon=self.epsilon, sensitivity=self.sensitivity)

    def release(self, values: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy values in 0 .. top; values outside are brought to the ends first."""
        floor = int(self.certificate().floor * 2**64)
        return _release(
            noise_key(key),
            as_int32(values),
            geometric.digits(self.noise.rate),
            np.uint32(self.top),
            np.uint32(floor),
        )

    def pmf(self, value: int, out: int) -> Fraction:
        """The probability that `value` is released as `out`."""
        floor = self.certificate().floor
        seen = clipped_pmf(self.noise, value, out, self.top)
        return floor * blind_pmf(out, self.top) + (1 - floor) * seen

    def certificate(self) -> PureCertificate:
        """Computed when the law is made, and refused unless epsilon_realised <= epsilon."""
        return _pure_certificate(self.noise, self.top)


@dataclass(frozen=True, kw_only=True)
class TruncatedGeometric:
    """TruncGeom(epsilon, n, f) of Definition 4.5: a count f in 0 .. n that one record moves by 1.

    With rho = e^-epsilon: 0 with probability rho^f / (1 + rho), n with probability
    rho^(n-f) / (1 + rho), any i between with (1 - rho) / (1 + rho) rho^|f-i|. That is discrete
    Laplace noise, clipped to the range. Where epsilon n is above 31 or so, a floor of 2^-40 is
    mixed in (`certificate().floor` tells): finitely many words reach no further down.
    """

    epsilon: float | Fraction
    n: int

    def __post_init__(self):
        integer("n", self.n, 1, LARGEST)
        self.certificate()

    @property
    def _law(self) -> ClippedLaplace:
        return ClippedLaplace(epsilon=self.epsilon, sensitivity=1, top=self.n)

    def release(self, values: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy counts in 0 .. n."""
        return self._law.release(values, key=key)

    def pmf(self, value: int, out: int) -> Fraction:
        """The probability that the count `value` is released as `out`."""
        return self._law.pmf(value, out)

    def certificate(self) -> PureCertificate:
        """For a count that one record moves by 1."""
        return self._law.certificate()


# --- on the device -------------------------------------------------------------------------


@jax.jit
def _release(
    key: Key[Array, ""],
    values: Int32[Array, "*shape"],
    tables: geometric.Digits,
    top: UInt32[Array, ""],
    floor: UInt32[Array, ""],
) -> Int32[Array, "*shape"]:
    words = jax.random.bits(key, (tables.words + 2, *values.shape), jnp.uint32)
    return released(words, values, tables, top, floor)


def released(
    words: UInt32[Array, "words *shape"],
    values: Int32[Array, "*shape"],
    tables: geometric.Digits,
    top: UInt32[Array, ""],
    floor: UInt32[Array, ""],
) -> Int32[Array, "*shape"]:
    """The release that the words stand for; the floor comes up with probability floor / 2^64.

    The last two words decide on it, the sign aside. It may then draw its point from the noise's
    words, since the noise is not used.
    """
    negative, size = signed_magnitude(words, tables)
    start = jnp.clip(values, np.int32(0), top.astype(jnp.int32)).astype(jnp.uint32)
    # By unsigned steps no longer than the way to the end: nothing overflows.
    noisy = jnp.where(
        negative, start - jnp.minimum(size, start), start + jnp.minimum(size, top - start)
    )
    # Not [-1], which JAX 0.7 traces as a dynamic slice.
    blind = (words[len(words) - 1] == 0) & (words[tables.words] < floor)
    return jnp.where(blind, _blind_point(words[0], top), noisy).astype(jnp.int32)


def _blind_point(word: UInt32[Array, "*shape"], top: UInt32[Array, ""]) -> UInt32[Array, "*shape"]:
    """A point of 0 .. top: as many bits as top has, folded back by top + 1 where beyond."""
    point = word >> jax.lax.clz(top)
    return jnp.where(point > top, point - (top + np.uint32(1)), point)


def as_int32(values: Int32[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """Refuse what JAX would silently cut to 32 bits."""
    dtype = getattr(values, "dtype", np.dtype(np.int32))
    if dtype != np.int32:
        raise TypeError(f"expected values of type int32, got {dtype}; convert them first")
    return jnp.asarray(values, jnp.int32)


# --- exact arithmetic ----------------------------------------------------------------------


def blind_pmf(out: int, top: int) -> Fraction:
    """The law of `_blind_point`: once or twice 2^-bits, exactly."""
    bits = top.bit_length()
    return Fraction((0 <= out <= top) + (0 <= out < 2**bits - 1 - top), 2**bits)


def clipped_pmf(
    noise: DiscreteLaplace | DiscreteGaussian, value: int, out: int, top: int
) -> Fraction:
    """P(clip(value + X, 0, top) = out) for a law that is symmetric about 0."""
    integer("value", value, 0, top)
    if out == 0:
        return noise.tail(value)
    if out == top:
        return noise.tail(top - value)
    return noise.pmf(out - value) if 0 < out < top else Fraction(0)


@lru_cache(maxsize=256)
def _pure_certificate(noise: DiscreteLaplace, top: int) -> PureCertificate:
    # Before int32: the range ends well below, so nothing beyond it is seen.
    loss, reach, edge = laplace_certificate(noise.rate, noise.sensitivity)
    budget, none = exact("epsilon", noise.epsilon), Fraction(0)
    if top <= reach:
        allowed = (budget - loss) * noise.tail(top)
        if edge <= allowed:
            return PureCertificate(
                loss + rounded_up(edge / noise.tail(top)), none, none, edge, allowed
            )
    for bits in _FLOOR_BITS:
        floor = Fraction(1, 2**bits)
        allowed = growth(loss) * floor / 2 ** top.bit_length()
        if edge <= allowed and loss <= budget:
            return PureCertificate(loss, none, floor, edge, allowed)
    raise ValueError(
        f"epsilon={float(budget):.3g} is too small for a range of {top} steps; "
        "use a coarser range or a larger epsilon"
    )
