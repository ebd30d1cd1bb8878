"""The noise of a screen: on distances, on MICr, and on the scores by which pairs are selected."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dpmic_jax.dp.accounting.composition import numerical
from dpmic_jax.dp.accounting.events import ZCDP, ApproximateDP, GaussianDP, Guarantee, PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, floor_to_float
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.noise.lattice import Lattice, LatticeCube, LatticeGauss
from dpmic_jax.dp.selection import (
    OneShotTopK,
    SingleThresholdSparseVector,
    SparseVector,
    ZCDPTopK,
)
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening.calibration import distance_of
from dpmic_jax.screening.queries import Above, TopK

ValueNoise = LatticeCube | LatticeGauss
Selector = OneShotTopK | ZCDPTopK | SparseVector | SingleThresholdSparseVector

# Resolutions to try for the lattice of a selector's scores, the finest first.
_SCORE_BITS = range(28, 9, -1)


class Choice(NamedTuple):
    """How pairs are selected.

    Attributes:
      selector: the selection mechanism.
      lattice: the lattice of its scores.
    """

    selector: Selector
    lattice: Lattice

    @property
    def scale(self) -> float:
        """Scale of the noise on scores, in units of the distance."""
        return float(1 / _rates(self.selector)[0]) / self.lattice.top

    @property
    def threshold_scale(self) -> float:
        """Scale of the noise on the threshold (`Above`), in units of the distance; or 0."""
        rate = _rates(self.selector)[1]
        return float(1 / rate) / self.lattice.top if rate else 0.0


@lru_cache(maxsize=64)
def _rates(selector: Selector) -> tuple[Fraction, Fraction | None]:
    """The rates of the noise on scores and on the threshold."""
    if isinstance(selector, OneShotTopK):
        return selector.rate, None
    if isinstance(selector, ZCDPTopK):
        # Rounds of the exponential mechanism select as Gumbel noise of this rate would.
        return selector.epsilon_each / (2 * selector.sensitivity), None
    if isinstance(selector, SingleThresholdSparseVector):
        return selector.queries.rate, selector.threshold_noise.rate
    # Algorithm 5 has Laplace noise on scores, of twice the scale of that on the threshold.
    return selector.threshold_noise.rate / 2, selector.threshold_noise.rate


class Noises(NamedTuple):
    """The noise of a screen, and what it costs.

    Attributes:
      distances: noise on each released distance.
      values: noise on each released MICr; None if none is released.
      statistic: the settings of MICr, or None.
      choice: how pairs are selected; None if the values of all of them are noised.
      guarantee: of the whole screen.
    """

    distances: ValueNoise
    values: ValueNoise | None = None
    statistic: MICr | None = None
    choice: Choice | None = None
    guarantee: Guarantee = PureDP(1.0)  # until `guarantee_of` is known


class Share(NamedTuple):
    """What may be spent on one part of a screen, in one of three units.

    Attributes:
      epsilon: of pure DP.
      mu_squared: mu^2 of Gaussian DP, for a screen with Gaussian noise only.
      rho: of zCDP.
    """

    epsilon: Fraction = Fraction(0)
    mu_squared: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def part(self, fraction: Fraction) -> "Share":
        """A fraction of it. All three units add up under composition."""
        return Share(*(fraction * unit for unit in self))


def value_noise(share: Share, sensitivity: Fraction, count: int) -> ValueNoise:
    """Noise on `count` values that one person moves together, each by at most `sensitivity`."""
    if share.epsilon:
        lattice = Lattice.for_cube(sensitivity)
        return LatticeCube(epsilon=share.epsilon, lattice=lattice, points=count)
    squared = share.mu_squared or 2 * share.rho
    lattice = Lattice.for_gauss(sensitivity, math.sqrt(count / squared))
    if share.mu_squared:
        return LatticeGauss.for_mu_squared(squared, lattice, draws=count)
    return LatticeGauss.for_rho(share.rho, lattice, draws=count)


def guarantee_of(noises: Noises, budget: Budget, count: int) -> Guarantee:
    """What a screen costs: the parts of its budget add up to all of it.

    Raises:
      ValueError: the errors of many inexact draws exceed the part of delta that is for them.
    """
    if isinstance(noises.distances, LatticeCube):
        failing = noises.choice.selector.guarantee.delta if noises.choice else 0.0
        return ApproximateDP(budget.epsilon, failing) if failing else PureDP(budget.epsilon)
    drawn = [each for each in (noises.distances, noises.values) if isinstance(each, LatticeGauss)]
    # The exponential mechanism is no Gaussian one: with it rhos add up.
    if noises.choice:
        errors = [count * each.certificate().total_variation for each in drawn]
    else:
        errors = [each.joint_certificate(count).total_variation for each in drawn]
    off = sum(errors, Fraction(0))
    if numerical(off, budget.epsilon) > budget.inexact:
        raise ValueError(f"{count} values are too many for Gaussian noise and this delta")
    off = ceil_to_float(off)
    return ZCDP(budget.rho, off) if noises.choice else GaussianDP(budget.mu, off)


def choice_of(ask: TopK | Above, share: Share, budget: Budget, sensitivity: Fraction) -> Choice:
    """The selector on the finest lattice whose noisy scores fit into 32 bits."""
    problem = ValueError("no lattice fits")
    for bits in _SCORE_BITS:
        steps = -(-(sensitivity * 2**bits) // 1)  # rounded up to whole points
        # At most 2047 steps, as on the lattice of values; the coarsest is tried in any case.
        if steps >= 2048 and bits > _SCORE_BITS[-1]:
            continue
        lattice = Lattice(bits=bits, sensitivity=steps)
        try:
            return Choice(_selector_on(lattice, ask, share, budget), lattice)
        except ValueError as error:
            problem = error
    raise ValueError(f"no noise for {ask} at epsilon={budget.epsilon:.3g}: {problem}")


def _selector_on(lattice: Lattice, ask: TopK | Above, share: Share, budget: Budget) -> Selector:
    if isinstance(ask, TopK):
        if share.rho:
            return ZCDPTopK(rho=share.rho, sensitivity=lattice.sensitivity, k=ask.k)
        return OneShotTopK(
            k=ask.k, epsilon=share.epsilon, sensitivity=lattice.sensitivity, top=lattice.top
        )
    threshold = lattice.floor(as_fraction(distance_of(ask.threshold)))
    shared = {
        "epsilon": share.epsilon,
        "sensitivity": lattice.sensitivity,
        "top": lattice.top,
        "threshold": threshold,
        "at_most": ask.at_most,
    }
    single = SingleThresholdSparseVector(**shared)
    try:
        approximate = SparseVector(delta=floor_to_float(budget.failures), **shared)
    except ValueError:  # delta is 0, or epsilon is beyond the theorem
        return single
    return min((single, approximate), key=_variance)


def _variance(selector: SparseVector | SingleThresholdSparseVector) -> Fraction:
    """Variance of the noise on a score less that on the threshold, in steps."""
    variance = sum((1 / rate**2 for rate in _rates(selector) if rate), Fraction(0))
    # Laplace noise has twice the variance of exponential noise of the same rate.
    return variance if isinstance(selector, SingleThresholdSparseVector) else 2 * variance
