import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import dpmic_jax as dm
from dpmic_jax.mechanisms import tuned_defaults
from dpmic_jax.mechanisms.tuned_defaults import cheap_defaults, defaults
from dpmic_jax.mic.grids import all_sizes, evaluations, ladder
from dpmic_jax.mic.statistics import MICr

ROWS = {(row["n"], row["epsilon"]): row for row in tuned_defaults.settings()}
RULES = {"accurate": defaults, "cheap": cheap_defaults}


def sizes(ratio):
    return all_sizes if ratio == 1 else ladder(ratio)


@pytest.mark.parametrize("kind", RULES)
def test_is_the_table_at_its_points(kind):
    for (n, epsilon), row in ROWS.items():
        entry = row[kind]
        wanted = MICr(B=entry["B"], c=entry["c"], sizes=sizes(entry["ratio"]))
        assert RULES[kind](n, epsilon) == wanted


@pytest.mark.parametrize("kind", RULES)
def test_between_two_entries_it_is_their_geometric_middle_in_cells(kind):
    records = sorted({n for n, _ in ROWS})
    for low, high in itertools.pairwise(records):
        n = round(math.sqrt(low * high))
        ends = [ROWS[end, 1.0][kind] for end in (low, high)]
        found = RULES[kind](n, 1.0)
        middle = math.sqrt(ends[0]["B"] * ends[1]["B"])
        # n is rounded to a whole number, and so is B.
        assert abs(found.B - middle) <= 1 + 0.02 * middle
        assert min(e["c"] for e in ends) <= found.c <= max(e["c"] for e in ends)
        assert found.sizes == sizes(min(e["ratio"] for e in ends))


def test_outside_of_the_table_the_nearest_entry_is_used():
    n, epsilon = max(ROWS)
    assert defaults(100 * n, 100 * epsilon) == defaults(n, epsilon)
    n, epsilon = min(ROWS)
    assert defaults(2, epsilon / 100) == defaults(n, epsilon)


def test_the_table_covers_what_it_says():
    records, epsilons = ({key[i] for key in ROWS} for i in (0, 1))
    assert (min(records), max(records)) == (25, 10**6)
    assert (min(epsilons), max(epsilons)) == (0.1, 10.0)
    assert len(ROWS) == len(records) * len(epsilons)


def test_the_cheap_setting_costs_less_and_is_within_5_percent():
    for (n, _), row in ROWS.items():
        accurate, cheap = row["accurate"], row["cheap"]
        assert accurate["wsum"] <= cheap["wsum"] <= 1.05 * accurate["wsum"] + 1e-5
        work = []
        for entry in (accurate, cheap):
            statistic = MICr(B=entry["B"], c=entry["c"], sizes=sizes(entry["ratio"]))
            work.append(2 * sum(map(evaluations, statistic.grids(n))))
            assert work[-1] == entry["evaluations"]
        assert work[1] <= work[0]


def test_more_records_or_a_larger_epsilon_never_raise_the_error():
    for (n, epsilon), row in ROWS.items():
        for other in ROWS.values():
            # Sampling error of the data sets is below 3 %.
            if other["n"] >= n and other["epsilon"] >= epsilon:
                assert other["accurate"]["wsum"] <= 1.03 * row["accurate"]["wsum"]


def test_the_family_is_interpolated_in_the_logarithm_of_n():
    low, high = tuned_defaults.family(250), tuned_defaults.family(500)
    middle = tuned_defaults.family(354)  # 353.6 is the geometric middle
    np.testing.assert_allclose(middle.values, (low.values + high.values) / 2, atol=1e-3)
    assert middle.functions == low.functions
    assert len(set(middle.functions)) == 21
    assert middle.values.shape[0] == 189


def test_what_micr_was_comes_nearer_to_mic_star_as_n_grows():
    families = [tuned_defaults.family(n) for n in (25, 250, 2500, 10**5)]
    gaps = [np.abs(one.values - one.stars[:, None]).mean() for one in families]
    assert gaps == sorted(gaps, reverse=True)


def test_mechanisms_use_it_unless_told_otherwise():
    assert dm.MICrLap(epsilon=0.3).resolve(777) == defaults(777, 0.3)
    mine = MICr(B=30)
    assert dm.MICrLap(epsilon=0.3, statistic=mine).resolve(777) == mine
    assert replace(mine, c=3) != mine
