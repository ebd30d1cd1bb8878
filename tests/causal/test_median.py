"""The noisy median: levels by brute force, privacy exactly, the printed constants beside."""

import itertools
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, sqrt

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from dpmic_jax.causal.median import MedianCertificate, Scale, SmoothMedian, laplace_scale
from dpmic_jax.dp.audit.exact import exact_delta, replace_one

TINY = {"epsilon": 2.0, "delta": 0.05}


@dataclass(frozen=True, kw_only=True)
class Other(SmoothMedian):
    """The same mechanism with other constants and without its certificate."""

    own: Scale

    @property
    def scale(self):
        return self.own

    def certificate(self):
        return MedianCertificate(Fraction(0), Fraction(0), 0)


def distribution(mechanism):
    def of(values):
        return {out: mechanism.pmf(values, out) for out in range(mechanism.top + 1)}

    return of


def found_delta(mechanism, neighbourhoods):
    return exact_delta(distribution(mechanism), neighbourhoods, epsilon=mechanism.epsilon)


# --- levels ------------------------------------------------------------------------------


def changed(values, top):
    for place, new in itertools.product(range(len(values)), range(top + 1)):
        yield tuple(sorted((*values[:place], new, *values[place + 1 :])))


def middle(values):
    return sorted(values)[(len(values) + 1) // 2 - 1]


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_levels_are_those_of_the_local_sensitivity_within_k_changes(m):
    """By going through all neighbours, their neighbours, and so on."""
    top = 9 if m < 4 else 6
    mechanism = SmoothMedian(epsilon=2.0, delta=0.4, top=top)
    states = list(itertools.combinations_with_replacement(range(top + 1), m))
    near = {state: set(changed(state, top)) for state in states}
    reach = {s: max(abs(middle(s) - middle(t)) for t in near[s]) for s in states}
    first = [next(j for j, s in enumerate(mechanism.levels) if s >= a) for a in range(top + 1)]
    expected = {s: first[reach[s]] for s in states}
    for k in range(1, m + 1):
        reach = {s: max(reach[t] for t in near[s]) for s in states}
        expected = {s: max(expected[s], first[reach[s]] - k) for s in states}
    for state in states:
        assert mechanism.level(state) == expected[state]
        assert all(abs(mechanism.level(t) - mechanism.level(state)) <= 1 for t in near[state])
    assert len(set(expected.values())) > 1


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (8.0, 1e-3)])
def test_levels_grow_no_faster_than_beta_allows(epsilon, delta):
    mechanism = SmoothMedian(epsilon=epsilon, delta=delta)
    levels = mechanism.levels
    beta = epsilon / (2 * log(2 / delta))
    growth = np.diff(levels) / np.array(levels[:-1])
    assert levels[0] == np.ceil(1 / beta)
    assert (growth > 0).all()
    assert (growth <= beta).all()
    assert growth[-1] > 0.9 * beta
    assert levels[-2] < mechanism.top <= levels[-1]


def test_agreeing_values_have_the_least_noise_and_two_clusters_the_most():
    mechanism = SmoothMedian(epsilon=1.0, delta=1e-6)
    same = [1000] * 999
    assert mechanism.level(same) == 0
    heaps = [0] * 50 + [mechanism.top] * 51
    assert mechanism.level(heaps) >= len(mechanism.levels) - 2
    levels = [mechanism.level([1000] * m) for m in (11, 51, 101, 201)]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] < levels[0]


# --- privacy -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "top"),
    [(8.0, 0.3, 9), (20.0, 0.3, 9), pytest.param(2.0, 0.05, 14, marks=pytest.mark.slow)],
)
def test_every_neighbour_of_three_values_keeps_epsilon_and_delta(epsilon, delta, top):
    """On every data set, with the probabilities of the sampler itself."""
    mechanism = SmoothMedian(epsilon=epsilon, delta=delta, top=top)
    found = found_delta(mechanism, replace_one(range(top + 1), 3))
    assert found.high <= mechanism.certificate().delta_realised <= delta
    if epsilon > 2:  # otherwise no tail of the noise is within the range
        assert found.low > 0


def test_the_printed_laplace_constants_are_caught():
    """Definition 10 has the logarithm on the wrong side: scales grow far too fast."""
    alpha, beta = published_laplace_scale(**TINY)
    wrong = Other(**TINY, top=40, own=Scale(Fraction(alpha), Fraction(beta)))
    assert found_delta(wrong, [[(0, 40), (40, 40)], [(0, 1), (0, 40)]]).low > TINY["delta"]


def test_less_noise_is_caught():
    """A third of the noise."""
    alpha, beta = laplace_scale(**TINY)
    wrong = Other(**TINY, top=24, own=Scale(3 * alpha, beta))
    assert found_delta(wrong, [[(0, 24), (24, 24)], [(0, 0), (0, 24)]]).low > TINY["delta"]


@pytest.mark.parametrize(("more_alpha", "more_beta"), [(Fraction(3, 2), 1), (1, Fraction(3, 2))])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-4), (4.0, 1e-2)])
def test_the_certificate_refuses_constants_that_are_half_too_large(
    epsilon, delta, more_alpha, more_beta
):
    alpha, beta = laplace_scale(epsilon, delta)

    @dataclass(frozen=True, kw_only=True)
    class Wrong(SmoothMedian):
        @property
        def scale(self):
            return Scale(alpha * more_alpha, beta * more_beta)

    with pytest.raises(ArithmeticError, match="do not keep"):
        Wrong(epsilon=epsilon, delta=delta, top=4096)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.5, 1e-3), (20.0, 1e-9)])
def test_the_certificate_is_within_a_factor_of_about_two_of_delta(epsilon, delta):
    found = SmoothMedian(epsilon=epsilon, delta=delta, top=4096).certificate()
    assert found.epsilon_realised <= epsilon
    assert 0.4 * delta < found.delta_realised <= delta


@pytest.mark.parametrize("wide", [1, 12])
def test_two_levels_unclipped_keep_epsilon_and_delta(wide):
    """The noise alone, far from the ends of a range, at the shift and the levels of the proof."""
    mechanism = SmoothMedian(epsilon=1.0, delta=1e-2, top=64)
    noises = [mechanism.noise(wide), mechanism.noise(wide - 1)]
    shift, far = mechanism.levels[wide - 1], 25 * mechanism.levels[wide]
    places = range(-far, far + 1)
    more, less = (
        np.array([float(noise.pmf(x - move)) for x in places])
        for noise, move in zip(noises, (0, shift), strict=True)
    )
    for one, other in ((more, less), (less, more)):
        assert np.maximum(one - exp(1.0) * other, 0).sum() <= 1e-2


def test_releases_follow_their_pmf():
    mechanism = SmoothMedian(**TINY, top=24)
    values = [5, 9, 10]
    keys = jax.random.split(jax.random.key(5), 400)
    drawn = [mechanism.release(values, key=key) for key in keys]
    expected = np.array([float(mechanism.pmf(values, out)) for out in range(25)]) * len(drawn)
    assert expected.sum() == pytest.approx(len(drawn))
    assert scipy.stats.chisquare(np.bincount(drawn, minlength=25), expected).pvalue > 1e-3


# --- constants -----------------------------------------------------------------------------


def gaussian_scale(epsilon, delta):
    """alpha and beta for Gaussian noise (Nissim et al., Lemma 2.7 and after it, d = 1).

    With Laplace noise alpha is 13 to 19 times as large.
    """
    logarithm = log(2 / delta)
    return epsilon / (5 * sqrt(2 * logarithm)), epsilon / (4 * (1 + logarithm))


def published_laplace_scale(epsilon, delta):
    """Definition 10 of the supplement. The logarithm should divide."""
    return epsilon / 2, epsilon * log(1 / delta) / 2


def published_gaussian_scale(epsilon, delta):
    """Definition 10 of the supplement. It does not hold."""
    return epsilon / sqrt(log(1 / delta)), epsilon / (2 * log(1 / delta))


def gaussian_excess(shift, ratio, epsilon):
    """delta(epsilon) of N(0, 1) against N(shift, ratio^2)."""

    def excess(x):
        return max(
            scipy.stats.norm.pdf(x) - exp(epsilon) * scipy.stats.norm.pdf(x, shift, ratio), 0.0
        )

    edges = np.linspace(-40, 40, 161)
    return sum(
        scipy.integrate.quad(excess, a, b, epsabs=1e-14)[0] for a, b in itertools.pairwise(edges)
    )


def test_the_printed_gaussian_constants_fail_and_the_right_ones_hold():
    """Sliding by alpha and dilating by e^beta may each cost epsilon / 2 and delta / 2."""
    epsilon, delta = 1.0, 1e-6
    alpha, _ = published_gaussian_scale(epsilon, delta)
    assert gaussian_excess(alpha, 1.0, epsilon / 2) == pytest.approx(4.2e-3, rel=0.02)
    alpha, beta = gaussian_scale(epsilon, delta)
    assert gaussian_excess(alpha, 1.0, epsilon / 2) <= delta / 2
    assert gaussian_excess(0.0, exp(-beta), epsilon / 2) <= delta / 2
    assert gaussian_excess(0.0, exp(beta), epsilon / 2) <= delta / 2


def test_constants_are_those_of_nissim_and_others():
    alpha, beta = laplace_scale(1.0, 1e-6)
    assert alpha == Fraction(1, 2)
    assert float(beta) == pytest.approx(1 / (2 * log(2e6)), rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"epsilon": 33.0, "delta": 0.1}, "epsilon <= 32"),
        ({"epsilon": 1.0, "delta": 1e-13}, "1e-12 <= delta"),
        ({"epsilon": 1e-3, "delta": 1e-6}, "coarser range"),
        ({"epsilon": 1.0, "delta": 1e-6, "top": 0}, "1 <= top"),
    ],
)
def test_settings_without_a_guarantee_are_refused(settings, text):
    with pytest.raises(ValueError, match=text):
        SmoothMedian(**settings)
