"""Charges of work that goes on after a crash, a ledger's name, and its change of budget."""

from dataclasses import replace
from fractions import Fraction

import pytest
from forking import drive

from dpmic_jax.dp.accounting.events import ZCDP, Event, PureDP, ReplaceOne
from dpmic_jax.dp.ledger.file import Budget, BudgetExceeded, Ledger, LedgerFile, LedgerRefused


def event(epsilon=0.4, label="run 1", **changes):
    plain = Event(
        mechanism="screen",
        guarantee=PureDP(epsilon),
        relation=ReplaceOne(),
        n=337,
        sensitivity=Fraction(29, 1000),
        settings=(("ask", "all"),),
        label=label,
    )
    return replace(plain, **changes)


@pytest.fixture
def file(tmp_path):
    return LedgerFile.create(tmp_path / "ledger", Budget(1.0), data_set="x")


def test_the_same_work_is_charged_once_and_has_one_receipt(file):
    file.charge(event(0.1, label="before"))
    first = file.charge_once(event())
    file.charge(event(0.1, label="after"))
    before = file.path.read_bytes()
    assert file.charge_once(event()) == first
    assert file.path.read_bytes() == before
    assert first.serial == 2
    assert file.events[1] == event()
    assert len(file.events) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"label": "run 2"},
        {"n": 338},
        {"count": 2},
        {"settings": (("ask", "top"),)},
        {"guarantee": PureDP(0.39)},
        {"relation": ReplaceOne(2)},
    ],
)
def test_other_work_is_charged_on_its_own(tmp_path, changes):
    file = LedgerFile.create(tmp_path / "ledger", Budget(5.0), data_set="x")
    file.charge_once(event())
    assert file.charge_once(event(**changes)).serial == 2


def test_charge_once_returns_the_same_receipt_again(file, tmp_path):
    assert file.charge_once(event()) == file.charge_once(event())
    serial, kept = file.charge_once(event())[1:]
    copy = tmp_path / "copy"
    copy.write_bytes(file.path.read_bytes())
    assert LedgerFile.open(copy).charge_once(event())[1:] == (serial, kept)


def test_only_new_events_need_budget(file):
    file.charge_once(event(1.0))
    assert file.charge_once(event(1.0)).serial == 1
    before = file.path.read_bytes()
    with pytest.raises(BudgetExceeded, match="0 of 1 is left"):
        file.charge_once(event(0.1))
    assert file.path.read_bytes() == before


def test_charge_once_refuses_a_damaged_ledger(file):
    file.charge_once(event())
    content = file.path.read_bytes()
    file.path.write_bytes(content.replace(b"run 1", b"run 2"))
    with pytest.raises(LedgerRefused):
        file.charge_once(event())


RACERS = """
import os

from forking import race

from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.ledger.file import LedgerFile


def racers(path, event):
    def charge(out):
        receipt = LedgerFile(path).charge_once(Event.from_json(event))
        os.write(out, b"%d" % receipt.serial)

    return [serial.decode() for serial in race([charge] * 8)]
"""


def test_racing_processes_make_one_charge(file):
    assert drive(RACERS, "racers", file.path, event().to_json()) == ["1"] * 8
    assert len(file.events) == 1


def test_the_identity_of_a_ledger_is_unique_and_stays(file, tmp_path):
    other = LedgerFile.create(tmp_path / "other", Budget(1.0), data_set="x")
    assert file.identity != other.identity
    assert len(file.identity) == 32
    before = file.identity
    assert file.charge(event()).ledger == before
    file.set_budget(Budget(2.0))
    assert LedgerFile.open(file.path).identity == before


def filled(file):
    for number in range(3):
        file.charge(event(0.2, label=f"run {number}"))
    return file


@pytest.mark.parametrize(
    "budget", [Budget(2.0), Budget(0.6), Budget(1.0, 1e-6), Budget(5.0, 1e-3, failure_share=0.5)]
)
def test_a_new_budget_that_fits_the_charges_takes_effect(file, budget):
    events = filled(file).events
    file.set_budget(budget)
    again = LedgerFile.open(file.path)
    assert (again.budget, again.events, again.data_set) == (budget, events, "x")
    assert again.ledger == Ledger(budget, events)
    assert again.charge_once(events[1]).serial == 2
    left = again.left.epsilon
    if left:
        assert again.charge(event(left, label="the rest")).serial == 4
    with pytest.raises(BudgetExceeded):
        again.charge(event(9.0, label="more"))


@pytest.mark.parametrize("budget", [Budget(0.59), Budget(9.0, relation=ReplaceOne(2))])
def test_a_new_budget_below_the_charges_is_refused(file, budget):
    filled(file)
    before = file.path.read_bytes()
    with pytest.raises(BudgetExceeded):
        file.set_budget(budget)
    assert file.path.read_bytes() == before


def test_a_new_budget_without_delta_is_refused_after_zcdp_charges(tmp_path):
    file = LedgerFile.create(tmp_path / "ledger", Budget(1.0, 1e-6), data_set="x")
    file.charge(event(guarantee=ZCDP(0.001)))
    with pytest.raises(BudgetExceeded):
        file.set_budget(Budget(100.0))
    assert file.budget == Budget(1.0, 1e-6)


def test_a_new_budget_has_to_be_a_budget(file):
    with pytest.raises(TypeError, match="Budget"):
        file.set_budget(3.0)


def test_create_needs_an_existing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        LedgerFile.create(tmp_path / "no" / "ledger", Budget(1.0), data_set="x")
