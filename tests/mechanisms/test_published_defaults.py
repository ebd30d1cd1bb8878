import pytest

from dpmic_jax.mechanisms import published_defaults
from dpmic_jax.mic.statistics import MICr

# Table 2 of the paper, (c, B), as printed: n by mechanism and epsilon.
TABLE_2 = """
n = 25    (2, 12)   (2, 6)   (5, 8)    (5, 6)
n = 250   (1, 40)   (2, 10)  (5, 40)   (5, 40)
n = 500   (1, 40)   (2, 20)  (5, 60)   (5, 80)
n = 1000  (1, 60)   (2, 40)  (5, 80)   (5, 100)
n = 5000  (1, 150)  (1, 40)  (5, 150)  (5, 125)
n = 10000 (1, 150)  (1, 80)  (5, 150)  (5, 150)
"""
RULES = [
    (published_defaults.micr_geom, 1.0),
    (published_defaults.micr_geom, 0.1),
    (published_defaults.micr_lap, 1.0),
    (published_defaults.micr_lap, 0.1),
]


def test_is_table_2_at_its_points():
    for line in TABLE_2.strip().splitlines():
        n, *entries = line.removeprefix("n =").replace("(", " ").replace(",", " ").split(")")[:-1]
        first = n.split()
        n, entries = int(first[0]), [first[1:], *(entry.split() for entry in entries)]
        for (rule, epsilon), (c, B) in zip(RULES, entries, strict=True):
            assert rule(n, epsilon) == MICr(B=int(B), c=float(c))


def test_is_linear_in_n_and_in_the_logarithm_of_epsilon():
    assert published_defaults.micr_lap(3000, 1.0).B == 115
    assert published_defaults.micr_lap(1000, 10**-0.5).B == 90
    assert published_defaults.micr_geom(1000, 10**-0.5).c == pytest.approx(1.5)


def test_stays_at_the_edge_of_the_table_outside_it():
    assert published_defaults.micr_lap(4, 50.0) == published_defaults.micr_lap(25, 1.0)
    assert published_defaults.micr_lap(10**7, 1e-4) == published_defaults.micr_lap(10_000, 0.1)
