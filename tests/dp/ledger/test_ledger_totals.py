"""The running totals of a ledger's file: decisions, work that they save, and forged totals."""

import json
import sqlite3
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_files import forge_totals, kept, sql

from dpmic_jax.dp.accounting.composition import numerical, totals
from dpmic_jax.dp.accounting.events import (
    ZCDP,
    ApproximateDP,
    Event,
    GaussianDP,
    PureDP,
    ReplaceOne,
)
from dpmic_jax.dp.ledger import store
from dpmic_jax.dp.ledger.file import Budget, BudgetExceeded, Ledger, LedgerFile, LedgerRefused
from dpmic_jax.dp.ledger.reservations import Standing

TENTH = PureDP(0.1)


def event(guarantee=TENTH, **changes):
    plain = Event(
        mechanism="screen",
        guarantee=guarantee,
        relation=ReplaceOne(),
        n=337,
        sensitivity=Fraction(29, 1000),
    )
    return replace(plain, **changes)


class AllEvents:
    """The oracle: every decision from a list of all that ever happened."""

    def __init__(self, budget):
        self.budget, self.log = budget, []

    def replayed(self, also=None):
        """Charges, and reservations of (number, event, how many are left)."""
        charges, reservations = [], []
        for number, (act, what, times) in enumerate([*self.log, *([also] if also else [])], 1):
            if act == "reserve":
                reservations.append([number, what, times])
            elif act == "release":
                reservations = [one for one in reservations if one[0] != what]
            else:
                charges.append(what)
                for reservation in reservations:
                    if alike(reservation[1], what):
                        reservation[2] -= 1
                        break
                reservations = [reservation for reservation in reservations if reservation[2]]
        return charges, reservations

    def taken(self, also=None):
        charges, reservations = self.replayed(also)
        return charges + [one for _, one, left in reservations for _ in range(left)]

    def admits(self, events):
        """Written out again: each sum of `Budget`, exact, over single releases."""
        budget = self.budget

        def total(name, chosen):
            return sum(one.count * Fraction(repr(getattr(one.guarantee, name))) for one in chosen)

        other = [one for one in events if isinstance(one.guarantee, ZCDP | GaussianDP)]
        plain = [one for one in events if one not in other]
        basic = not other and total("epsilon", plain) <= Fraction(repr(budget.epsilon))
        off = numerical(Fraction(total("delta", other)), budget.epsilon)
        alone = (
            [one.count for one in events] == [1]
            and isinstance(events[0].guarantee, GaussianDP)
            and events[0].guarantee.mu <= budget.mu
        )
        return (
            (basic or alone or total("rho", events) <= Fraction(repr(budget.rho)))
            and total("delta", plain) <= budget.failures
            and off <= budget.inexact
        )

    def do(self, act, what, times):
        """Whether it is admitted; if so, it has happened."""
        _, reservations = self.replayed()
        if act == "release":
            fits = what in [number for number, _, _ in reservations]
        elif what.relation.records < self.budget.relation.records:
            fits = False
        else:
            fits = self.admits(self.taken((act, what, times)))
        self.log += [(act, what, times)] * fits
        return fits

    def refusal(self, event):
        """What a ledger in memory says of a charge, and what is added where some is reserved."""
        charges, reservations = self.replayed(("charge", event, 1))
        before = (*charges[:-1], *(one for _, one, left in reservations for _ in range(left)))
        said = refusal(Ledger(self.budget, before).charge, event)
        numbers = ", ".join(str(number) for number, _, _ in self.replayed()[1])
        if said and said[0] is BudgetExceeded and numbers:
            return said[0], f"{said[1]}; spent counts what entries {numbers} reserve"
        return said


def alike(one, other):
    def kind(event):
        guarantee = event.guarantee
        if isinstance(guarantee, ZCDP | GaussianDP):
            same = type(guarantee), guarantee.rho
        else:
            same = guarantee
        return event.mechanism, same, event.relation, event.count

    return kind(one) == kind(other)


EVENTS = st.builds(
    event,
    st.sampled_from(
        [
            PureDP(0.1),
            PureDP(0.3),
            PureDP(1e-7),
            PureDP(1 / 3),
            ApproximateDP(0.1, 1e-9),
            ApproximateDP(0.2, 1.5e-8),
            ZCDP(0.01),
            ZCDP(0.01, 1e-10),
            ZCDP(0.01, 2e-9),
            ZCDP(0.03, 1e-15),
            GaussianDP(0.1, 1e-15),
            GaussianDP(0.1, 2e-15),
            GaussianDP(0.235),
        ]
    ),
    mechanism=st.sampled_from(["a", "b"]),
    count=st.sampled_from([1, 1, 3]),
    relation=st.sampled_from([ReplaceOne(2), ReplaceOne(2), ReplaceOne(3), ReplaceOne(1)]),
    label=st.sampled_from(["", "one", "two"]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("charge"), EVENTS, st.just(1)),
        st.tuples(st.just("reserve"), EVENTS, st.integers(1, 4)),
        st.tuples(st.just("release"), st.integers(1, 10), st.just(1)),
    ),
    min_size=8,
    max_size=25,
)
BUDGETS = st.sampled_from(
    [
        Budget(1.0, 0.0, ReplaceOne(2)),
        Budget(1.0, 1e-6, ReplaceOne(2)),
        Budget(3.0, 1e-6, ReplaceOne(2), failure_share=0.5),
        Budget(1.0, 1e-6, ReplaceOne(2), failure_share=1),
    ]
)


def test_totals_without_a_sole_gaussian_release_are_written_as_before_there_were_any():
    written = json.loads(Standing(totals([event()]), {}).to_json())
    assert set(written) == {"epsilon", "delta", "rho", "variation", "reserved"}
    for one in (event(), event(GaussianDP(0.235, 1e-15))):
        kept_totals = Standing(totals([one]), {})
        assert Standing.from_json(kept_totals.to_json()) == kept_totals


def do(file, act, what, times):
    if act == "release":
        return file.cancel_reservation(what)
    return file.charge(what) if act == "charge" else file.reserve(what, times=times)


def refusal(act, *arguments):
    """The class and text of what `act` raises, None if it does not."""
    try:
        act(*arguments)
    except (BudgetExceeded, ValueError) as error:
        return type(error), str(error)
    return None


@settings(max_examples=40)
@given(BUDGETS, STEPS)
def test_totals_decide_as_all_events_would(tmp_path_factory, budget, steps):
    path = tmp_path_factory.mktemp("totals") / "ledger"
    file, oracle = LedgerFile.create(path, budget, data_set="x"), AllEvents(budget)
    for step in steps:
        if step[0] == "charge":
            said = oracle.refusal(step[1])
            assert refusal(file.check, step[1]) == said
            assert refusal(file.charge, step[1]) == said
        else:
            said = refusal(do, file, *step)
        assert oracle.do(*step) == (said is None)
        _, reservations = oracle.replayed()
        assert file.left == Ledger(budget, tuple(oracle.taken())).left
        assert {k: (one.event, one.times) for k, one in file.reservations.items()} == {
            number: (one, left) for number, one, left in reservations
        }
    assert file.verify() == len(oracle.log)
    assert file.events == tuple(oracle.replayed()[0])


def test_the_oracle_detects_totals_that_forget_a_draw(tmp_path, monkeypatch):
    """What is drawn would stay set aside, too: the next charge is wrongly refused."""
    budget = Budget(1.0)
    file, oracle = LedgerFile.create(tmp_path / "ledger", budget, data_set="x"), AllEvents(budget)
    after = Standing.after
    monkeypatch.setattr(
        Standing,
        "after",
        lambda self, serial, entry: after(self, serial, entry)._replace(
            reserved={**after(self, serial, entry).reserved, **self.reserved}
        ),
    )
    steps = [("reserve", event(PureDP(0.3)), 2), ("charge", event(PureDP(0.3)), 1)]
    for step in steps:
        assert oracle.do(*step)
        do(file, *step)
    assert oracle.do("charge", event(PureDP(0.4)), 1)
    with pytest.raises(BudgetExceeded):
        file.charge(event(PureDP(0.4)))
    with pytest.raises(LedgerRefused, match="totals are not those"):
        file.verify()


@pytest.fixture
def work(monkeypatch):
    """Rows that are read, and steps that SQLite takes, since the last time of asking."""
    done = {"rows": 0, "steps": 0}
    connect = sqlite3.connect

    def counted(*arguments, **options):
        connection = connect(*arguments, **options)

        def count(cursor, row):
            done["rows"] += 1
            return row

        def step():
            done["steps"] += 1

        connection.row_factory = count
        connection.set_progress_handler(step, 1)
        return connection

    monkeypatch.setattr(store.sqlite3, "connect", counted)

    def since(act):
        done.update(rows=0, steps=0)
        act()
        return dict(done)

    return since


@pytest.fixture
def file(tmp_path):
    return LedgerFile.create(tmp_path / "ledger", Budget(100.0), data_set="x")


def test_a_charge_reads_as_much_after_300_entries_as_after_10(file, work):
    numbers = iter(range(1000))

    def fresh():
        return event(label=f"run {next(numbers):04}")

    uses = {
        "open": lambda: LedgerFile.open(file.path),
        "check": lambda: file.check(fresh()),
        "charge": lambda: file.charge(fresh()),
        "charge_once": lambda: file.charge_once(fresh()),
        "charge_once, there": lambda: file.charge_once(event(label="run 0003")),
        "reserve": lambda: file.reserve(event(mechanism="other"), times=2),
        "release": lambda: file.cancel_reservation(next(iter(file.reservations))),
        "identity": lambda: file.identity,
        "data_set": lambda: file.data_set,
        "budget": lambda: file.budget,
        "left": lambda: file.left,
        "reservations": lambda: file.reservations,
    }
    for _ in range(10):
        file.charge(fresh())
    early = {name: work(use) for name, use in uses.items()}
    early_whole = work(file.verify)
    while file.charge(fresh()).serial < 300:
        pass
    late = {name: work(use) for name, use in uses.items()}
    assert late == early
    assert max(done["rows"] for done in late.values()) < 40
    # And the count sees what reads all.
    late_whole = work(file.verify)
    assert late_whole["rows"] > early_whole["rows"] + 250
    assert late_whole["steps"] > 10 * early_whole["steps"]


def test_a_check_raises_what_a_charge_would_and_writes_nothing(tmp_path):
    budget = Budget(1.0, relation=ReplaceOne(2))
    file = LedgerFile.create(tmp_path / "ledger", budget, data_set="x")
    two = ReplaceOne(2)
    file.charge(event(PureDP(0.5), relation=two))
    file.reserve(event(PureDP(0.2), relation=two), times=2)
    before = file.path.read_bytes()
    asked = [
        event(PureDP(0.05)),
        event(PureDP(0.2), relation=two),
        event(PureDP(0.1), relation=two),
        event(PureDP(0.11), relation=two),
        event(ZCDP(0.1), relation=two),
    ]
    found = [refusal(file.check, one) for one in asked]
    assert file.path.read_bytes() == before
    assert [one and one[0] for one in found] == [
        ValueError,
        None,
        None,
        BudgetExceeded,
        BudgetExceeded,
    ]
    for one, said in zip(asked, found, strict=True):
        file.path.write_bytes(before)
        assert refusal(file.charge, one) == said
    for use in (file.check, file.charge, file.charge_once):
        with pytest.raises(TypeError, match="expected an Event"):
            use("an event")


def test_sums_are_exact_for_tiny_and_many_epsilons(tmp_path):
    file = LedgerFile.create(tmp_path / "ledger", Budget(1e10), data_set="x")
    epsilons = (0.1, 5e-324, 1 / 3, 1e-17)
    for epsilon in epsilons:
        file.charge(event(PureDP(epsilon), count=10**9 + 7))
    wanted = (10**9 + 7) * sum(Fraction(repr(epsilon)) for epsilon in epsilons)
    assert Fraction(json.loads(kept(file.path)[3])["epsilon"]) == wanted
    assert file.verify() == 4


def without_one_charge(path):
    """The totals as they would be with one charge less."""
    totals = json.loads(kept(path)[3])
    return {**totals, "epsilon": str(Fraction(totals["epsilon"]) - Fraction(1, 10))}


def test_totals_without_one_charge_are_refused_by_every_use(file):
    for _ in range(3):
        file.charge(event())
    less = json.dumps(without_one_charge(file.path), sort_keys=True, separators=(",", ":"))
    sql(file.path, f"UPDATE ledger SET totals = '{less}'")
    for use in (
        lambda: LedgerFile.open(file.path),
        lambda: file.charge(event()),
        lambda: file.check(event()),
        lambda: file.charge_once(event()),
        lambda: file.reserve(event(), times=1),
        lambda: file.left,
        lambda: file.events,
        file.verify,
    ):
        with pytest.raises(LedgerRefused, match="totals are damaged"):
            use()


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "1/5"},
        {"epsilon": None},
        {"rho": "0"},
        {"delta": "1/1000000000000"},
        {"reserved": []},
    ],
)
def test_wrong_totals_with_a_valid_seal_are_detected_by_verify(tmp_path, changes):
    """The stated limit: a forger's totals are believed until somebody verifies."""
    file = LedgerFile.create(tmp_path / "ledger", Budget(1.0, 1e-6), data_set="x")
    for _ in range(3):
        file.charge(event())
    file.reserve(event(mechanism="other"), times=1)
    forge_totals(file.path)
    assert file.verify() == 4
    forge_totals(file.path, **changes)
    assert LedgerFile.open(file.path).charge(event(PureDP(1e-4))).serial == 5
    for whole in (file.verify, lambda: file.events, lambda: file.set_budget(Budget(2.0, 1e-6))):
        with pytest.raises(LedgerRefused, match="totals are not those of its charges"):
            whole()


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "101", "rho": "101"},
        {"epsilon": "x"},
        {"epsilon": "1/0"},
        {"epsilon": "2/2"},
        {"rho": None},
        {"reserved": [[1, "{}"]]},
        {"more": "1"},
    ],
)
def test_invalid_totals_are_refused_by_every_use(file, changes):
    forge_totals(file.path, **changes)
    with pytest.raises(LedgerRefused, match=r"damaged|exceed"):
        LedgerFile.open(file.path)


class DiedError(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("together", [True, False])
def test_a_row_and_its_totals_are_written_together_or_not_at_all(file, monkeypatch, together):
    """Otherwise the file would be refused: no charge is missing from the totals."""
    file.charge(event())
    before = file.path.read_bytes()

    def die(connection, _):
        if not together:
            connection.execute("COMMIT")
        raise DiedError

    monkeypatch.setattr(store, "_write_state", die)
    with pytest.raises(DiedError):
        file.charge(event())
    monkeypatch.undo()
    if together:
        assert file.path.read_bytes() == before
        assert file.verify() == 1
    else:
        with pytest.raises(LedgerRefused, match="missing at the end"):
            file.charge(event())
