"""`independence_test`: one charge before anything is computed, the same bits again, refusals."""

import json
import os
import shutil
import signal
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from killed_runs import EPSILON, METHODS, PAIRS, POINTS, asked, work
from processes import ended, started
from screening.small import BOUNDS, N, columns

from dpmic_jax import Budget, BudgetExceeded, Categories, LedgerFile, ReplaceOne, seeded_key
from dpmic_jax.data.schema import schema_of
from dpmic_jax.data.source.memory import MemorySource
from dpmic_jax.inference import (
    FalseDiscovery,
    IndependenceResult,
    PrivateDecisions,
    PrivatePValues,
    independence_test,
)
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.screening import create_ledger


def new_ledger(folder, budget=10 * EPSILON):
    return create_ledger(folder / "ledger", Budget(budget), name="small", schema=schema_of(BOUNDS))


def told(result):
    """What was found, to the last bit."""
    content = result.to_dict()
    return json.dumps([content["pairs"], content["privacy"]["event"]])


@pytest.fixture
def order(monkeypatch):
    """What is done to the table and the ledger, in order."""
    done = []

    def noted(owner, name):
        real = getattr(owner, name)

        def wrapper(self, *arguments):
            done.append(name)
            return real(self, *arguments)

        monkeypatch.setattr(owner, name, wrapper)

    for name in ("validate", "batches"):
        noted(MemorySource, name)
    for name in ("check", "charge", "charge_once"):
        noted(LedgerFile, name)
    return done


# --- what is found --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_dependent_pair_is_found_and_the_independent_one_is_not(method):
    found = asked(columns(), BOUNDS, method=method)
    assert found.pairs == (("a", "d"), ("a", "e"))
    assert found.dependent == (True, False)
    released = [each is not None for each in found.found]
    assert released == [True] + [method == "p-values"] * 3


@pytest.mark.parametrize(
    ("method", "moved"), [(PrivateDecisions(draws=39), 3), (PrivatePValues(), 1)]
)
@pytest.mark.parametrize("records", [1, 2])
def test_the_event_says_what_is_charged(method, moved, records, tmp_path):
    """The sensitivity of decisions is 3/n: the observed distance moves by 1/n, copies by 2/n."""
    ledger = LedgerFile.create(
        tmp_path / "ledger", Budget(4.0, relation=ReplaceOne(records)), data_set="mine"
    )
    result = independence_test(
        columns(),
        bounds=BOUNDS,
        pairs=PAIRS,
        epsilon=4.0,
        key=seeded_key(1),
        method=method,
        ledger=ledger,
        records_per_person=records,
    )
    (event,) = ledger.events
    assert event == result.statement.event
    assert (event.epsilon, event.delta, event.n, event.count) == (4.0, 0.0, N, 1)
    assert event.relation == ReplaceOne(records)
    assert event.sensitivity == Fraction(moved * records, N)
    assert result.statement.ledger == f"{ledger.identity}#1"
    assert dict(event.settings)["pairs"] == '[["a","d"],["a","e"]]'


def test_other_questions_have_other_noise():
    """Noise depends on the event. The same noise on two values would give their difference away."""

    def distances(**changes):
        settings = {"bounds": BOUNDS, "pairs": PAIRS, "epsilon": 1.0, "alpha": 0.05} | changes
        found = independence_test(columns(), key=seeded_key(1), method=PrivatePValues(), **settings)
        return found.found.distances

    wider = {**BOUNDS, "g": (0.0, 1.5)}  # of a column that is not asked
    several = [
        distances(**changes)
        for changes in ({}, {"pairs": PAIRS[::-1]}, {"alpha": 0.1}, {"bounds": wider})
    ]
    several[1] = several[1][::-1]
    assert distances() == several[0]
    assert len({found[0] for found in several}) == len({found[1] for found in several}) == 4


def table_kinds(folder):
    """The same table, with another column of text and missing cells, in all that it may come in."""
    rng = np.random.default_rng(3)
    table = {
        "a": columns()["a"],
        "d": columns()["d"],
        "e": np.where(rng.random(N) < 0.1, np.nan, columns()["e"]),
        "site": rng.choice(["north", "south", "west"], N),
    }
    frame = pd.DataFrame(table)
    frame.to_csv(folder / "table.csv", index=False)
    pyarrow.parquet.write_table(pa.Table.from_pandas(frame), folder / "table.parquet")
    yield table
    yield frame
    yield pl.DataFrame(table)
    yield pa.Table.from_pandas(frame)
    yield folder / "table.csv"
    yield str(folder / "table.parquet")


@pytest.mark.parametrize("method", METHODS)
def test_files_and_frames_have_the_same_result(method, tmp_path):
    bounds = {name: BOUNDS[name] for name in "ade"}
    bounds["site"] = Categories(["north", "south", "west"], ordered=True)
    pairs = [("a", "d"), ("site", "e"), ("a", "site")]
    results = [
        independence_test(
            table,
            bounds=bounds,
            pairs=pairs,
            epsilon=2.0,
            key=seeded_key(2),
            method=METHODS[method] if method == "p-values" else PrivateDecisions(draws=59),
        )
        for table in table_kinds(tmp_path)
    ]
    assert len(set(map(told, results))) == 1
    assert results[0].dependent == (True, False, False)


def test_pairs_may_be_given_by_position():
    array = np.stack(list(columns().values()), axis=1)
    settings = {"epsilon": 1.0, "key": seeded_key(1), "method": PrivatePValues()}
    found = independence_test(
        array, bounds=list(BOUNDS.values()), pairs=np.array([[0, 3], [0, 4]]), **settings
    )
    assert found.pairs == (("x0", "x3"), ("x0", "x4"))
    assert found.dependent == (True, False)


# --- charged once ---------------------------------------------------------------------------------


def test_the_table_is_checked_then_the_ledger_is_charged_then_values_are_used(order, tmp_path):
    asked(columns(), BOUNDS, ledger=new_ledger(tmp_path))
    assert order[:4] == ["validate", "check", "charge", "batches"]
    assert set(order[4:]) <= {"batches"}


def test_over_budget_nothing_is_charged_read_or_kept(order, tmp_path):
    ledger = new_ledger(tmp_path, 0.99 * EPSILON)
    with pytest.raises(BudgetExceeded):
        asked(columns(), BOUNDS, ledger=ledger, out=tmp_path / "run")
    assert order == ["validate", "check"]
    assert ledger.events == ()
    assert [entry.name for entry in tmp_path.iterdir()] == ["ledger"]


def interrupted(self, result):
    """In place of `Folder.finish`: everything is computed, and nothing of it is stored."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_run_resumes_to_the_same_bits_for_one_charge(method, monkeypatch, tmp_path):
    ledger, out = new_ledger(tmp_path), tmp_path / "run"

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            asked(columns(), BOUNDS, method=method, ledger=ledger, out=out)
    assert len(ledger.events) == 1
    assert not (out / "result.json").exists()
    resumed = asked(columns(), BOUNDS, method=method, ledger=ledger, out=out)
    assert told(resumed) == told(asked(columns(), BOUNDS, method=method))
    # A finished folder gives its result again.
    assert asked(columns(), BOUNDS, method=method, ledger=ledger, out=out) == resumed
    assert len(ledger.events) == 1
    assert sorted(entry.name for entry in out.iterdir()) == ["lock", "result.json", "run.json"]


class Run:
    """A run of a file in processes of their own."""

    def __init__(self, place, **settings):
        self.out, self.said, self.ledger = place / "run", place / "said", None
        frame = pd.DataFrame({name: columns()[name] for name in "ade"})
        frame.to_csv(place / "table.csv", index=False)
        bounds = {name: BOUNDS[name] for name in "ade"}
        if "key" not in settings:
            self.ledger = place / "ledger"
            create_ledger(self.ledger, Budget(5), name="x", schema=schema_of(bounds))
        self._given = place / "table.csv", bounds
        self._settings = {"method": "p-values", "ledger": self.ledger, **settings}

    def ends(self, point=None, out=None):
        """The exit code of a process that is to die at a point, or not."""
        settings = {**self._settings, "out": out or self.out}
        return ended(started(work, point, *self._given, settings, err=self.said))

    @property
    def charges(self):
        return len(LedgerFile.open(self.ledger).events)


def test_a_run_killed_anywhere_ends_as_if_it_had_not_been(tmp_path):
    run = Run(tmp_path)
    for point, (_, charges) in POINTS.items():
        assert run.ends(point) == -signal.SIGKILL, run.said.read_text()
        assert run.charges == charges, point
        # Nothing of what was computed is there but the result, once it is complete.
        kept = {"lock", "run.json", "key", "tiles"}
        kept |= {"result.json"} if point == "the result is there" else set()
        assert {entry.name for entry in run.out.iterdir()} == kept
        assert not any((run.out / "tiles").iterdir())
    assert run.ends() == 0, run.said.read_text()
    assert run.charges == 1
    found = IndependenceResult.from_json((run.out / "result.json").read_text())
    whole = asked(*run._given, method="p-values")
    assert told(found) == told(whole)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_records_changes_nothing(method, monkeypatch):
    """Copies of a table are shuffled by position, so what is shuffled has one order."""
    shuffled = np.random.default_rng(1).permutation(len(columns()["a"]))
    tables = columns(), {name: values[shuffled] for name, values in columns().items()}
    kind, taken = type(METHODS[method]), []
    found = kind.found

    def noted(self, binned, *rest):
        taken.append(binned)
        return found(self, binned, *rest)

    monkeypatch.setattr(kind, "found", noted)
    one, other = (asked(table, BOUNDS, method=method) for table in tables)
    assert told(one) == told(other)
    for part in ("masters", "rows"):
        np.testing.assert_array_equal(*(getattr(each, part).fine for each in taken))
    monkeypatch.setattr("dpmic_jax.inference.private_test._ordered", lambda binned: binned)
    asked(tables[1], BOUNDS, method=method)
    assert not np.array_equal(taken[0].rows.fine, taken[2].rows.fine)  # the control


def test_a_killed_run_of_a_secret_key_has_the_noise_of_the_key_that_was_kept(tmp_path):
    run = Run(tmp_path, key="secret")
    assert run.ends("it is charged") == -signal.SIGKILL
    copy, another = tmp_path / "copy", tmp_path / "another"
    shutil.copytree(run.out, copy)
    found = []
    for out in (run.out, copy, another):
        assert run.ends(out=out) == 0, run.said.read_text()
        found.append(json.loads((out / "result.json").read_text()))
        assert not (out / "key").exists()
    assert found[0]["pairs"] == found[1]["pairs"] != found[2]["pairs"]
    assert found[0]["privacy"]["key"] == "secret"


def test_a_finished_run_does_not_read_its_file_again(tmp_path):
    pd.DataFrame(columns()).to_csv(tmp_path / "table.csv", index=False)
    given, out = (tmp_path / "table.csv", BOUNDS), tmp_path / "run"
    found = asked(*given, method="p-values", out=out)
    # A file of the same name, time and header, without a record.
    time = given[0].stat().st_mtime_ns
    given[0].write_text(",".join(BOUNDS) + "\n")
    os.utime(given[0], ns=(time, time))
    assert asked(*given, method="p-values", out=out) == found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"alpha": 0.1}, "other settings", id="alpha"),
        pytest.param({"pairs": PAIRS[::-1]}, "other settings", id="pairs"),
        pytest.param({"method": PrivateDecisions(draws=39)}, "other settings", id="method"),
        pytest.param({"key": seeded_key(2)}, "another key", id="key"),
        pytest.param({"table": {**columns(), "a": columns()["b"]}}, "other records", id="records"),
    ],
)
def test_an_unfinished_run_is_resumed_by_the_same_call_only(changes, said, monkeypatch, tmp_path):
    settings = {"bounds": BOUNDS, "pairs": PAIRS, "epsilon": 1.0, "out": tmp_path / "run"}
    settings |= {"table": columns(), "key": seeded_key(1), "method": PrivatePValues()}
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            independence_test(**settings)
    with pytest.raises(ValueError, match=said):
        independence_test(**{**settings, **changes})


# --- refused, uncharged ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_test_that_noise_would_hide_is_refused_and_its_remedies_help(method, order, tmp_path):
    ledger = new_ledger(tmp_path)
    settings = {"bounds": BOUNDS, "pairs": PAIRS[:1], "key": seeded_key(1), "ledger": ledger}
    settings["method"] = METHODS[method]
    with pytest.raises(ValueError, match="noise would hide every dependence") as refused:
        independence_test(columns(), epsilon=0.01, **settings)
    assert "batches" not in order
    assert ledger.events == ()
    enough = float(str(refused.value).split("epsilon = ")[1].split(" or more")[0])
    assert 0.01 < enough < 0.1
    independence_test(columns(), epsilon=1.1 * enough, **settings)
    with pytest.raises(ValueError, match="noise would hide"):
        independence_test(columns(), epsilon=0.9 * enough, **settings)
    independence_test(columns(), epsilon=0.01, force=True, **settings)
    assert len(ledger.events) == 2


def test_p_values_are_named_as_a_remedy_where_they_help_only():
    def asked_with(epsilon, method):
        return independence_test(
            columns(),
            bounds=BOUNDS,
            pairs=PAIRS[:1],
            epsilon=epsilon,
            key=seeded_key(1),
            method=method,
        )

    def advice(epsilon, method):
        with pytest.raises(ValueError, match="noise would hide") as refused:
            asked_with(epsilon, method)
        return str(refused.value)

    assert "method=PrivatePValues() (--method p-values)" in advice(0.045, METHODS["decisions"])
    asked_with(0.045, PrivatePValues())
    for method in METHODS.values():
        assert "p-values)" not in advice(0.001, method)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": 0.0}, "0 < epsilon"),
        ({"epsilon": 1e300}, "expected epsilon <="),
        ({"epsilon": "1"}, "epsilon to be a Python float"),
        ({"alpha": 0}, "0 < alpha < 1"),
        ({"alpha": 1.5}, "alpha < 1"),
        ({"alpha": 1e-9}, "level of 1e-09 for each of 1 pairs takes .* permutations"),
        ({"method": "p-values"}, "expected method to be PrivateDecisions"),
        ({"method": PrivatePValues}, "expected method to be PrivateDecisions"),
        ({"method": PrivateDecisions(draws=18)}, "pass draws=19 or more"),
        ({"method": PrivateDecisions(draws=lambda alpha, pairs: 0)}, "expected 1 <= draws"),
        ({"pairs": None}, "expected pairs to be a list"),
        ({"pairs": []}, "expected pairs to name at least one"),
        ({"pairs": ("a", "d")}, "expected each of pairs to be two columns"),
        ({"pairs": [("a", "z")]}, "unknown column 'z'"),
        ({"pairs": [("a", "a")]}, "pairs of two different columns"),
        ({"pairs": [("a", "d"), ("d", "a")]}, "expected every pair once"),
        ({"pairs": [(0, 1)], "bounds": {"a": (0, 1)}}, "column 'b' without bounds"),
        ({"table": "nowhere.csv"}, "no file at nowhere.csv"),
        ({"table": {name: v[:3] for name, v in columns().items()}}, "at least 4 records"),
        ({"records_per_person": 0}, "records >= 1"),
        ({"key": 7}, "expected a key"),
    ],
)
def test_bad_input_is_refused_by_its_name_before_anything_is_charged_or_made(
    changes, said, tmp_path
):
    ledger = new_ledger(tmp_path)
    settings = {"table": columns(), "bounds": BOUNDS, "pairs": PAIRS[:1], "epsilon": 1.0}
    settings |= {"key": seeded_key(1), "ledger": ledger, "out": tmp_path / "run", **changes}
    with pytest.raises((TypeError, ValueError, OSError), match=said):
        independence_test(**settings)
    assert ledger.events == ()
    assert [entry.name for entry in tmp_path.iterdir()] == ["ledger"]


def test_a_hundred_pairs_are_taken_and_more_are_for_a_screen():
    rng = np.random.default_rng(0)
    table = rng.random((N, 15))
    pairs = [(i, j) for i in range(15) for j in range(i)]
    settings = {"bounds": [(0, 1)] * 15, "key": seeded_key(1), "method": PrivatePValues()}
    found = independence_test(table, pairs=pairs[:100], epsilon=500.0, **settings)
    assert len(found.pairs) == len(found.found.distances) == 100
    with pytest.raises(ValueError, match="at most 100 pairs, got 101: use screen"):
        independence_test(table, pairs=pairs[:101], epsilon=500.0, **settings)


def test_where_nothing_helps_the_refusal_names_no_remedy():
    with pytest.raises(ValueError, match=r"probability\. Pass force=True"):
        asked(columns(), BOUNDS, records_per_person=10**9)


# --- the result -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_result_is_read_back_from_its_json(method):
    found = asked(columns(), BOUNDS, method=method)
    assert IndependenceResult.from_json(found.to_json()) == found
    for damaged in ("{}", "[]", "3", found.to_json().replace('"x"', '"z"')):
        with pytest.raises(ValueError, match="JSON of a private test of independence"):
            IndependenceResult.from_json(damaged)


def test_a_result_is_shown_with_its_error_rate_and_its_cost():
    method = PrivatePValues(control=FalseDiscovery())
    found = independence_test(
        columns(), bounds=BOUNDS, pairs=PAIRS, epsilon=1.0, key=seeded_key(1), method=method
    )
    head, one, other, last = found.text().splitlines()
    assert head.split() == ["x", "y", "distance", "p", "adjusted", "dependent"]
    assert one.split()[:2] == ["a", "d"]
    assert one.endswith("yes")
    assert other.endswith("not shown")
    assert last.startswith("1 of 2 pairs dependent; expected share of false discoveries at most")
    for text in (str(found), found.statement.text()):
        assert "seeded: not for release" in text
        assert "epsilon = 1" in text
    secret = asked(columns(), BOUNDS, key="secret", method="p-values")
    assert "seeded" not in str(secret) + secret.statement.text()
    assert secret.to_dict()["privacy"]["key"] == "secret"


def test_a_result_has_one_of_everything_for_each_pair():
    found = asked(columns(), BOUNDS, method="p-values")
    with pytest.raises(ValueError, match="expected 2 of everything"):
        replace(found, found=found.found._replace(distances=(0.5,)))
