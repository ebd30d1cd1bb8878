"""Functions as settings: told apart by what they do."""

from functools import partial

import pytest

from dpmic_jax.causal import Kendall, MarginalMICr
from dpmic_jax.dp.accounting.callables import callable_name
from dpmic_jax.mic.grids import reshef
from dpmic_jax.mic.statistics import MICr


def adder(number):
    return lambda value: value + number


def scaled(value, factor=2):
    return value * factor


def test_functions_of_the_package_are_identified_by_name():
    assert callable_name(Kendall) == "Kendall"
    assert callable_name(reshef) == "reshef"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x + 1, lambda x: x - 1),
        (adder(1), adder(2)),
        (partial(scaled, factor=2), partial(scaled, factor=3)),
        (partial(scaled, 2), partial(scaled, 3)),
        (partial(scaled, 2), partial(adder, 2)),
        (
            partial(MarginalMICr, statistic=MICr(B=6)),
            partial(MarginalMICr, statistic=MICr(B=8)),
        ),
        (lambda x, by=1: x, lambda x, by=2: x),
        (lambda x: x in {1, 2}, lambda x: x in {3, 4}),
        (lambda x, *, by=1: x, lambda x, *, by=2: x),
    ],
)
def test_functions_that_do_different_things_have_different_names(one, other):
    assert callable_name(one) != callable_name(other)


def test_the_name_of_a_function_is_reproducible():
    """Also of a function that changes what it closes over: a run may go on after that."""
    seen = []

    def noting(value):
        seen.append(value)

    before = callable_name(noting)
    noting(1)
    assert callable_name(noting) == before
    assert callable_name(adder(1)) == callable_name(adder(1))
