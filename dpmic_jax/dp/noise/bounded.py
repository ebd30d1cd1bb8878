"""Release an integer in 0 .. top: add noise, and clip the sum to the same range.

Such a mechanism has `release(values, *, key)`, `pmf(value, out)`, the exact probability that
`value` is released as `out`, and `certificate()`. With discrete Laplace noise it is exactly
epsilon-DP, delta_numerical = 0:

Let |v - v'| <= S, X the noise, e its epsilon_realised, E = P(|X| > reach - S). For every point o,
P(clip(v + X) = o) <= e^e P(clip(v' + X) = o) + E: term by term for noise within reach, and the
rest is at most E. There are two ways to remove E:
(a) The floor. With probability f the release is instead a point drawn independently of v, each
point with probability u or more. Then P_v(o) <= e^e P_v'(o) as soon as E <= (e^e - 1) f u.
(b) In a range no longer than the reach only the two end points are affected by E, since only they
collect tails. Where their least probability T is far above E, the loss is at most e + E / T, and
no floor is needed.
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

LARGEST = 2**30  # largest `top`: a value plus Gaussian noise still fits int32
# The floor has the least probability that is enough, 2^-40 to 2^-33. It is compared with one word
# of 32 bits, after another that has to be 0, so it has to stay below 2^-32.
_FLOOR_BITS = range(40, 32, -1)


class PureCertificate(NamedTuple):
    """The privacy loss of an epsilon-DP release, by exact arithmetic on the sampler's tables.

    Attributes:
      epsilon_realised: bound on the privacy loss, at most the epsilon asked for.
      delta_numerical: 0: the guarantee holds without a numerical delta.
      floor: f of this module's docstring, the probability of a point drawn independently of the
        value; 0 where no floor is needed.
      edge_mass: E of this module's docstring.
      edge_allowed: the largest E for which the guarantee would hold.
    """

    epsilon_realised: Fraction
    delta_numerical: Fraction
    floor: Fraction
    edge_mass: Fraction
    edge_allowed: Fraction


@dataclass(frozen=True, kw_only=True)
class ClippedLaplace:
    """Release clip(v + X, 0, top) with discrete Laplace noise X, mixed with a floor if needed.

    Attributes:
      epsilon: privacy parameter of one release.
      sensitivity: how far one record can move a value.
      top: upper end of the range 0 .. top.
    """

    epsilon: float | Fraction
    sensitivity: int
    top: int

    def __post_init__(self):
        integer("top", self.top, 1, LARGEST)
        self.certificate()

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise before clipping."""
        return DiscreteLaplace(epsilon=self.epsilon, sensitivity=self.sensitivity)

    def release(self, values: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy values in 0 .. top; values outside the range are clipped to it first."""
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
        clipped = clipped_pmf(self.noise, value, out, self.top)
        return floor * blind_pmf(out, self.top) + (1 - floor) * clipped

    def certificate(self) -> PureCertificate:
        """The privacy loss; raises ValueError unless epsilon_realised <= epsilon can be shown.

        It is computed when the object is made, so an object that exists is epsilon-DP.
        """
        return _pure_certificate(self.noise, self.top)


@dataclass(frozen=True, kw_only=True)
class TruncatedGeometric:
    """TruncGeom(epsilon, n, f) of Definition 4.5, for a count f in 0 .. n of sensitivity 1.

    With rho = e^-epsilon it releases 0 with probability rho^f / (1 + rho), n with probability
    rho^(n-f) / (1 + rho), and any i between with (1 - rho) / (1 + rho) rho^|f-i|. That is discrete
    Laplace noise, clipped to the range. Where epsilon n is above about 31, a floor of 2^-40 is
    mixed in (see `certificate().floor`), since finitely many random words cannot represent the
    tails.
    """

    epsilon: float | Fraction
    n: int

    def __post_init__(self):
        integer("n", self.n, 1, LARGEST)
        self.certificate()

    @property
    def _clipped(self) -> ClippedLaplace:
        return ClippedLaplace(epsilon=self.epsilon, sensitivity=1, top=self.n)

    def release(self, values: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy counts in 0 .. n; values outside the range are clipped to it first."""
        return self._clipped.release(values, key=key)

    def pmf(self, value: int, out: int) -> Fraction:
        """The probability that the count `value` is released as `out`."""
        return self._clipped.pmf(value, out)

    def certificate(self) -> PureCertificate:
        """The privacy loss for counts that differ by at most 1."""
        return self._clipped.certificate()


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
    """Map random words to a release; the floor is taken with probability floor / 2^64.

    The last two words decide on the floor; the lowest bit of the first of them is also the sign.
    The floor's point may reuse a word of the noise, since the noise is discarded then.
    """
    negative, size = signed_magnitude(words, tables)
    start = jnp.clip(values, np.int32(0), top.astype(jnp.int32)).astype(jnp.uint32)
    # Unsigned steps, cut to the distance from the end of the range: nothing overflows.
    noisy = jnp.where(
        negative, start - jnp.minimum(size, start), start + jnp.minimum(size, top - start)
    )
    # words[-1] would be traced as a dynamic slice by JAX 0.7.
    blind = (words[len(words) - 1] == 0) & (words[tables.words] < floor)
    return jnp.where(blind, _blind_point(words[0], top), noisy).astype(jnp.int32)


def _blind_point(word: UInt32[Array, "*shape"], top: UInt32[Array, ""]) -> UInt32[Array, "*shape"]:
    """A point of 0 .. top: as many random bits as `top` has, less top + 1 if beyond `top`.

    Not uniform, but the probability of every point is known exactly: `blind_pmf`.
    """
    point = word >> jax.lax.clz(top)
    return jnp.where(point > top, point - (top + np.uint32(1)), point)


def as_int32(values: Int32[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """Convert to a JAX array of int32, and refuse dtypes that JAX would silently cut to 32 bits."""
    dtype = getattr(values, "dtype", np.dtype(np.int32))
    if dtype != np.int32:
        raise TypeError(f"expected values of type int32, got {dtype}; convert them first")
    return jnp.asarray(values, jnp.int32)


# --- exact arithmetic ----------------------------------------------------------------------


def blind_pmf(out: int, top: int) -> Fraction:
    """The exact distribution of `_blind_point`: 2^-bits, or twice that, for points of 0 .. top."""
    bits = top.bit_length()
    return Fraction((0 <= out <= top) + (0 <= out < 2**bits - 1 - top), 2**bits)


def clipped_pmf(
    noise: DiscreteLaplace | DiscreteGaussian, value: int, out: int, top: int
) -> Fraction:
    """P(clip(value + X, 0, top) = out) for noise X that is symmetric about 0."""
    integer("value", value, 0, top)
    if out == 0:
        return noise.tail(value)
    if out == top:
        return noise.tail(top - value)
    return noise.pmf(out - value) if 0 < out < top else Fraction(0)


@lru_cache(maxsize=256)
def _pure_certificate(noise: DiscreteLaplace, top: int) -> PureCertificate:
    # The certificate of the noise before it saturates at int32: the range ends well below, so
    # clipping hides the saturation.
    loss, reach, edge = laplace_certificate(noise.rate, noise.sensitivity)
    budget, none = exact("epsilon", noise.epsilon), Fraction(0)
    if top <= reach:  # (b) of the module's docstring, with T = P(X >= top)
        allowed = (budget - loss) * noise.tail(top)
        if edge <= allowed:
            return PureCertificate(
                loss + rounded_up(edge / noise.tail(top)), none, none, edge, allowed
            )
    for bits in _FLOOR_BITS:  # (a), with u = 2^-top.bit_length(), the least of `blind_pmf`
        floor = Fraction(1, 2**bits)
        allowed = growth(loss) * floor / 2 ** top.bit_length()
        if edge <= allowed and loss <= budget:
            return PureCertificate(loss, none, floor, edge, allowed)
    raise ValueError(
        f"epsilon={float(budget):.3g} is too small for a range of {top} steps; "
        "use a coarser range or a larger epsilon"
    )
