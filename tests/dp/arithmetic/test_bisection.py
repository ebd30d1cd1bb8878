import math

import pytest

from dpmic_jax.dp.arithmetic.bisection import bisect, doubled


@pytest.mark.parametrize("root", [1e-9, 0.3, 1.0, 7.7, 1e6])
def test_the_bracket_encloses_the_root_to_12_digits(root):
    found = doubled(lambda x: x <= root, 1.0)
    found = bisect(lambda x: x <= root, *found)
    assert found.holds <= root < found.fails
    assert found.fails - found.holds <= 1e-12 * found.fails


def test_steps_halve_the_bracket():
    found = bisect(lambda x: x <= 0.3, 0.0, 1.0, steps=5)
    assert found.fails - found.holds == 2**-5
    assert found.holds <= 0.3 < found.fails


def test_a_condition_that_always_holds_has_no_bracket():
    assert doubled(lambda x: True, 1.0, most=1000) is None
    assert doubled(lambda x: x < math.inf, 1.0) == (2.0**1023, math.inf)
