"""`dpmic paper` in this process, on small data."""

import json

import numpy as np
import pytest
from commands import dpmic

from dpmic_jax.paper import (
    ablations,
    calibration,
    dependences,
    distances,
    shapes,
    synthetic,
    tuning,
)
from dpmic_jax.screening.calibration import shipped

TINY = tuning.Search(
    records=(25, 250),
    sets=(2, 1),
    geom_sets=1,
    cells=(6, 12),
    fineness=(2,),
    ratios=(1.5,),
)


def run(*words):
    return dpmic("paper", *words)


@pytest.fixture
def data(tmp_path, rng):
    """Files of the real ones' form, made up."""
    folder = tmp_path / "data"
    folder.mkdir()
    genes = [",".join(["time", *map(str, range(40, 270, 10))])]
    for gene in range(60):
        genes.append(",".join([f"G{gene}", *(f"{v:.2f}" for v in rng.normal(size=23))]))
    (folder / "Spellman.csv").write_text("\n".join(genes) + "\n")
    names = [f"S{index}" for index in range(11)]
    players = [",".join(["PLAYER", "Record_ID#", "SALARY", "ROOKIE", "POS", *names])]
    for player in range(60):
        numbers = rng.integers(0, 160, len(names))
        players.append(",".join([f"P {player}", str(player), "1000", "0", "2", *map(str, numbers)]))
    (folder / "baseball.csv").write_text("\n".join(players) + "\n")
    return folder


def test_tables_without_data_say_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.delenv("DPMIC_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    found = run("tables", "--out", tmp_path / "run")
    assert found.exit_code == 2
    assert "--data DIR or set DPMIC_DATA" in found.output
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_tables_are_written_and_go_on_from_their_parts(tmp_path, data):
    first = run("tables", "--quick", "--data", data, "--out", tmp_path / "run")
    assert first.exit_code == 0, first.output
    rows = json.loads((tmp_path / "run" / "tables.json").read_text())["rows"]
    assert {row["collection"]: row["pairs"] for row in rows} == {
        "Spellman23": 60,
        "Baseball": 55,
        "Spellman4381": 127,
    }
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.npz")}
    again = run("tables", "--quick", "--data", data, "--out", tmp_path / "run")
    assert again.output == first.output
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.npz")} == times


@pytest.mark.slow
def test_tuning_writes_a_table_that_the_package_can_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "QUICK", TINY)
    found = run("tune", "--quick", "--out", tmp_path)
    assert found.exit_code == 0, found.output
    table = json.loads((tmp_path / "tuned.json").read_text())
    assert table["command"] == "dpmic paper tune --quick"
    assert len(table["settings"]) == 2 * len(table["epsilons"])
    assert np.shape(table["calibration"][0]["values"]) == (189, 3)
    assert {row["n"] for row in table["published"]} == {25, 250}


@pytest.mark.slow
def test_a_folder_of_another_search_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "QUICK", TINY)
    assert run("tune", "--quick", "--out", tmp_path).exit_code == 0
    found = run("tune", "--out", tmp_path)
    assert found.exit_code == 2
    assert "other settings" in found.output


@pytest.mark.slow
def test_synthetic_figures_are_summed_up(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "RECORDS", (25,))
    found = run("synthetic", "--quick", "--out", tmp_path)
    assert found.exit_code == 0, found.output
    rows = json.loads((tmp_path / "synthetic.json").read_text())["rows"]
    assert {row["n"] for row in rows} == {25}
    errors = {(row["epsilon"], row["mechanism"]): row["error"] for row in rows}
    # Noise ten times as wide cannot help.
    assert errors[1.0, "ours"] < errors[0.1, "ours"]
    assert errors[1.0, "ours, MIC*"] < errors[1.0, "ours"]


def test_a_calibration_is_a_table_that_the_package_can_read(tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "RECORDS", (25,))
    monkeypatch.setattr(calibration, "SETS", (2,))
    found = run("calibrate", "--out", tmp_path / "table.json")
    assert found.exit_code == 0, found.output
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["command"] == "dpmic paper calibrate"
    assert np.shape(table["calibration"][0]["values"]) == (189, 3)
    assert len(table["functions"]) == len(table["mic_star"]) == 189


def test_distances_are_a_table_that_the_package_can_read(tmp_path, monkeypatch):
    # So few kinds have to weigh more, to be enough at every distance.
    few = [c._replace(share=20.0) for c in dependences._few_values() if c.kind.startswith("count")]
    monkeypatch.setattr(dependences, "curves", lambda: few)
    monkeypatch.setattr(distances, "RECORDS", (100,))
    monkeypatch.setattr(distances, "DEVIATIONS", (0.02,))
    monkeypatch.setattr(distances, "SETS", 1)
    found = run("distances", "--out", tmp_path / "table.json")
    assert found.exit_code == 0, found.output
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["command"] == "dpmic paper distances"
    assert np.shape(table["typical"]) == shipped().typical.shape
    assert np.shape(table["quantiles"]) == shipped().quantiles.shape
    (trial,) = table["tried"]
    assert (trial["n"], trial["noise"]) == (100, 0.02)
    assert 0.9 < trial["coverage"] <= 1


@pytest.mark.slow
def test_ablations_are_written(tmp_path, data, monkeypatch):
    monkeypatch.setattr(ablations, "GEOM_SETTINGS", ((8, 1), (9, 1), (10, 1)))
    monkeypatch.setattr(ablations, "OWN_SETTINGS", ((9, 1),))
    monkeypatch.setattr(ablations, "PARTS", (2, 32))
    monkeypatch.setattr(shapes, "_DEVIATIONS", (0.05,))
    found = run("tried", "--quick", "--data", data, "--out", tmp_path)
    assert found.exit_code == 0, found.output
    content = json.loads((tmp_path / "tried.json").read_text())
    assert [row["B"] for row in content["geom"]] == [8, 9, 10, 9, 10]
    coarse, fine = content["parts"]
    # Two parts see nothing of what turns within them.
    assert coarse["1"] > 1.5 * fine["1"]
    assert {row["n"] for row in content["finer"]} == {250}
    assert all(0.5 < row["finer_wsum"] / row["wsum"] < 1.5 for row in content["finer"])
    errors = {(r["n"], r["epsilon"], r["mechanism"]): r["circle"] for r in content["others"]}
    # More records, and less noise, help the statistic that is consistent.
    assert errors[1000, 1.0, "ours"] < errors[250, 0.1, "ours"]


def test_a_page_needs_all_results(tmp_path):
    found = run("page", tmp_path, "--out", tmp_path / "page.md")
    assert found.exit_code == 2
    assert "run `dpmic paper tables --out" in found.output
