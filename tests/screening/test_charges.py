"""Check, charge, compute: nothing is charged for what is refused, nothing computed uncharged."""

import numpy as np
import pytest
from small import BOUNDS, N, columns, screened

from dpmic_jax import Budget, BudgetExceeded, LedgerFile, ReplaceOne, secret_key
from dpmic_jax.data.schema import Categories, Number, Schema, schema_of
from dpmic_jax.data.source.memory import MemorySource
from dpmic_jax.screening import AllPairs, TopK, create_ledger, learn_bounds


def new_ledger(folder, budget=20.0, *, name="ledger", bounds=BOUNDS, **settings):
    return create_ledger(
        folder / name, Budget(budget, **settings), name="small", schema=schema_of(bounds)
    )


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


@pytest.mark.parametrize("ask", [AllPairs(), TopK(3, selection_fraction=0.7)])
def test_the_table_is_checked_then_the_ledger_is_charged_then_values_are_used(ask, order, tmp_path):
    screened(ask=ask, ledger=new_ledger(tmp_path))
    assert order[:4] == ["validate", "check", "charge", "batches"]
    assert set(order[4:]) <= {"batches"}


def test_in_a_folder_the_records_are_read_once_before_the_charge_for_their_digest(order, tmp_path):
    """After the budget was found to hold it; nothing of them is kept but what the key hides."""
    screened(ledger=new_ledger(tmp_path), out=tmp_path / "run")
    assert order[:5] == ["validate", "check", "batches", "charge", "batches"]


@pytest.mark.parametrize("ask", [AllPairs(), TopK(3, selection_fraction=0.7)])
def test_a_screen_is_one_event_of_what_was_asked(ask, tmp_path):
    ledger = new_ledger(tmp_path)
    result = screened(ask=ask, ledger=ledger)
    (event,) = ledger.events
    assert event.to_json() == result.statement.event
    assert event.epsilon <= 20.0
    assert event.epsilon == pytest.approx(20.0)
    assert (event.n, event.relation) == (N, ReplaceOne(1))
    assert result.statement.ledger == f"{ledger.identity}#1"


@pytest.mark.parametrize("ask", [AllPairs(), TopK(3, selection_fraction=0.7)])
@pytest.mark.parametrize("in_folder", [True, False])
def test_over_budget_nothing_is_charged_read_or_kept(ask, in_folder, order, tmp_path):
    ledger, out = new_ledger(tmp_path, 19.9), tmp_path / "run" if in_folder else None
    with pytest.raises(BudgetExceeded):
        screened(ask=ask, ledger=ledger, out=out)
    assert order == ["validate", "check"]
    assert ledger.events == ()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["ledger"]


def test_a_refused_run_may_be_asked_for_less_in_the_same_folder(tmp_path):
    ledger, out = new_ledger(tmp_path, 19.9), tmp_path / "run"
    with pytest.raises(BudgetExceeded):
        screened(ledger=ledger, out=out)
    screened(ledger=ledger, out=out, epsilon=19.9)
    assert len(ledger.events) == 1


def test_a_ledger_that_protects_people_of_more_records_refuses_and_keeps_nothing(tmp_path):
    ledger, out = new_ledger(tmp_path, 20.0, relation=ReplaceOne(3)), tmp_path / "run"
    with pytest.raises(ValueError, match="people with 3 records"):
        screened(ledger=ledger, out=out)
    assert not out.exists()
    assert ledger.events == ()
    screened(ledger=ledger, out=out, records_per_person=3)
    assert len(ledger.events) == 1


@pytest.mark.parametrize("secret", [True, False])
def test_every_new_run_is_charged_whatever_its_key(secret, tmp_path):
    """A seeded run has no random number in its event; its table may still be another one."""
    ledger = new_ledger(tmp_path, 100.0)
    for times in range(1, 4):
        key = {"key": secret_key()} if secret else {}
        screened(ledger=ledger, out=tmp_path / f"run {times}" if times < 3 else None, **key)
        assert len(ledger.events) == times


def test_a_run_that_began_without_a_charge_is_charged_when_resumed(tmp_path, monkeypatch):
    ledger, out = new_ledger(tmp_path), tmp_path / "run"

    def busy(self, event):
        raise TimeoutError("in use; nothing charged")

    with monkeypatch.context() as patched:
        patched.setattr(LedgerFile, "charge", busy)
        with pytest.raises(TimeoutError):
            screened(ledger=ledger, out=out)
    assert ledger.events == ()
    found = screened(ledger=ledger, out=out)
    assert len(ledger.events) == 1
    np.testing.assert_array_equal(found.mic, screened().mic)


@pytest.mark.parametrize("value", [np.nan, np.inf, "SECRET", None, 10**400, [1]])
def test_refusals_do_not_depend_on_values(value, tmp_path):
    ledger, said = new_ledger(tmp_path), set()
    good = {name: values.tolist() for name, values in columns().items()}
    for table in (good, {**good, "b": [value, *good["b"][1:]]}):
        with pytest.raises(BudgetExceeded) as caught:
            screened(table=table, ledger=ledger, epsilon=1e6)
        said.add(str(caught.value))
    assert len(said) == 1
    assert ledger.events == ()


def bad_inputs():
    good = columns()
    yield "a missing bound", {"bounds": {n: BOUNDS[n] for n in "abcdef"}}, "'g' without bounds"
    yield "a bound too many", {"bounds": {**BOUNDS, "h": (0, 1)}}, "'h' that is not in data"
    yield "low above high", {"bounds": {**BOUNDS, "a": (1, 0)}}, "column 'a'"
    yield "dates", {"table": {**good, "a": np.arange(N).astype("M8[D]")}}, "numbers in column 'a'"
    yield "unequal columns", {"table": {**good, "a": good["a"][1:]}}, "same number of records"
    yield "few records", {"table": {n: v[:3] for n, v in good.items()}}, "at least 4 records"
    yield "an ask", {"ask": TopK(99, selection_fraction=0.7)}, "expected k below"
    yield "a lost file", {"table": "nowhere/table.csv"}, "no file at nowhere"
    yield "an epsilon", {"epsilon": 0.0}, "epsilon"
    yield "records", {"records_per_person": 0}, "records"
    yield "no key", {"key": 7}, "key"
    yield "raw words", {"key": np.array([1, 2], np.uint32)}, "typed key"


@pytest.mark.parametrize(
    ("changes", "said"), [pytest.param(c, s, id=name) for name, c, s in bad_inputs()]
)
def test_bad_input_is_refused_before_anything_is_charged_or_made(changes, said, tmp_path):
    ledger = new_ledger(tmp_path)
    with pytest.raises((ValueError, TypeError, OSError), match=said) as caught:
        screened(ledger=ledger, out=tmp_path / "run", **changes)
    assert "SECRET" not in str(caught.value)
    assert ledger.events == ()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["ledger"]


def test_the_ledger_of_another_data_set_is_refused(tmp_path):
    """Names and kinds of columns tell data sets apart; bounds may change."""
    others = [
        {**BOUNDS, "h": (0.0, 1.0)},
        {("A" if name == "a" else name): bounds for name, bounds in BOUNDS.items()},
        Schema(
            tuple(
                (name, Categories(("x", "y")) if name == "a" else Number(*bounds))
                for name, bounds in BOUNDS.items()
            )
        ),
    ]
    for number, bounds in enumerate(others):
        ledger = new_ledger(tmp_path, name=f"{number}", bounds=bounds)
        with pytest.raises(ValueError, match="belongs to another data set, 'small'"):
            screened(ledger=ledger)
        assert ledger.events == ()
    wider = {name: (low - 1, high + 1) for name, (low, high) in BOUNDS.items()}
    screened(ledger=new_ledger(tmp_path, name="same", bounds=wider))


def test_two_ledgers_of_one_schema_have_nothing_in_common_but_the_name(tmp_path):
    one, other = (new_ledger(tmp_path, name=name).data_set for name in "ab")
    assert one.startswith("small (schema ")
    assert not set(one.split(":")) & set(other.split(":"))


def test_a_ledger_without_a_schema_is_not_checked(tmp_path):
    ledger = LedgerFile.create(tmp_path / "ledger", Budget(20.0), data_set="mine")
    screened(ledger=ledger)
    assert len(ledger.events) == 1


def test_learned_bounds_are_charged_before_a_value_is_used_and_cost_what_was_asked(order, tmp_path):
    ledger = new_ledger(tmp_path, 10.0)
    wide = dict.fromkeys(BOUNDS, (-100.0, 100.0))
    settings = {"within": wide, "ledger": ledger, "key": secret_key()}
    found = learn_bounds(columns(), epsilon=7.0, **settings)
    assert order[:4] == ["validate", "check", "charge", "batches"]
    (event,) = ledger.events
    assert (event.count, event.epsilon) == (1, 7.0)
    with pytest.raises(BudgetExceeded):
        learn_bounds(columns(), epsilon=7.0, **settings)
    assert order[-2:] == ["validate", "check"]
    assert all(-100 <= rule.low < rule.high <= 100 for _, rule in found.schema.columns)
    # The ledger is the data set's, whatever its bounds are now.
    screened(bounds=found.schema, epsilon=3.0, ledger=ledger)
    assert len(ledger.events) == 2
