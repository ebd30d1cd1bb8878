"""`dpmic test` on what `dpmic screen` selected, `dpmic units`, and the units of a ledger."""

import json

import pytest
from commands import MARKER, QUICK, bounds_file, dpmic, table_file

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.max_information import corrected_level
from dpmic_jax.inference import NOT_PRIVATE


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A screen for the strongest pair, charged to a ledger; and the words to test it."""
    folder = tmp_path_factory.mktemp("run")
    table, bounds, ledger = table_file(folder), bounds_file(folder), folder / "ledger"
    public = ("--bounds", bounds)
    made = dpmic("ledger", "init", ledger, "--epsilon", 20, *public, "--name", "trial")
    assert made.exit_code == 0, made.output
    words = ("--epsilon", 0.04, "--ask", "top:1", "--ledger", ledger, "--out", folder / "out")
    # Seeded: this one selects a column with tied values.
    done = dpmic("screen", table, *public, *words, "--seed", 2, "--force", *QUICK)
    assert done.exit_code == 0, done.output
    test = ("test", folder / "out" / "result.json", table, *public, "--draws", 99, *QUICK)
    return test, ledger


def test_the_selected_pair_is_tested_at_the_level_of_its_screen(run):
    words, _ = run
    done = dpmic(*words, "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["privacy"] == NOT_PRIVATE
    assert content["level"] == corrected_level(0.05, PureDP(0.04), n=200).level
    assert len(content["pairs"]) == 1
    shown = dpmic(*words)
    assert shown.stdout.startswith(NOT_PRIVATE)
    assert f"{content['pairs'][0]['p']:.3g}" in shown.stdout
    assert MARKER not in shown.output


def test_other_ways_to_correct_and_to_count_are_options(run):
    words, ledger = run
    # With 99 draws no data could pass the correction for six candidates.
    refused = dpmic(*words, "--candidates")
    assert refused.exit_code == 2
    assert "No data can be called dependent" in refused.stderr
    assert dpmic(*words, "--candidates", "--force").exit_code == 0
    by_candidates = json.loads(dpmic(*words, "--candidates", "--draws", 199, "--json").stdout)
    assert by_candidates["hypotheses"] == 6
    assert by_candidates["level"] == 0.05
    assert "share" in json.loads(dpmic(*words, "--share", "--json").stdout)["error"]
    # The ledger's only event is the screen's own.
    seen = json.loads(dpmic(*words, "--ledger", ledger, "--json").stdout)
    assert seen["level"] == json.loads(dpmic(*words, "--json").stdout)["level"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--alpha", 1.5), "0 < alpha < 1"),
        (("--alpha", 0), "0 < alpha < 1"),
        (("--test", "mice"), "tied values"),
    ],
)
def test_bad_input_is_one_line_and_shows_no_value(run, more, said):
    done = dpmic(*run[0], *more)
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert MARKER not in done.output


def test_a_ledger_shows_its_total_in_all_units(run):
    done = dpmic("ledger", "show", run[1], "--beta", 0.01)
    assert done.exit_code == 0, done.output
    for unit in ("epsilon           0.04", "rho", "nats", "bits at beta = 0.01, n = 200"):
        assert unit in done.stdout


def test_units_of_a_plan():
    done = dpmic("units", "--epsilon", 1, "--records", 20_000)
    assert done.exit_code == 0, done.output
    assert "0.1233 nats" in done.stdout
    assert "too small for most tests" in done.stdout
    content = json.loads(dpmic("units", "--epsilon", 0.001, "-n", 20_000, "--json").stdout)
    assert content["level"] == corrected_level(0.05, PureDP(0.001), n=20_000).level
    assert dpmic("units", "--epsilon", 1, "--records", 100, "--beta", 2).exit_code == 2
