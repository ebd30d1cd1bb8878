"""The table of MICr on independent columns."""

import math

import pytest

from dpmic_jax import MICr
from dpmic_jax.mic.grids import ladder
from dpmic_jax.paper import levels
from dpmic_jax.paper.store import Store
from dpmic_jax.screening import default_screen_statistic
from dpmic_jax.screening.simulation import micr_values, simulated


@pytest.fixture(scope="module")
def found():
    return levels.default_settings()


def test_settings_are_those_of_the_default_rule_each_once_from_its_least_n(found):
    assert found[MICr(B=150, c=5, sizes=ladder(1.25))] == 5001
    assert MICr(B=4, c=1) in found
    assert len({statistic.grids(0) for statistic in found}) == len(found)
    # Beyond n = 100 steps of 2 % are tried.
    for n in (*range(4, 100), 150, 400, 3000):
        for epsilon in (0.001, 0.1, 0.13, 0.22, 0.5, 1.0, 4.0, 20.0):
            wanted = default_screen_statistic(n, epsilon).grids(0)
            (least,) = [start for one, start in found.items() if one.grids(0) == wanted]
            assert least <= 1.02 * n


def test_the_n_of_a_setting_begin_at_or_below_its_least(found):
    for least in found.values():
        first, *_, last = levels.needed(least)
        assert first == 4 or 1.02 * first <= least
        assert last == 20_000
    assert levels.needed(4)[:3] == (4, 5, 6)
    assert levels.needed(5001) == (4096, 8192, 20_000)


def test_any_statistic_is_tabulated_as_n_times_its_moments():
    def values(columns, pairs):
        return (pairs @ [1.0, 2.0]) / len(columns[0])

    made = levels.tabulated(values, (10, 100), columns=3)
    # Pairs 01, 02, 12 have 2, 4 and 5.
    assert made["n"].tolist() == [10, 100]
    assert made["mean"].tolist() == [3.6667, 3.6667]
    assert made["deviation"].tolist() == [round(math.sqrt(7 / 3), 4)] * 2


def test_a_table_resumes_from_finished_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(levels, "RECORDS", (4, 12))
    statistic, columns = MICr(B=4, c=1), 6
    description = levels.description({statistic: 4}, columns)

    def made():
        return levels.levels({statistic: 4}, columns, Store(tmp_path, description), "a command")

    first = made()
    assert (first["command"], first["columns"]) == ("a command", 6)
    (row,) = first["MICr"]
    assert {name: row[name] for name in ("B", "c", "ratio", "n")} == {
        "B": 4,
        "c": 1,
        "ratio": 1.0,
        "n": [4, 12],
    }
    mean, deviation = simulated(micr_values(statistic), 12, columns=6)
    assert (row["mean"][1], row["deviation"][1]) == (round(12 * mean, 4), round(12 * deviation, 4))
    monkeypatch.setattr(levels, "simulated", None)
    assert made() == first
    with pytest.raises(ValueError, match="other settings"):
        Store(tmp_path, levels.description({statistic: 4}, 7))
