import math

import numpy as np
import pytest

from dpmic_jax.paper.functions import FUNCTIONS

# Appendix E.2.1 once more, number by number; `shift` is what it prints as 0.05 in F3 and F4.
sin, cos, pi = math.sin, math.cos, math.pi
X = [0, 0.003, 0.0051, 0.0052, 0.0099, 0.01, 0.05, 0.0528, 0.053, 0.07, 0.1, 0.101, 0.25, 0.4909]
X += [0.491, 0.5, 0.509, 0.5091, 0.6, 0.77, 0.99, 0.991, 0.999, 1]


def f3(x, shift):
    return 0.1 * sin(48 * x) + 2 * (x - shift)


def f4(x, shift):
    return 0.2 * sin(48 * x) + 2 * (x - shift)


def f9(x):
    if x <= 0.99:
        return x / 99
    return 99 * x - 98


def f17(x):
    if x < 0.491:
        return 0.05
    if x > 0.509:
        return 0.95
    return 50 * (x - 0.5) + 0.5


def f20(x):
    if x <= 0.0528:
        return 18 * x
    if x >= 0.1:
        return -1 * x / 9 + 1 / 9
    return -18 * x + 1.9


def f21(x):
    if x <= 0.0051:
        return 190 * x
    if x >= 0.01:
        return -1 * x / 99 + 1 / 99
    return -198 * x + 1.99


PRINTED = {
    "F1": lambda x: 0.2 * sin(12 * x - 6) + 1.1 * (x - 1) + 1,
    "F2": lambda x: 0.15 * sin(11 * x * pi) + (x + 0.05),
    "F3": lambda x: f3(x, 0.25),
    "F4": lambda x: f4(x, 0.25),
    "F5": lambda x: 0.4 * cos(7 * x * pi) + 0.5,
    "F6": lambda x: 0.4 * cos(14 * x * pi) + 0.5,
    "F7": lambda x: 10 * (x - 0.6) ** 3 + 2 * x**2 + (1.5 - 3 * x),
    "F8": lambda x: 4 * (10 * (x - 0.6) ** 3 + 2 * x**2 + (1.5 - 3 * x)) - 1.4,
    "F9": f9,
    "F10": lambda x: 2**x - 1,
    "F11": lambda x: 8 ** (x - 0.3) - 1,
    "F12": lambda x: x,
    "F13": lambda x: 4 * (x - 0.5) ** 2 + 0.1,
    "F14": lambda x: 0.4 * sin(9 * x * pi) + 0.5,
    "F15": lambda x: 0.4 * sin(8 * x * pi) + 0.5,
    "F16": lambda x: 0.4 * sin(16 * x * pi) + 0.5,
    "F17": f17,
    "F18": lambda x: 0.4 * cos(5 * x * pi * (1 + x)) + 0.5,
    "F19": lambda x: 0.4 * sin(6 * x * pi * (1 + x)) + 0.5,
    "F20": f20,
    "F21": f21,
}


def test_there_are_the_21_of_the_appendix_in_its_order():
    assert list(FUNCTIONS) == [f"F{number}" for number in range(1, 22)] == list(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_each_function_is_the_printed_one_in_all_its_branches(name):
    found = FUNCTIONS[name](np.array(X, float))
    np.testing.assert_allclose(found, [PRINTED[name](x) for x in X], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", PRINTED)
def test_a_function_sees_each_number_of_an_array_alone(name):
    grid = np.linspace(0, 1, 12).reshape(3, 4)
    together = FUNCTIONS[name](grid)
    assert together.shape == grid.shape
    alone = [FUNCTIONS[name](grid[place]) for place in np.ndindex(3, 4)]
    np.testing.assert_allclose(together.ravel(), alone, rtol=1e-13)


def reached(function, shift):
    """Evenly spaced points from where the graph enters the unit square to where it leaves it."""
    x = np.linspace(0, 1, 20_001)
    y = np.array([function(value, shift) for value in x])
    first, last = x[y >= 0][0], x[y <= 1][-1]
    points = np.linspace(first, last, 100)
    return points, np.array([function(value, shift) for value in points])


def test_f3_stays_in_the_square_between_its_ends_only_with_a_shift_of_a_quarter():
    """Why FUNCTIONS does not have the printed 2(x - 0.05)."""
    x, y = reached(f3, 0.25)
    assert ((y >= 0) & (y <= 1)).all()
    assert 0.25 < x.min() < x.max() < 0.78
    x, y = reached(f3, 0.05)
    assert not ((y >= 0) & (y <= 1)).all()
    assert x.max() < 0.54


def test_as_printed_f3_and_f4_would_leave_the_right_third_of_the_square_to_noise():
    for function in (f3, f4):
        x = np.linspace(2 / 3, 1, 10_001)
        assert min(function(value, 0.05) for value in x) > 1
