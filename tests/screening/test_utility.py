"""Right answers on the demo table come as often as `preview` says."""

import pytest

from benchmarks import utility

SETTINGS = [(epsilon, delta) for epsilon in utility.EPSILONS for delta in utility.DELTAS]


def check(row):
    low, high = row["interval"]
    assert low <= row["right"] <= high
    if row["epsilon"] == 1.0 and row["delta"] == 1e-6:
        assert row["strong_found"] >= 0.95 * row["keys"]


@pytest.mark.slow
@pytest.mark.parametrize(("ask", "delta"), [(utility.ASKS[0], 1e-6), (utility.ASKS[1], 0.0)])
def test_right_answers_are_as_many_as_expected(ask, delta):
    check(utility.measure(ask, 1.0, delta, keys=40))


@pytest.mark.slow
@pytest.mark.parametrize("ask", utility.ASKS, ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_right_answers_of_100_keys_are_as_many_as_expected(ask, epsilon, delta):
    check(utility.measure(ask, epsilon, delta, keys=100))
