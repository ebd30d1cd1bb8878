"""Numbers that the MIC paper prints: Tables 1, 2 and 3, and those in its text."""

from typing import NamedTuple

MECHANISMS = ("MICe-Lap", "MICr-Lap", "MICr-Geom")


class Cell(NamedTuple):
    """The median over data sets of the bias and of the variance of 100 releases."""

    bias: float
    variance: float


# Tables 1 (epsilon = 1) and 3 (epsilon = 0.1): by epsilon and collection, for `MECHANISMS`.
REAL: dict[tuple[float, str], tuple[Cell, Cell, Cell]] = {
    (1.0, "Spellman23"): (Cell(0.18, 0.23), Cell(0.14, 0.17), Cell(0.24, 0.01)),
    (1.0, "Baseball"): (Cell(0.30, 0.21), Cell(0.02, 0.02), Cell(0.06, 9e-4)),
    (1.0, "Spellman4381"): (Cell(0.26, 0.17), Cell(-0.01, 4e-4), Cell(0.02, 1e-4)),
    (0.1, "Spellman23"): (Cell(0.20, 0.24), Cell(0.19, 0.24), Cell(0.31, 0.05)),
    (0.1, "Baseball"): (Cell(0.36, 0.24), Cell(0.25, 0.18), Cell(0.33, 0.01)),
    (0.1, "Spellman4381"): (Cell(0.41, 0.24), Cell(0.03, 0.01), Cell(0.14, 8e-4)),
}
# Section 5.2: median over data sets of the average unsigned error at epsilon = 1.
UNSIGNED: dict[tuple[str, str], float] = {
    ("Spellman23", "MICe-Lap"): 0.46,
    ("Spellman23", "MICr-Lap"): 0.39,
    ("Spellman23", "MICr-Geom"): 0.25,
    ("Baseball", "MICr-Lap"): 0.097,
    ("Baseball", "MICr-Geom"): 0.068,
    ("Spellman4381", "MICr-Lap"): 0.016,
    ("Spellman4381", "MICr-Geom"): 0.019,
}
# Section 5.1, epsilon = 1, over the 189 distributions: least, median and largest bias at n = 5000,
# and the median variance at n = 250.
SYNTHETIC_BIAS = {"MICr-Lap": (-0.1, 0.01, 0.02), "MICr-Geom": (-0.37, 0.01, 0.04)}
SYNTHETIC_VARIANCE = {"MICr-Geom": 0.003}
# Table 2: (c, B) by n, for MICr-Geom at epsilon 1 and 0.1, and MICr-Lap at 1 and 0.1.
TABLE_2: dict[int, tuple[tuple[int, int], ...]] = {
    25: ((2, 12), (2, 6), (5, 8), (5, 6)),
    250: ((1, 40), (2, 10), (5, 40), (5, 40)),
    500: ((1, 40), (2, 20), (5, 60), (5, 80)),
    1000: ((1, 60), (2, 40), (5, 80), (5, 100)),
    5000: ((1, 150), (1, 40), (5, 150), (5, 125)),
    10_000: ((1, 150), (1, 80), (5, 150), (5, 150)),
}
