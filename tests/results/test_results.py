import dataclasses
import gc
import os
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from made_results import NAMES, estimated_of, result_of, statement_of

from dpmic_jax.results import ScreenResult, backend_of


def test_rows_are_the_released_values_strongest_first():
    mic = [0.2, 0.9, 0.2, 0.4]
    pairs = np.array([(4, 1), (0, 2), (3, 1), (1, 0)])
    found = result_of(pairs=pairs, mic=np.array(mic), candidates=10)
    assert found.pairs.tolist() == [[0, 2], [1, 0], [3, 1], [4, 1]]
    assert found.ranked() == [
        (NAMES[i], NAMES[j], value)
        for (i, j), value in zip(found.pairs, [0.9, 0.4, 0.2, 0.2], strict=True)
    ]
    assert found == result_of(pairs=pairs[::-1], mic=np.array(mic[::-1]), candidates=10)


def four_rows():
    """Rows of which the weakest by MIC is the furthest from independence."""
    return result_of(
        pairs=np.array([(0, 1), (0, 2), (0, 3), (0, 4)]),
        mic=np.array([0.97, 0.31, 0.5, 0.02]),
        distance=np.array([0.075, 0.0751, 0.0, 0.9]),
        candidates=4,
    )


def test_a_row_is_called_dependent_by_its_distance_and_not_by_its_mic():
    found = four_rows()
    called = {
        tuple(pair): flag
        for pair, flag in zip(found.pairs.tolist(), found.dependent.tolist(), strict=True)
    }
    assert called == {(0, 1): False, (0, 2): True, (0, 3): False, (0, 4): True}


def test_dependent_rows_come_first_and_keep_their_limits_and_distances():
    found = four_rows()
    assert found.pairs.tolist() == [[0, 2], [0, 4], [0, 1], [0, 3]]
    assert found.mic.tolist() == [0.31, 0.02, 0.97, 0.5]
    np.testing.assert_allclose(found.lower, [0.27, 0, 0.93, 0.46])
    np.testing.assert_allclose(found.upper, [0.35, 0.06, 1, 0.54])
    assert found.distance.tolist() == [0.0751, 0.9, 0.075, 0]
    few = found.top(3)
    assert few.ranked() == found.ranked()[:3]
    for name in ("lower", "upper", "distance", "dependent"):
        assert getattr(few, name).tolist() == getattr(found, name).tolist()[:3]


@pytest.mark.parametrize("exact", [0.0, 0.01, 0.5, 1.0])
def test_limits_cover_the_exact_value_as_often_as_they_say(rng, exact):
    draws, scale = 780, 0.1
    half_width = scale * np.log(20)  # 95 % of Laplace noise is within this
    names = tuple(f"x{i}" for i in range(40))
    noisy = np.clip(exact + rng.laplace(0, scale, draws), 0, 1)
    found = result_of(names, mic=noisy, half_width=half_width)
    covered = np.mean((found.lower <= exact) & (exact <= found.upper))
    assert covered > 0.95 - 3 * np.sqrt(0.95 * 0.05 / draws)
    narrow = result_of(names, mic=noisy, half_width=2 / 3 * half_width)
    if exact == 0.5:
        assert np.mean((narrow.lower <= exact) & (exact <= narrow.upper)) < 0.95


def test_matrix_holds_every_released_pair_and_nothing_else():
    found = result_of(pairs=np.array([(3, 1), (0, 2)]), mic=np.array([0.5, 0.25]))
    matrix = found.matrix
    np.testing.assert_array_equal(matrix, matrix.T)
    assert matrix[1, 3] == 0.5
    assert matrix[2, 0] == 0.25
    assert np.all(np.diag(matrix) == 1)
    assert np.isnan(matrix).sum() == 25 - 5 - 4


def test_top_is_the_head_of_the_ranking():
    found = result_of()
    few = found.top(3)
    assert few.ranked() == found.ranked()[:3]
    assert few.statement == found.statement
    assert (few.candidates, few.dependence_threshold) == (
        found.candidates,
        found.dependence_threshold,
    )
    assert few.ask == "all pairs, strongest 3 shown"
    assert found.top(10) is found
    with pytest.raises(ValueError, match="k >= 1"):
        found.top(0)


@pytest.mark.parametrize("rows", [10, 0])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_are_of_the_callers_library(make, rows):
    frame = make({"a": [1.0, 2.0]})
    pairs = result_of().pairs[:rows]
    found = result_of(pairs=pairs, mic=np.linspace(0, 1, rows), backend=backend_of(frame))
    tidy = found.to_frame()
    assert type(tidy) is type(frame)
    table = tidy if isinstance(tidy, pa.Table) else pa.table(tidy)
    assert table.column_names == [
        *("x", "y", "mic", "lower", "upper", "distance", "dependent", "decided_by"),
    ]
    columns = table.to_pydict()
    assert list(zip(columns["x"], columns["y"], columns["mic"], strict=True)) == found.ranked()
    for name in ("lower", "upper", "distance", "dependent"):
        assert columns[name] == getattr(found, name).tolist(), name
    assert columns["decided_by"] == ["distance"] * rows


def test_results_of_arrays_are_pandas_frames():
    assert backend_of(np.ones((3, 2))) is None
    assert isinstance(result_of().to_frame(), pd.DataFrame)


def reachable(start):
    """Every object that can be reached from an instance, but through classes and modules."""
    seen, left = {}, [start]
    while left:
        here = left.pop()
        if id(here) not in seen and not isinstance(here, type | type(os)):
            seen[id(here)] = here
            left += gc.get_referents(here)
            left += [here.base] if isinstance(here, np.ndarray) and here.base is not None else []
    return seen


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_result_keeps_no_reference_to_the_data(make):
    data = {name: np.arange(50.0) for name in NAMES}
    frame = make(data)
    names = frame.column_names if isinstance(frame, pa.Table) else frame.columns
    store = np.full((10, 3), 0.5)  # a view of it must not keep it
    found = result_of(tuple(names), mic=store[:, 0], backend=backend_of(frame))
    seen = reachable(found)
    assert id(found.mic) in seen
    assert id(found.statement) in seen
    assert not {id(thing) for thing in (frame, data, store, *data.values())} & set(seen)
    assert not any(isinstance(thing, type(frame)) for thing in seen.values())
    arrays = [thing for thing in seen.values() if isinstance(thing, np.ndarray)]
    # Two positions, MIC, its two limits and the distance of each pair.
    assert sum(array.size for array in arrays) <= 6 * len(found.mic)


def test_a_result_cannot_be_changed():
    pairs, mic = np.array([(0, 1)]), np.array([0.5])
    found = result_of(pairs=pairs, mic=mic)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.noise_sd = 0.1
    for name in ("pairs", "mic", "lower", "upper", "distance"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[0] = 1
    pairs[0], mic[0] = (2, 3), 0.75  # still the caller's own
    assert found.ranked() == [("age", "dose", 0.5)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.statement.epsilon = 0.1


def test_results_that_differ_are_not_equal():
    found = result_of()
    changes = {
        "names": (*NAMES[:-1], "other"),
        "mic": np.nextafter(found.mic, 0),
        "lower": np.nextafter(found.lower, 0),
        "upper": np.nextafter(found.upper, 1),
        "distance": np.nextafter(found.distance, 0),
        "noise_sd": 0.021,
        "distance_noise_sd": 0.0011,
        "dependence_threshold": 0.076,
        "candidates": 11,
        "ask": "top 10",
        "statement": statement_of(ledger=None),
    }
    for name, value in changes.items():
        assert dataclasses.replace(found, **{name: value}) != found, name
    assert dataclasses.replace(found, backend="polars") == found
    assert found != "found"


def test_text_is_a_short_table_with_bars():
    names = (*(f"column_{i}" for i in range(9)), "bell\a\x1b[2J" + 50 * "long")
    found = result_of(names)
    lines = str(found).splitlines()
    assert len(lines) == 1 + 15 + 2
    at = lines[0].index("distance")
    for row, line in enumerate(lines[1:16]):
        mic, distance = found.mic[row], found.distance[row]
        assert line.startswith(found.ranked()[row][0][:4])
        assert f"  {mic:.3f}  {found.lower[row]:.2f} to {found.upper[row]:.2f}  " in line
        assert line[at:].startswith(f"{distance:.3f}{'*' if distance > 0.075 else ' '} ")
        assert line.count("#") == round(30 * mic)
    assert all(line.isprintable() for line in found.text(rows=45).splitlines())
    assert len(found.text(rows=45).splitlines()) == 1 + 45 + 2
    assert "45 of 45 pairs of 10 columns (all pairs)" in lines[-2]
    assert "distance from independence above 0.075" in lines[-2]
    assert "Noise on MIC: sd 0.02." in lines[-2]


def test_an_estimate_is_called_one():
    found = estimated_of()
    for text in (str(found), found._repr_html_(), found.statement.text()):
        assert "MIC is estimated from the distance" in text
    for text in (found._repr_html_(), found.statement.text()):
        assert "sampling and the error of the estimate" in text
    for text in (str(found), found._repr_html_()):
        assert "Noise on MIC" not in text
    assert "noise only" not in found._repr_html_()
    assert "estimate" not in str(result_of()) + result_of()._repr_html_()


def test_nothing_released_is_a_result_too(tmp_path):
    none = result_of(pairs=np.empty((0, 2), int), mic=np.empty(0))
    assert ScreenResult.from_json(none.to_json()) == none
    none.to_parquet(tmp_path / "none")
    assert ScreenResult.from_parquet(tmp_path / "none") == none
    none.to_csv(tmp_path / "none")
    assert list(pd.read_csv(tmp_path / "none")) == [*none.to_frame(), "privacy"]
    assert "0 of 10 pairs" in str(none)
    assert "0 of 10 pairs" in none._repr_html_()


def test_missing_libraries_are_named(tmp_path, monkeypatch):
    found = result_of()
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        found.to_frame()
    with pytest.raises(ImportError, match=r"dpmic_jax\[files\]"):
        found.to_parquet(tmp_path / "found")


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"names": ("a", "b", "c", "d", "d")}, ValueError, "each once"),
        ({"names": ("a", "b", "c", "d", 5)}, TypeError, "strings"),
        ({"pairs": np.array([(0, 5)]), "mic": np.ones(1)}, ValueError, "positions"),
        ({"pairs": np.array([(0, -1)]), "mic": np.ones(1)}, ValueError, "positions"),
        ({"pairs": np.array([(2, 2)]), "mic": np.ones(1)}, ValueError, "two different"),
        ({"pairs": np.array([(0, 1), (1, 0)]), "mic": np.ones(2)}, ValueError, "twice"),
        ({"pairs": np.array([(0.0, 1.0)]), "mic": np.ones(1)}, ValueError, "whole numbers"),
        ({"mic": np.ones(9)}, ValueError, "one for each value of mic"),
        ({"distance": np.ones(9)}, ValueError, "one for each value of distance"),
        ({"distance": np.full(10, 1.01)}, ValueError, "distance in"),
        ({"lower": np.full(10, np.nan)}, ValueError, "lower in"),
        ({"lower": np.ones(10)}, ValueError, "lower <= mic <= upper"),
        ({"upper": np.zeros(10)}, ValueError, "lower <= mic <= upper"),
        ({"mic": np.full(10, np.nan)}, ValueError, "mic in"),
        ({"mic": np.full(10, 1.01)}, ValueError, "mic in"),
        ({"noise_sd": float("inf")}, ValueError, "noise_sd"),
        ({"noise_sd": None}, ValueError, "noise_sd=None just if"),
        ({"statement": statement_of(micr=None)}, ValueError, "micr=None"),
        ({"distance_noise_sd": -0.1}, ValueError, "distance_noise_sd"),
        ({"dependence_threshold": float("nan")}, ValueError, "dependence_threshold"),
        ({"candidates": 9}, ValueError, "candidates >= 10"),
        ({"ask": "two\nlines"}, ValueError, "ask"),
        ({"statement": None}, TypeError, "statement"),
    ],
)
def test_bad_results_are_refused(change, error, text):
    with pytest.raises(error, match=text):
        result_of(**change)
