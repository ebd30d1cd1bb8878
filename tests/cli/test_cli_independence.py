"""`dpmic independence`: what it prints, what it charges, and how it ends."""

import json

import pytest
from commands import MARKER, bounds_file, dpmic, table_file

from dpmic_jax import LedgerFile, seeded_key
from dpmic_jax.inference import (
    FalseDiscovery,
    PrivateDecisions,
    PrivatePValues,
    independence_test,
    shuffling,
)

STAMP = "seeded: not for release"
PAIRS = ("--pairs", "dose,response", "--pairs", "age,site")


@pytest.fixture(autouse=True)
def quickly_compiled(monkeypatch):
    """Programs laid out for few lanes."""
    monkeypatch.setattr(shuffling, "PLANNED_LANES", 10)


@pytest.fixture
def files(tmp_path):
    return table_file(tmp_path), "--bounds", bounds_file(tmp_path)


@pytest.fixture
def ledger(tmp_path, files):
    path = tmp_path / "ledger"
    done = dpmic("ledger", "init", path, "--epsilon", 5, "--bounds", files[2], "--name", "trial")
    assert done.exit_code == 0, done.output
    return path


def ran(files, *words, epsilon=4, pairs=PAIRS):
    return dpmic("independence", *files, *pairs, "--epsilon", epsilon, "--seed", 1, *words)


def test_decisions_and_their_statement_are_printed(files):
    done = ran(files)
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["x", "y", "dependent"]
    assert rows[1] == ["dose", "response", "yes"]
    assert rows[2] == ["age", "site", "not", "shown"]
    assert "1 of 2 pairs dependent; chance of any false discovery at most 0.05." in done.stdout
    assert f"{STAMP}. epsilon = 4, delta = 0 for one person's record" in done.stdout
    assert "not charged to a ledger" not in done.stdout
    assert "not charged to a ledger" in ran(files, "--statement").stdout
    assert MARKER not in done.output


@pytest.mark.parametrize(
    ("words", "method"),
    [
        ((), PrivateDecisions()),
        (("--draws", 59), PrivateDecisions(draws=59)),
        (("--method", "p-values"), PrivatePValues()),
        (("--method", "p-values", "--share"), PrivatePValues(control=FalseDiscovery())),
    ],
)
def test_json_is_what_the_library_finds_with_these_options(files, words, method):
    done = ran(files, *words, "--alpha", 0.1, "--records-per-person", 2, "--json")
    assert done.exit_code == 0, done.output
    found = independence_test(
        files[0],
        bounds=files[2],
        pairs=[("dose", "response"), ("age", "site")],
        epsilon=4.0,
        alpha=0.1,
        key=seeded_key(1),
        method=method,
        records_per_person=2,
    )
    assert json.loads(done.stdout) == json.loads(found.to_json())
    assert done.stderr == f"Warning: {STAMP}.\n"


def test_p_values_are_shown_with_distances(files):
    head, first, *_ = ran(files, "--method", "p-values").stdout.splitlines()
    assert head.split() == ["x", "y", "distance", "p", "adjusted", "dependent"]
    _, _, distance, p, adjusted, dependent = first.split()
    assert 0 < float(p) <= float(adjusted) < 0.05 < float(distance) < 1
    assert dependent == "yes"


def test_a_run_is_charged_once_and_given_again_from_its_folder(files, ledger, tmp_path):
    words = ("--ledger", ledger, "--out", tmp_path / "run", "--json")
    first, second = (ran(files, *words) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert first.stdout == second.stdout
    assert json.loads(first.stdout)["privacy"]["ledger"].endswith("#1")
    (event,) = LedgerFile.open(ledger).events
    assert event.epsilon == 4
    shown = dpmic("ledger", "show", ledger)
    assert "independence test" in shown.stdout


def test_without_a_seed_the_noise_is_fresh_and_nothing_is_stamped(files):
    words = ("independence", *files, *PAIRS, "--epsilon", 4, "--method", "p-values", "--json")
    first, second = (dpmic(*words) for _ in range(2))
    assert STAMP not in first.output
    assert json.loads(first.stdout)["pairs"] != json.loads(second.stdout)["pairs"]


def test_over_budget_is_exit_3_with_nothing_charged_or_kept(files, ledger, tmp_path):
    done = ran(files, "--ledger", ledger, "--out", tmp_path / "run", epsilon=5.5)
    assert done.exit_code == 3
    assert done.stdout == ""
    assert "5 of 5 is left; nothing was charged." in done.stderr
    assert LedgerFile.open(ledger).events == ()
    assert not (tmp_path / "run").exists()


def test_a_test_that_noise_would_hide_is_refused_uncharged_unless_forced(files, ledger):
    done = ran(files, "--ledger", ledger, epsilon=0.01)
    assert done.exit_code == 2
    assert "noise would hide every dependence" in done.stderr
    assert "--force" in done.stderr
    assert LedgerFile.open(ledger).events == ()
    assert ran(files, "--ledger", ledger, "--force", epsilon=0.01).exit_code == 0
    assert len(LedgerFile.open(ledger).events) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pairs", "dose"), "expected --pairs as two names of columns, such as x,y, got 'dose'"),
        (("--pairs", "dose,age,site"), "expected --pairs as two names"),
        (("--pairs", "dose,"), "expected --pairs as two names"),
        (("--pairs", "dose,weight"), "unknown column 'weight'"),
        (("--pairs", '"weight, kg",dose'), "unknown column 'weight, kg'"),
        (("--pairs", '"weight, kg'), "expected names separated by commas"),
        (("--pairs", "dose,dose"), "pairs of two different columns"),
        (("--pairs", "response,dose"), "expected every pair once"),
        (("--alpha", "1.5"), "alpha < 1"),
        (("--draws", "9"), "pass draws=39 or more"),
        (("--method", "p-values", "--draws", "99"), "--draws is for --method decisions"),
        (("--share",), "--share needs p-values"),
    ],
)
def test_bad_input_is_exit_2_and_one_line_and_nothing_is_charged(
    files, ledger, tmp_path, words, said
):
    done = ran(files, *words, "--ledger", ledger, "--out", tmp_path / "run")
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    *_, line = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert said in line
    assert LedgerFile.open(ledger).events == ()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("left_out", ["--pairs", "--epsilon"])
def test_pairs_and_epsilon_have_no_default(files, left_out):
    given = {"--pairs": "dose,response", "--epsilon": 1}
    words = [word for option in given if option != left_out for word in (option, given[option])]
    done = dpmic("independence", *files, *words)
    assert done.exit_code == 2
    assert f"Missing option '{left_out}'" in done.stderr


def test_help_says_what_the_options_are_for():
    done = dpmic("independence", "--help")
    assert done.exit_code == 0
    for option in ("--pairs", "--epsilon", "--alpha", "--method", "--draws", "--share", "--ledger"):
        assert option in done.stdout
    assert "may be published" in done.stdout
    assert "independence" in dpmic("--help").stdout


def test_the_demo_table_can_be_tested():
    words = ("--pairs", "dose,response", "--epsilon", 1, "--seed", 1, "--method", "p-values")
    done = dpmic("independence", "demo", *words)
    assert done.exit_code == 0, done.output
    assert "1 of 1 pairs dependent" in done.stdout
