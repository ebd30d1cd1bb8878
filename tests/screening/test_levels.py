"""The table of what MICr is on independent columns, against simulation at other n and draws."""

import itertools
import json
import math
from importlib import resources

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kurtosis

from dpmic_jax import MICr
from dpmic_jax.mic.grids import all_sizes, definition, ladder
from dpmic_jax.paper import levels as making
from dpmic_jax.screening import default_screen_statistic, simulation
from dpmic_jax.screening.levels import MOST_RECORDS, shipped
from dpmic_jax.screening.simulation import micr_values

FILE = resources.files("dpmic_jax.screening").joinpath("levels.json")
TABLE = json.loads(FILE.read_text())
COLUMNS = 64
# What a line between two n of the table misses of n times the mean and n times the deviation.
BENT = 0.02


def written(row):
    sizes = all_sizes if row["ratio"] == 1 else ladder(row["ratio"])
    return MICr(B=row["B"], c=row["c"], sizes=sizes)


@given(st.floats(math.log(4), math.log(1e7)), st.floats(-12, 6))
def test_every_default_is_in_the_table(log_n, log_epsilon):
    n = round(math.exp(log_n))
    assert shipped(default_screen_statistic(n, math.exp(log_epsilon)), min(n, MOST_RECORDS))


@pytest.mark.parametrize("n", [4, 24, 25, 26, 49, 51, 99, 101, 251, 501, 1001, 2501, 5001, 10**5])
def test_every_default_near_an_entry_of_the_table_of_defaults_is_in_it(n):
    for epsilon in (0.01, 0.1, 0.1001, 0.12, 0.2, 0.299, 0.3, 0.301, 0.9, 1.0, 2.0, 3.0, 10.0):
        assert shipped(default_screen_statistic(n, epsilon), min(n, MOST_RECORDS))


@pytest.mark.parametrize(
    ("statistic", "n"),
    [
        (MICr(B=4, c=2), 9),
        (MICr(B=6, c=3), 13),
        (MICr(B=8, c=5), 27),
        (MICr(B=12, c=5), 90),
        pytest.param(MICr(B=40, c=5, sizes=ladder(1.5)), 181, marks=pytest.mark.slow),
        pytest.param(MICr(B=80, c=5, sizes=ladder(1.5)), 724, marks=pytest.mark.slow),
        pytest.param(MICr(B=150, c=5, sizes=ladder(1.5)), 2900, marks=pytest.mark.slow),
        pytest.param(MICr(B=150, c=5, sizes=ladder(1.25)), 12_800, marks=pytest.mark.slow),
    ],
)
def test_between_its_n_the_table_is_what_a_simulation_of_other_columns_gives(rng, statistic, n):
    assert n not in making.RECORDS
    pairs = np.array(list(itertools.combinations(range(COLUMNS), 2)))
    values = micr_values(statistic)(list(rng.random((COLUMNS, n))), pairs)
    direct, table = np.array([values.mean(), values.std()]), np.array(shipped(statistic, n))
    # The variance of a sample's mean, and of its deviation, which depends on the fourth moment.
    peaked = kurtosis(values, fisher=False)
    one = values.std() * np.sqrt([1, (peaked - 1) / 4])
    errors = one * math.sqrt(1 / len(pairs) + 2 / TABLE["columns"] / (TABLE["columns"] - 1))
    assert (np.abs(table - direct) < 4 * errors + BENT * direct).all()
    # The gate is no wider than what tells one setting from the next.
    assert (4 * errors + BENT * direct < 0.25 * direct).all()


@pytest.mark.parametrize("n", [11, 45])
def test_at_its_n_the_table_is_to_the_last_digit_what_its_seed_gives(n):
    row = next(row for row in TABLE["MICr"] if (row["B"], row["c"]) == (8, 5))
    made = making.tabulated(micr_values(written(row)), [n], TABLE["columns"])
    at = row["n"].index(n)
    assert (made["mean"][0], made["deviation"][0]) == (row["mean"][at], row["deviation"][at])


def test_one_grid_of_four_cells_has_the_law_of_chi_square():
    """2 n ln 2 times the information of a 2 x 2 table is chi-square of one degree, in the limit."""
    row = next(row for row in TABLE["MICr"] if (row["B"], row["c"]) == (4, 1))
    one, pairs = 1 / (2 * math.log(2)), TABLE["columns"] * (TABLE["columns"] - 1) / 2
    # Of mean 1, variance 2 and kurtosis 15.
    mean, deviation = one, one * math.sqrt(2)
    for n, *found in zip(row["n"], row["mean"], row["deviation"], strict=True):
        if n >= 256:
            assert abs(found[0] - mean) < 4 * deviation / math.sqrt(pairs)
            assert abs(found[1] - deviation) < 4 * deviation * math.sqrt(14 / 4 / pairs)


def test_it_is_a_line_in_the_logarithm_of_n_between_two_n():
    row = TABLE["MICr"][0]
    for (low, below), (high, above) in itertools.pairwise(zip(row["n"], row["mean"], strict=True)):
        for n in {low, round(math.sqrt(low * high)), high}:
            share = math.log(n / low) / math.log(high / low)
            wanted = ((1 - share) * below + share * above) / n
            assert shipped(written(row), n).mean == pytest.approx(wanted, rel=1e-12)


def test_what_scores_the_same_grids_has_the_same_level():
    one, other = MICr(B=8, c=5), MICr(B=8.5, c=5.01, sizes=ladder(1.1))
    assert one.grids(50) == other.grids(50)
    assert shipped(one, 50) == shipped(other, 50)
    assert shipped(MICr(B=lambda n: n**0.5, c=5), 64) == shipped(one, 64)


@pytest.mark.parametrize(
    "statistic",
    [
        MICr(B=9, c=1),
        MICr(B=150, c=5),
        MICr(B=150, c=4, sizes=ladder(1.25)),
        MICr(B=60, c=5, sizes=ladder(1.5), master=definition),
    ],
)
def test_other_settings_are_not_in_the_table(statistic):
    assert shipped(statistic, 5000) is None


def test_n_outside_of_the_table_is_not_found():
    assert shipped(MICr(B=4, c=1), 3) is None
    assert shipped(MICr(B=4, c=1), MOST_RECORDS + 1) is None
    assert shipped(MICr(B=150, c=5, sizes=ladder(1.5)), 1000) is None


def test_the_file_says_how_it_was_made_and_is_small():
    assert TABLE["command"] == "dpmic paper levels"
    assert (TABLE["seed"], TABLE["columns"]) == (simulation.SEED, making.COLUMNS)
    assert len(FILE.read_bytes()) < 50_000


def test_more_cells_and_finer_masters_find_more_by_chance():
    known = {written(row): row for row in TABLE["MICr"]}
    for one, other in itertools.permutations(known, 2):
        if set(one.grids(0)) < set(other.grids(0)):
            assert known[one]["mean"][-1] < known[other]["mean"][-1]
