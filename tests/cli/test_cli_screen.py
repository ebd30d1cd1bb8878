"""`dpmic screen`: what it prints, what it writes, and how it ends."""

import json
import re

import pandas as pd
import pytest
from commands import NAMES, QUICK, N, bounds_file, dpmic, table_file

from dpmic_jax import LedgerFile, MICr, seeded_key
from dpmic_jax.mic.grids import ladder
from dpmic_jax.results import ScreenResult
from dpmic_jax.screening import AllPairs, TopK, screen

STAMP = "seeded: not for release"
PAIRS = 6


@pytest.fixture
def files(tmp_path):
    return table_file(tmp_path), "--bounds", bounds_file(tmp_path)


@pytest.fixture
def ledger(tmp_path, files):
    path = tmp_path / "ledger"
    done = dpmic("ledger", "init", path, "--epsilon", 20, "--bounds", files[2], "--name", "trial")
    assert done.exit_code == 0, done.output
    return path


def screened(files, *words, epsilon=20, seed=1):
    return dpmic("screen", *files, "--epsilon", epsilon, "--seed", seed, *QUICK, *words)


def test_a_ranked_table_and_its_statement_are_printed(files):
    done = screened(files)
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["x", "y", "mic", "95", "%", "limits", "distance"]
    assert rows[1][:2] == ["dose", "response"]
    starred = [any(word.endswith("*") for word in row) for row in rows[1 : PAIRS + 1]]
    # Those with a star come first, each group by falling MIC.
    order = [(star, float(row[2])) for star, row in zip(starred, rows[1:], strict=False)]
    assert starred[0]
    assert order == sorted(order, reverse=True)
    assert rows[-1][1:7] == ["not", "for", "release.", "epsilon", "=", "20,"]
    assert "Neighbouring tables" not in done.stdout
    assert "Neighbouring tables" in screened(files, "--statement").stdout.splitlines()[-1]


def test_json_is_one_object_with_what_the_library_finds(files):
    done = screened(files, "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert {"pairs", "privacy", "plan"} <= content.keys()
    assert len(content["pairs"]) == PAIRS
    for pair in content["pairs"]:
        assert {"x", "y", "mic", "lower", "upper", "distance", "dependent"} <= pair.keys()
        assert 0 <= pair["lower"] <= pair["mic"] <= pair["upper"] <= 1
    assert content["privacy"]["epsilon"] == 20
    assert content["plan"]["columns, records"] == f"4, {N}"
    here = screen(
        files[0],
        bounds=files[2],
        epsilon=20.0,
        ask=AllPairs(),
        key=seeded_key(1),
        statistic=MICr(B=12, c=2, sizes=ladder(1.25)),
    )
    assert ScreenResult.from_json(done.stdout) == here


def test_a_seed_repeats_a_run_and_is_stamped_on_everything(files, tmp_path):
    for words in ((), ("--json",), ("--ask", "top:2")):
        done = screened(files, *words, "--out", tmp_path / f"run{len(words)}{words[-1:]}")
        assert done.exit_code == 0, done.output
        assert STAMP in done.stdout
        assert f"Warning: {STAMP}" in done.stderr
    for run in tmp_path.glob("run*"):
        assert STAMP in (run / "result.csv").read_text()
        assert STAMP in (run / "result.json").read_text()
        assert set(pd.read_csv(run / "result.csv").x) <= set(NAMES)


def test_a_run_without_a_seed_is_secret_and_never_repeats(files):
    words = ("screen", *files, "--epsilon", 20, *QUICK, "--json")
    first, second = (dpmic(*words) for _ in range(2))
    assert re.fullmatch(r"\d+\.\d s\n", first.stderr)
    assert STAMP not in first.stdout
    found = [json.loads(done.stdout) for done in (first, second)]
    assert found[0]["privacy"]["key"] == "secret"
    assert found[0]["pairs"] != found[1]["pairs"]
    assert found[0]["privacy"]["run"] != found[1]["privacy"]["run"]


def test_there_is_no_default_epsilon(files):
    done = dpmic("screen", *files)
    assert done.exit_code == 2
    assert "Missing option '--epsilon'" in done.stderr


def test_a_run_is_charged_and_given_again_from_its_folder(files, ledger, tmp_path):
    words = ("--ledger", ledger, "--out", tmp_path / "run", "--json")
    first, second = (screened(files, *words) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    found = [json.loads(done.stdout) for done in (first, second)]
    assert found[0]["pairs"] == found[1]["pairs"]
    assert found[0]["privacy"]["ledger"].endswith("#1")
    assert len(LedgerFile.open(ledger).events) == 1
    assert sorted(entry.name for entry in (tmp_path / "run").iterdir()) == [
        *("lock", "result.csv", "result.json", "result.privacy.json", "run.json"),
    ]


def test_over_budget_is_exit_3_with_nothing_charged_or_kept(files, ledger, tmp_path):
    words = ("--ledger", ledger, "--out", tmp_path / "run")
    done = screened(files, *words, epsilon=20.5)
    assert done.exit_code == 3
    assert done.stdout == ""
    assert "20 of 20 is left; nothing was charged." in done.stderr
    assert LedgerFile.open(ledger).events == ()
    assert not (tmp_path / "run").exists()
    assert screened(files, *words).exit_code == 0
    assert screened(files, "--ledger", ledger, epsilon=0.1).exit_code == 3
    assert len(LedgerFile.open(ledger).events) == 1


def test_nothing_found_is_an_answer(files):
    done = screened(files, "--ask", "above:0.99:1", "--json", seed=3)
    assert json.loads(done.stdout)["pairs"] == []
    done = screened(files, "--ask", "above:0.99:1", seed=3)
    assert done.exit_code == 0, done.output
    assert "0 of 6 pairs" in done.stdout


def test_as_many_rows_are_shown_as_are_asked_for(files, tmp_path):
    shown = screened(files, "--top", 2).stdout.splitlines()
    assert len([line for line in shown if line.split()[0] in NAMES]) == 2
    assert shown[3].startswith("6 of 6 pairs")


@pytest.mark.parametrize(
    ("ask", "pairs"),
    [
        ("all", 6),
        ("top:2", 2),
        ("above:0.5:3", 1),
        ("against:dose", 3),
        ("between:age,dose/response,site", 4),
    ],
)
def test_every_query_can_be_written_as_an_option(files, ask, pairs):
    done = screened(files, "--ask", ask, "--json", epsilon=500)
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["pairs"]) == pairs


def test_options_reach_the_screen(files):
    plain = json.loads(screened(files, "--json").stdout)
    for words in (("--tile", 1), ("--rows", 7), ("--memory", 1), ("--devices", 2)):
        assert json.loads(screened(files, "--json", *words).stdout)["pairs"] == plain["pairs"]
    noisier = json.loads(screened(files, "--json", "--force", "--records-per-person", 3).stdout)
    assert noisier["distance_noise_sd"] > 2.9 * plain["distance_noise_sd"]
    assert noisier["privacy"]["relation"]["records"] == 3
    gauss = screened(files, "--json", "--delta", "0.5", "--force", epsilon=0.5)
    assert json.loads(gauss.stdout)["privacy"]["delta"] == 0.5


def test_a_screen_that_noise_would_hide_is_refused_uncharged(files, ledger):
    done = screened(files, "--ledger", ledger, epsilon=0.01)
    assert done.exit_code == 2
    assert "noise would hide every dependence" in done.stderr
    assert "--force" in done.stderr
    assert LedgerFile.open(ledger).events == ()
    assert screened(files, "--ledger", ledger, "--force", epsilon=0.01).exit_code == 0
    assert len(LedgerFile.open(ledger).events) == 1


def test_a_picture_is_drawn_or_refused_before_the_charge(files, ledger, tmp_path):
    for bad in (tmp_path / "no" / "map.png", tmp_path / "map.xyz", tmp_path):
        done = screened(files, "--ledger", ledger, "--heatmap", bad)
        assert done.exit_code == 2
        assert "--heatmap" in done.stderr
        assert LedgerFile.open(ledger).events == ()
    picture = tmp_path / "run" / "map.png"
    words = ("--ledger", ledger, "--out", tmp_path / "run", "--heatmap", picture)
    assert screened(files, *words).exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert screened(files, *words).exit_code == 0


def test_the_demo_is_the_table_that_demo_writes(tmp_path):
    words = ("--epsilon", 3, "--seed", 1, "--json", "--ask", "against:dose", *QUICK)
    assert dpmic("demo", tmp_path / "look").exit_code == 0
    there = tmp_path / "look"
    written = dpmic("screen", there / "demo.csv", "--bounds", there / "demo.toml", *words)
    built_in = dpmic("screen", "demo", *words)
    assert built_in.exit_code == 0, built_in.output
    assert json.loads(built_in.stdout)["pairs"] == json.loads(written.stdout)["pairs"]
    assert len(json.loads(built_in.stdout)["pairs"]) == 11


def test_the_library_resumes_a_run_of_the_command(files, tmp_path):
    """A run that the command began is one that the library goes on with."""
    assert screened(files, "--ask", "top:2", "--out", tmp_path / "run").exit_code == 0
    found = screen(
        files[0],
        bounds=files[2],
        epsilon=20.0,
        ask=TopK(2),
        key=seeded_key(1),
        out=tmp_path / "run",
        statistic=MICr(B=12, c=2, sizes=ladder(1.25)),
    )
    assert found == ScreenResult.from_json((tmp_path / "run" / "result.json").read_text())
