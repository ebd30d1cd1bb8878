import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpmic_jax.inference import draws_needed, monte_carlo


def is_valid(p_of):
    """Whether P(p <= a) <= a for every way in which 5 exchangeable values can tie."""
    for values in itertools.product(range(3), repeat=5):
        # Exchangeable: each of the five is the observed one with chance 1/5.
        p = [p_of(values[i], np.array(values[:i] + values[i + 1 :])) for i in range(len(values))]
        if any(
            Fraction(sum(q <= a for q in p), 5) > Fraction(str(a)) for a in (0, 0.2, 0.4, 0.6, 0.8)
        ):
            return False
    return True


def test_p_values_are_valid_for_every_pattern_of_ties():
    def p_of(observed, drawn):
        as_large = monte_carlo.at_least(drawn.astype(float), np.full(4, float(observed))).sum()
        return round(float(monte_carlo.p_values(np.array([as_large]), 4)[0]), 12)

    assert is_valid(p_of)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda observed, drawn: (drawn >= observed).sum() / 4,
        lambda observed, drawn: (drawn > observed).sum() / 4,
        lambda observed, drawn: round((1 + (drawn > observed).sum()) / 5, 12),
    ],
    ids=["no + 1", "no + 1, ties for us", "ties for us"],
)
def test_similar_formulas_are_not_valid(wrong):
    assert not is_valid(wrong)


def test_rounding_counts_as_a_tie_and_more_does_not():
    observed = np.array([0.5, 0.5, 0.0, 3e-9])
    assert monte_carlo.at_least(observed * (1 - 5e-7), observed).all()
    assert not monte_carlo.at_least(observed[:2] * (1 - 2e-6), observed[:2]).any()
    assert not monte_carlo.at_least(np.array([2e-9]), observed[3:]).any()


def test_nan_raises_p():
    nan, one = np.array([np.nan]), np.array([1.0])
    assert monte_carlo.at_least(nan, one).all()
    assert monte_carlo.at_least(one, nan).all()


@pytest.mark.parametrize("level", [0.5, 0.05, 0.01, 1 / 3, 1e-3, 1e-9, 0.9, 1 / 49])
def test_draws_needed_is_the_fewest_that_reach_a_level(level):
    draws = draws_needed(level)
    assert 1 / (draws + 1) <= level
    assert draws == 1 or 1 / draws > level


@pytest.mark.parametrize("level", [0, 1, -0.1, 2, "0.05"])
def test_an_invalid_level_is_refused(level):
    with pytest.raises(ValueError, match="0 < level < 1"):
        draws_needed(level)
