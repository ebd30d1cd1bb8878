"""The 21 functions of appendix E.2.1 of the MIC paper (Lazarsfeld, Johnson and Adeniran 2022)."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

Values = Float[np.ndarray, "*shape"]
Function = Callable[[Values], Values]


def _cubic(x: Values) -> Values:
    return 10 * (x - 0.6) ** 3 + 2 * x**2 + 1.5 - 3 * x


def _spike(x: Values) -> Values:
    return np.select([x <= 0.0528, x < 0.1], [18 * x, 1.9 - 18 * x], (1 - x) / 9)


def _lopsided_l(x: Values) -> Values:
    return np.select([x <= 0.0051, x < 0.01], [190 * x, 1.99 - 198 * x], (1 - x) / 99)


# The paper prints the line of F3 and F4 as 2(x - 0.05). The authors' code has 2(x - 0.25), which is
# used here: its line passes through the centre of the unit square, and F3 stays in the square
# between its first and its last point there. As printed, F3 leaves the square in between, and
# neither function comes near the right third of it, which only noise would reach
# (tests/paper/test_functions.py).
FUNCTIONS: dict[str, Function] = {
    "F1": lambda x: 0.2 * np.sin(12 * x - 6) + 1.1 * (x - 1) + 1,
    "F2": lambda x: 0.15 * np.sin(11 * np.pi * x) + x + 0.05,
    "F3": lambda x: 0.1 * np.sin(48 * x) + 2 * (x - 0.25),
    "F4": lambda x: 0.2 * np.sin(48 * x) + 2 * (x - 0.25),
    "F5": lambda x: 0.4 * np.cos(7 * np.pi * x) + 0.5,
    "F6": lambda x: 0.4 * np.cos(14 * np.pi * x) + 0.5,
    "F7": _cubic,
    "F8": lambda x: 4 * _cubic(x) - 1.4,
    "F9": lambda x: np.where(x <= 0.99, x / 99, 99 * x - 98),
    "F10": lambda x: 2**x - 1,
    "F11": lambda x: 8 ** (x - 0.3) - 1,
    "F12": lambda x: x,
    "F13": lambda x: 4 * (x - 0.5) ** 2 + 0.1,
    "F14": lambda x: 0.4 * np.sin(9 * np.pi * x) + 0.5,
    "F15": lambda x: 0.4 * np.sin(8 * np.pi * x) + 0.5,
    "F16": lambda x: 0.4 * np.sin(16 * np.pi * x) + 0.5,
    "F17": lambda x: np.select([x < 0.491, x <= 0.509], [0.05, 50 * (x - 0.5) + 0.5], 0.95),
    "F18": lambda x: 0.4 * np.cos(5 * np.pi * x * (1 + x)) + 0.5,
    "F19": lambda x: 0.4 * np.sin(6 * np.pi * x * (1 + x)) + 0.5,
    "F20": _spike,
    "F21": _lopsided_l,
}
