import itertools

import numpy as np
import pytest
from real_data import REAL, with_real_data

from dpmic_jax.paper.collections import (
    COLLECTIONS,
    baseball,
    data_folder,
    spellman23,
    spellman4381,
)

GENES = {"YAL1": [0.5, -1.5, 2.5], "YAL2": [3.0, 3.25, 3.5], "YAL3": [-4.0, 0.0, 1.0]}
PLAYERS = [
    {"PLAYER": "A, Jr.", "Record_ID#": 1, "SALARY": 100, "ROOKIE": 0, "POS": 2, "G": 85, "TP": 0},
    {"PLAYER": "B", "Record_ID#": 2, "SALARY": 300, "ROOKIE": 1, "POS": 3, "G": 54, "TP": 0},
    {"PLAYER": "C", "Record_ID#": 3, "SALARY": 200, "ROOKIE": 0, "POS": 9, "G": 12, "TP": 0},
]
RATES = [0.25, 0.5, -0.75]


@pytest.fixture
def folder(tmp_path):
    """Three genes at three times, and three players with three statistics, the second constant."""
    genes = [" time,40,50,60", *(f"{name},{','.join(map(str, v))}" for name, v in GENES.items())]
    (tmp_path / "Spellman.csv").write_text("\n".join(genes) + "\n")
    rows = [",".join([*PLAYERS[0], "AVG"])]
    for player, rate in zip(PLAYERS, RATES, strict=True):
        cells = [f'"{cell}"' if "," in str(cell) else str(cell) for cell in player.values()]
        rows.append(",".join([*cells, str(rate)]))
    (tmp_path / "baseball.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def data_sets(collection):
    """The columns and the bounds of every pair."""
    for a, b in collection.pairs:
        yield (
            (collection.columns[a].tolist(), collection.columns[b].tolist()),
            (collection.bounds[a], collection.bounds[b]),
        )


def widened(values):
    """Section 5.2: a hundredth of the range more on both sides."""
    length = abs(max(values) - min(values))
    return pytest.approx((min(values) - length / 100, max(values) + length / 100), abs=1e-12)


def test_spellman23_has_each_gene_against_time(folder):
    found = spellman23(folder)
    assert found.n == 3
    assert found.bins == ()
    for ((times, gene), bounds), expected in zip(data_sets(found), GENES.values(), strict=True):
        assert times == [1, 2, 3]
        assert gene == expected
        assert bounds[0] == (0, 24)
        assert bounds[1] == widened(expected)


def test_spellman4381_has_each_pair_of_times_on_one_range_for_all(folder):
    found = spellman4381(folder)
    assert found.n == 3
    everything = list(itertools.chain(*GENES.values()))
    at_time = list(map(list, zip(*GENES.values(), strict=True)))
    expected = list(itertools.combinations(at_time, 2))
    for ((x, y), bounds), pair in zip(data_sets(found), expected, strict=True):
        assert (x, y) == pair
        assert bounds[0] == bounds[1] == widened(everything)


def test_baseball_has_each_pair_of_statistics_on_ranges_of_their_own(folder):
    found = baseball(folder)
    assert found.n == 3
    statistics = [[85, 54, 12], [0, 0, 0], RATES]
    expected = list(itertools.combinations(statistics, 2))
    for ((x, y), bounds), pair in zip(data_sets(found), expected, strict=True):
        assert (x, y) == pair
        for values, (low, high) in zip(pair, bounds, strict=True):
            if values == [0, 0, 0]:
                assert low < 0 < high
            else:
                assert (low, high) == widened(values)


def test_bins_are_those_of_figures_3_and_5(folder):
    assert spellman4381(folder).bins == (0, 0.1, 0.2, 0.3, 0.4, 1)
    assert baseball(folder).bins == (0, 0.2, 0.4, 0.6, 0.8, 1)


def test_collections_are_named_as_in_the_paper(folder):
    assert set(COLLECTIONS) == {"Spellman23", "Spellman4381", "Baseball"}
    for name, collection in COLLECTIONS.items():
        assert collection(folder).name == name


def test_a_folder_that_is_given_is_taken_before_the_variable(folder, monkeypatch):
    monkeypatch.setenv("DPMIC_DATA", str(folder / "nowhere"))
    assert data_folder(folder) == folder


def test_the_variable_is_taken_where_no_folder_is_given(folder, monkeypatch):
    monkeypatch.setenv("DPMIC_DATA", str(folder))
    assert data_folder(None) == folder


def test_without_either_the_shared_data_beside_the_project_are_taken(folder, monkeypatch):
    monkeypatch.delenv("DPMIC_DATA", raising=False)
    project, shared = folder / "project", folder / "shared" / "data"
    project.mkdir()
    shared.mkdir(parents=True)
    for name in ("Spellman.csv", "baseball.csv"):
        (folder / name).rename(shared / name)
    monkeypatch.chdir(project)
    assert data_folder(None).resolve() == shared.resolve()


def test_missing_files_are_named_with_both_ways_to_say_where_they_are(folder, monkeypatch):
    monkeypatch.setenv("DPMIC_DATA", str(folder))
    (folder / "baseball.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"no baseball\.csv in .*--data.*DPMIC_DATA"):
        data_folder(None)
    (folder / "Spellman.csv").unlink()
    both = r"no baseball\.csv and no Spellman\.csv in .*--data.*DPMIC_DATA"
    with pytest.raises(FileNotFoundError, match=both):
        data_folder(folder)


@with_real_data
@pytest.mark.parametrize(
    ("name", "pairs", "n"),
    [("Spellman23", 4381, 23), ("Spellman4381", 253, 4381), ("Baseball", 8256, 337)],
)
def test_the_real_collections_are_as_large_as_in_the_paper(name, pairs, n):
    found = COLLECTIONS[name](REAL)
    assert found.pairs.shape == (pairs, 2)
    assert len({tuple(sorted(pair)) for pair in found.pairs.tolist()}) == pairs
    assert found.n == n
    assert len(found.columns) == len(found.bounds)
    for column, (low, high) in zip(found.columns, found.bounds, strict=True):
        assert column.shape == (n,)
        # Not a number is no member of any range.
        assert low < column.min() <= column.max() < high


@with_real_data
def test_one_real_baseball_statistic_is_constant():
    constant = [column for column in baseball(REAL).columns if np.ptp(column) == 0]
    assert len(constant) == 1
