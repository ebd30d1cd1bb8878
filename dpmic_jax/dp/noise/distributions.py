"""Distributions of integer noise, sampled without floating point, each with its certificate.

A distribution has `sample(key, shape)`, `pmf(x)` as an exact fraction, and `certificate()`. It is
the distribution of the noise alone; releases of a value with noise, on a finite range, are in
`bounded` and `lattice`. Sampling works under jit and vmap, draws 32-bit words only, and takes the
same steps whatever is drawn. Probabilities are those of the sampler itself, computed from the
tables that random words are compared with. The constructions are in `geometric` and `gaussian`.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Key, UInt32

from dpmic_jax.dp.arithmetic.intervals import exact, integer, rounded_up
from dpmic_jax.dp.noise import gaussian, geometric
from dpmic_jax.dp.noise.digit_sampler import Term, tail
from dpmic_jax.dp.noise.geometric import LARGEST
from dpmic_jax.dp.rng.keys import AnyKey, noise_key

# Taken off epsilon before the rate is set, so that rounding of the thresholds (a factor of at most
# 1 + 2^-40 in ratios of probabilities) keeps the realised loss within epsilon.
SLACK = Fraction(1, 2**40)


class LaplaceCertificate(NamedTuple):
    """The privacy loss of noise X, by exact arithmetic on the thresholds.

    Attributes:
      epsilon_realised: bound on |ln P(X = x) - ln P(X = x + d)| for |d| <= sensitivity and
        |x|, |x + d| <= reach.
      reach: the largest |x| for which that holds.
      edge_mass: P(|X| > reach - sensitivity), exactly. Finitely many random words have a largest
        noise, and values near it would tell data sets apart if the noise were added to an
        unbounded integer. Releases on a finite range account for it (`bounded`).
    """

    epsilon_realised: Fraction
    reach: int
    edge_mass: Fraction


class GaussianCertificate(NamedTuple):
    """zCDP of the ideal distribution, and the distance of the sampler from it.

    Attributes:
      rho: zCDP of the ideal discrete Gaussian for a shift by the sensitivity, s^2 / 2 sigma^2
        (Canonne, Kamath, Steinke 2020, Theorem 4).
      total_variation: bound on the total variation distance of one draw to the ideal
        distribution. It adds (1 + e^epsilon) d total_variation to the delta of d draws.
    """

    rho: Fraction
    total_variation: Fraction


class JointCertificate(NamedTuple):
    """Gaussian DP of many draws that are released together.

    Attributes:
      mu_squared: mu^2 of a mu-GDP mechanism, noise of which is rounded to integers.
      total_variation: bound on the total variation distance of all draws together to that
        mechanism, by rounding (`gaussian.rounding_error`) and by the sampler. It adds
        (1 + e^epsilon) total_variation to delta.
    """

    mu_squared: Fraction
    total_variation: Fraction


@dataclass(frozen=True, kw_only=True)
class Geometric:
    """Geometric noise: P(X = x) ~ e^(-epsilon x) for x = 0, 1, 2, ...

    One-sided noise is not epsilon-DP when a value is released, since the sum is never below the
    value. It is for selection among noisy scores; use `TruncatedGeometric` to release a count.
    """

    epsilon: float | Fraction

    def __post_init__(self):
        _rate(self.epsilon, 1)

    @property
    def _tables(self) -> geometric.Digits:
        return geometric.digits(_rate(self.epsilon, 1)).without_bit()

    def sample(self, key: AnyKey, shape: tuple[int, ...] = ()) -> Int32[Array, "*shape"]:
        """Independent draws, at most 2^31 - 1; larger ones saturate."""
        return _sample_geometric(noise_key(key), self._tables, shape)

    def pmf(self, x: int) -> Fraction:
        """The probability that a draw is x."""
        return self.tail(x) - self.tail(x + 1)

    def tail(self, x: int) -> Fraction:
        """The probability that a draw is at least x."""
        return tail(self._tables.terms(), x) if x <= LARGEST else Fraction(0)

    def certificate(self) -> LaplaceCertificate:
        """The privacy loss of a shift by +1; `edge_mass` is that of the upper tail."""
        found = _certificate(_rate(self.epsilon, 1), 1, self._tables)
        return _within_int32(found, 1, self._tables.terms())


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace:
    """Discrete Laplace noise: P(X = x) ~ e^(-|x| epsilon / sensitivity) for integers x.

    Sampled as X = +-(G + B) with a fair sign, G geometric of ratio r = e^(-epsilon / sensitivity),
    and B a bit that is 1 with probability r / (1 + r). For x > 0 the cases B = 1 and B = 0 add up
    to r^(x-1) r + r^x = 2 r^x, and for x = 0 the two signs to 1 + 1.
    """

    epsilon: float | Fraction
    sensitivity: int = 1

    def __post_init__(self):
        _rate(self.epsilon, integer("sensitivity", self.sensitivity, 1, 2**30))

    @property
    def rate(self) -> Fraction:
        """lambda of P(X = x) ~ e^(-lambda |x|); the scale is 1 / lambda."""
        return _rate(self.epsilon, self.sensitivity)

    @property
    def _tables(self) -> geometric.Digits:
        return geometric.digits(self.rate)

    @property
    def words(self) -> int:
        """Number of random words that one draw takes; the last one holds the sign."""
        return self._tables.words + 1

    def sample(self, key: AnyKey, shape: tuple[int, ...] = ()) -> Int32[Array, "*shape"]:
        """Independent draws, at most 2^31 - 1 in magnitude; larger ones saturate."""
        return _sample_laplace(noise_key(key), self._tables, shape)

    def pmf(self, x: int) -> Fraction:
        """The probability that a draw is x."""
        return self.tail(x) - self.tail(x + 1)

    def tail(self, x: int) -> Fraction:
        """The probability that a draw is at least x."""
        if x <= 0:
            return 1 - self.tail(1 - x)
        return tail(_terms(self.rate), x) / 2 if x <= LARGEST else Fraction(0)

    def certificate(self) -> LaplaceCertificate:
        """The privacy loss of a shift by at most the sensitivity."""
        found = laplace_certificate(self.rate, self.sensitivity)
        return _within_int32(found, self.sensitivity, _terms(self.rate))


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian:
    """Discrete Gaussian noise: P(X = x) ~ e^(-x^2 / 2 sigma^2) for integers x.

    The sampled distribution is within `certificate().total_variation` of this one.
    """

    sigma: float | Fraction

    def __post_init__(self):
        if exact("sigma", self.sigma) > gaussian.LARGEST:
            raise ValueError(
                f"expected sigma <= 2^26, got {float(self.sigma)}; use coarser integers"
            )

    @property
    def variance(self) -> Fraction:
        """sigma^2, exactly."""
        return Fraction(self.sigma) ** 2

    @property
    def words(self) -> int:
        """Number of random words that one draw takes."""
        return gaussian.parts(self.variance).words

    def sample(self, key: AnyKey, shape: tuple[int, ...] = ()) -> Int32[Array, "*shape"]:
        """Independent draws, all below 2^30 in magnitude."""
        return _sample_gaussian(noise_key(key), gaussian.parts(self.variance), shape)

    def pmf(self, x: int) -> Fraction:
        """The probability that a draw is x."""
        return self.tail(x) - self.tail(x + 1)

    def tail(self, x: int) -> Fraction:
        """The probability that a draw is at least x."""
        return tail(_gaussian_terms(self.variance), x)

    def certificate(self) -> GaussianCertificate:
        """rho for a shift by 1, and the total variation of one draw."""
        return _gaussian_certificate(self.variance)


# --- random words to noise -----------------------------------------------------------------


@partial(jax.jit, static_argnames="shape")
def _sample_geometric(key: Key[Array, ""], tables: geometric.Digits, shape: tuple[int, ...]):
    words = jax.random.bits(key, (tables.words, *shape), jnp.uint32)
    return geometric.magnitude(words, tables).astype(jnp.int32)


@partial(jax.jit, static_argnames="shape")
def _sample_laplace(key: Key[Array, ""], tables: geometric.Digits, shape: tuple[int, ...]):
    words = jax.random.bits(key, (tables.words + 1, *shape), jnp.uint32)
    negative, size = signed_magnitude(words, tables)
    size = size.astype(jnp.int32)
    return jnp.where(negative, -size, size)


@partial(jax.jit, static_argnames="shape")
def _sample_gaussian(key: Key[Array, ""], tables: gaussian.Parts, shape: tuple[int, ...]):
    words = jax.random.bits(key, (tables.words, *shape), jnp.uint32)
    return gaussian.total(words, tables)


def signed_magnitude(
    words: UInt32[Array, "words *shape"], tables: geometric.Digits
) -> tuple[Bool[Array, "*shape"], UInt32[Array, "*shape"]]:
    """Whether X is negative (the lowest bit of the word after the digits' words), and |X|."""
    negative = (words[tables.words] & np.uint32(1)) == 1
    return negative, geometric.magnitude(words, tables)


# --- exact arithmetic ----------------------------------------------------------------------


def _rate(epsilon: float | Fraction, sensitivity: int) -> Fraction:
    """(epsilon - slack) / sensitivity, at most 32: thresholds of 128 bits hold no higher rate."""
    budget = exact("epsilon", epsilon)
    # Less noise was asked for where the cap applies; the loss is then below epsilon.
    rate = min((budget - SLACK) / sensitivity, geometric.RATES[1])
    if budget < 2**10 * SLACK or rate < geometric.RATES[0]:
        raise ValueError(
            f"epsilon={float(budget):.3g} with sensitivity {sensitivity} is noise of a scale "
            "beyond 2^28, or epsilon below 2^-30; use coarser integers or a larger epsilon"
        )
    return rate


@lru_cache(maxsize=256)
def _gaussian_terms(variance: Fraction) -> tuple[Term, ...]:
    return gaussian.parts(variance).terms()


@lru_cache(maxsize=256)
def _gaussian_certificate(variance: Fraction) -> GaussianCertificate:
    apart = gaussian.distance(gaussian.parts(variance), variance)
    return GaussianCertificate(1 / (2 * variance), rounded_up(apart))


@lru_cache(maxsize=256)
def _terms(rate: Fraction) -> tuple[Term, ...]:
    return geometric.digits(rate).terms()


@lru_cache(maxsize=256)
def laplace_certificate(rate: Fraction, sensitivity: int) -> LaplaceCertificate:
    """The certificate of discrete Laplace noise before it saturates at int32."""
    return _certificate(rate, sensitivity, geometric.digits(rate))


def _certificate(rate: Fraction, sensitivity: int, tables: geometric.Digits) -> LaplaceCertificate:
    """The loss is ln(distortion e^(rate sensitivity)) <= rate sensitivity + (distortion - 1)."""
    rounding = rounded_up(Fraction(geometric.distortion(tables, rate)) - 1)
    reach = geometric.ideal(rate).reach
    edge = tail(tables.terms(), reach - sensitivity + 1)
    return LaplaceCertificate(rate * sensitivity + rounding, reach, edge)


def _within_int32(
    found: LaplaceCertificate, sensitivity: int, terms: tuple[Term, ...]
) -> LaplaceCertificate:
    """The certificate after saturation: 2^31 - 1 collects the tail, so the reach ends before it."""
    if found.reach < LARGEST:
        return found
    return found._replace(reach=LARGEST - 1, edge_mass=tail(terms, LARGEST - sensitivity))
