"""Right answers on the demo table come as often as `preview` says."""

import pytest
from scipy.stats import binom

from benchmarks import utility

SETTINGS = [(epsilon, delta) for epsilon in utility.EPSILONS for delta in utility.DELTAS]


def check(row):
    low, high = row["interval"]
    assert low <= row["right"] <= high
    # A top 8 has no room to spare for 8 dependent pairs: what it finds is said of a single one.
    if row["ask"] == "all pairs" and row["smallest"] <= row["weakest"]:
        assert row["starred"] >= binom.ppf(1e-3, row["keys"], 0.95)


@pytest.mark.slow
@pytest.mark.parametrize(("ask", "delta"), [(utility.ASKS[0], 1e-6), (utility.ASKS[1], 0.0)])
def test_right_answers_are_as_many_as_expected(ask, delta):
    check(utility.measure(ask, 0.03, delta, keys=40))


@pytest.mark.slow
@pytest.mark.parametrize("ask", utility.ASKS, ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_right_answers_of_100_keys_are_as_many_as_expected(ask, epsilon, delta):
    check(utility.measure(ask, epsilon, delta, keys=100))
