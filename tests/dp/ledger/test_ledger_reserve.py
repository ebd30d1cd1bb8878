"""Reservations of budget for later charges, compared with a model, and in the command line."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from ledger_files import sql, write_version_1

from dpmic_jax.cli import main
from dpmic_jax.dp.accounting.events import (
    ZCDP,
    ApproximateDP,
    Event,
    GaussianDP,
    PureDP,
    ReplaceOne,
)
from dpmic_jax.dp.ledger.file import Budget, BudgetExceeded, LedgerFile, LedgerRefused


def event(epsilon=0.1, **changes):
    plain = Event(
        mechanism="screen: TopK",
        guarantee=PureDP(epsilon),
        relation=ReplaceOne(),
        n=337,
        sensitivity=Fraction(29, 1000),
        settings=(("B", "12"),),
        label="run 1",
    )
    return replace(plain, **changes)


OTHER = event(mechanism="screen: AllPairs")


@pytest.fixture
def file(tmp_path):
    return LedgerFile.create(tmp_path / "ledger", Budget(1.0), data_set="x")


def test_a_reservation_that_does_not_fit_is_refused_as_a_whole(file):
    file.charge(OTHER)
    before = file.path.read_bytes()
    with pytest.raises(
        BudgetExceeded,
        match=r"none of 10 charges was reserved: screen: TopK asks for more than is left: "
        r"epsilon=1 asked, 0.1 spent, 0.9 of 1 is left$",
    ):
        file.reserve(event(), times=10)
    assert file.path.read_bytes() == before
    assert file.reserve(event(), times=9).serial == 2


def test_as_many_charges_as_were_reserved_are_admitted_and_no_more(file):
    file.reserve(event(), times=10)
    for number in range(10):
        assert file.reservations[1].times == 10 - number
        file.charge(event(n=300 + number, label=f"run {number}"))
    assert file.reservations == {}
    assert file.spent.epsilon == 1.0
    with pytest.raises(BudgetExceeded, match=r"0 of 1 is left$"):
        file.charge(event())


def test_other_charges_cannot_use_reserved_budget(file):
    file.charge(OTHER)
    file.reserve(event(), times=8)
    assert file.left.epsilon == 0.1
    assert file.spent.epsilon == 0.1
    assert file.charge(OTHER).serial == 3
    with pytest.raises(
        BudgetExceeded,
        match=r"epsilon=0.1 asked, 1 spent, 0 of 1 is left; spent counts what entries 2 reserve$",
    ):
        file.charge(OTHER)
    with pytest.raises(BudgetExceeded, match=r"none of 1 charges .* entries 2 reserve$"):
        file.reserve(event(), times=1)
    assert file.charge(event()).serial == 4


@pytest.mark.parametrize(
    ("changes", "draws"),
    [
        ({"label": "run 2"}, True),
        ({"n": 338}, True),
        ({"sensitivity": Fraction(1, 7)}, True),
        ({"settings": (("B", "13"),)}, True),
        ({"mechanism": "screen: Above"}, False),
        ({"guarantee": PureDP(0.0999)}, False),
        ({"guarantee": ApproximateDP(0.1, 1e-9)}, False),
        ({"relation": ReplaceOne(2)}, False),
        ({"count": 2}, False),
    ],
)
def test_a_charge_draws_if_mechanism_guarantee_relation_and_count_match(tmp_path, changes, draws):
    file = LedgerFile.create(tmp_path / "ledger", Budget(1.0, 1e-5), data_set="x")
    file.reserve(event(), times=3)
    file.charge(event(**changes))
    assert file.reservations[1].times == (2 if draws else 3)


@pytest.mark.parametrize("kind", [ZCDP, GaussianDP])
def test_charges_draw_if_rho_or_mu_matches_whatever_their_total_variation(kind, tmp_path):
    file = LedgerFile.create(tmp_path / "ledger", Budget(1.0, 1e-6), data_set="x")
    file.reserve(event(guarantee=kind(0.001, 1e-15)), times=3)
    file.charge(event(guarantee=kind(0.001, 2e-15)))
    assert file.reservations[1].times == 2
    file.charge(event(guarantee=kind(0.0015, 1e-15)))
    assert file.reservations[1].times == 2


def test_a_gaussian_release_of_the_whole_budget_can_be_reserved_once(tmp_path):
    budget = Budget(1.0, 1e-6)
    whole = event(guarantee=GaussianDP(budget.mu, 1e-15))
    file = LedgerFile.create(tmp_path / "ledger", budget, data_set="x")
    with pytest.raises(BudgetExceeded):
        file.reserve(replace(whole, guarantee=GaussianDP(budget.mu / 1.4)), times=2)
    file.reserve(whole, times=1)
    with pytest.raises(BudgetExceeded):
        file.charge(event(guarantee=PureDP(1e-9)))
    file.charge(whole)
    assert not file.reservations
    assert LedgerFile.open(file.path).ledger.spent.epsilon <= 1.0


def test_a_draw_with_more_inexact_noise_than_the_budget_allows_is_refused(tmp_path):
    """A drawn charge costs what it costs itself, not what was reserved."""
    file = LedgerFile.create(tmp_path / "ledger", Budget(1.0, 1e-6), data_set="x")
    file.reserve(event(guarantee=ZCDP(0.001, 1e-15)), times=3)
    with pytest.raises(BudgetExceeded, match="inexact noise"):
        file.charge(event(guarantee=ZCDP(0.001, 1e-7)))
    assert file.reservations[1].times == 3


KINDS = ("a", "b", "c")
COST = {"a": 1, "b": 2, "c": 5}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("charge"), st.sampled_from(KINDS)),
        st.tuples(st.just("reserve"), st.sampled_from(KINDS), st.integers(1, 6)),
        st.tuples(st.just("release"), st.integers(1, 8)),
    ),
    max_size=14,
)


class Model:
    """A budget of twenty units: what is charged, and a list of reservations."""

    def __init__(self):
        self.spent, self.reservations, self.entries = 0, [], 0

    def take(self, step):
        done = getattr(self, step[0])(*step[1:])
        self.entries += done
        return done

    @property
    def free(self):
        return 20 - self.spent - sum(COST[kind] * left for _, kind, left in self.reservations)

    def charge(self, kind):
        for reservation in self.reservations:
            if reservation[1] == kind:
                reservation[2] -= 1
                self.spent += COST[kind]
                self.reservations = [one for one in self.reservations if one[2]]
                return True
        fits = COST[kind] <= self.free
        self.spent += COST[kind] * fits
        return fits

    def reserve(self, kind, times):
        fits = COST[kind] * times <= self.free
        if fits:
            self.reservations.append([self.entries + 1, kind, times])
        return fits

    def release(self, serial):
        kept = [reservation for reservation in self.reservations if reservation[0] != serial]
        done = len(kept) < len(self.reservations)
        self.reservations = kept
        return done


@given(STEPS)
def test_any_sequence_is_admitted_and_refused_as_by_the_model(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("model") / "ledger"
    file, model = LedgerFile.create(path, Budget(2.0), data_set="x"), Model()

    def take(step):
        if step[0] == "release":
            file.cancel_reservation(step[1])
            return
        one = event(COST[step[1]] / 10, mechanism=step[1])
        file.charge(one) if step[0] == "charge" else file.reserve(one, times=step[2])

    for step in steps:
        if model.take(step):
            take(step)
        else:
            with pytest.raises((BudgetExceeded, ValueError)):
                take(step)
        reservations = {serial: (kind, left) for serial, kind, left in model.reservations}
        kept = {
            serial: (one.event.mechanism, one.times) for serial, one in file.reservations.items()
        }
        assert kept == reservations
        assert round(10 * sum(one.epsilon for one in file.events)) == model.spent
        assert round(10 * file.left.epsilon) == model.free


def test_a_reservation_can_be_cancelled_once(file):
    serial = file.reserve(event(), times=10).serial
    file.charge(event())
    file.charge(event())
    file.cancel_reservation(serial)
    assert file.reservations == {}
    assert (file.spent.epsilon, file.left.epsilon) == (0.2, 0.8)
    for other in (serial, 2, 99):
        with pytest.raises(ValueError, match=f"entry {other} of .* is no reservation, or nothing"):
            file.cancel_reservation(other)
    assert file.charge(event(0.8)).serial == 5


def test_a_reservation_stays_in_the_file_until_it_is_drawn_or_cancelled(file):
    file.reserve(event(), times=10)
    file.charge(event())
    again = LedgerFile.open(file.path)
    assert again.reservations[1].times == 9
    assert again.charges == {2: event()}
    with pytest.raises(BudgetExceeded):
        again.charge(OTHER)


def test_charge_once_draws_once(file):
    file.reserve(event(), times=10)
    first = file.charge_once(event())
    assert first.serial == 2
    assert file.charge_once(event()) == first
    assert file.reservations[1].times == 9


def test_a_new_budget_has_to_fit_reservations_too(file):
    file.charge(OTHER)
    file.reserve(event(), times=5)
    for budget in (Budget(0.59), Budget(9.0, relation=ReplaceOne(2))):
        before = file.path.read_bytes()
        with pytest.raises(BudgetExceeded):
            file.set_budget(budget)
        assert file.path.read_bytes() == before
    file.set_budget(Budget(0.6))
    assert LedgerFile.open(file.path).reservations[2].times == 5
    with pytest.raises(BudgetExceeded):
        file.charge(OTHER)
    file.charge(event())


def test_a_reservation_has_to_protect_as_many_records_as_the_budget(tmp_path):
    budget = Budget(1.0, relation=ReplaceOne(3))
    file = LedgerFile.create(tmp_path / "ledger", budget, data_set="x")
    with pytest.raises(ValueError, match="people with 3 records"):
        file.reserve(event(), times=1)


@pytest.mark.parametrize("times", [0, -1, True, 1.5, "2"])
def test_times_has_to_be_a_positive_integer(file, times):
    with pytest.raises((TypeError, ValueError), match="times"):
        file.reserve(event(), times=times)
    with pytest.raises(TypeError, match="Event"):
        file.reserve("a fit", times=1)
    assert file.reservations == {}


@pytest.mark.parametrize(
    "edit",
    [
        """UPDATE charges SET event = replace(event, '"times":4', '"times":1') WHERE serial = 2""",
        "DELETE FROM charges WHERE serial = 2",
        "DELETE FROM charges WHERE serial = 4",
    ],
)
def test_edited_reservations_are_refused(file, edit):
    file.charge(OTHER)
    file.reserve(event(), times=4)
    file.charge(event())
    file.cancel_reservation(2)
    assert sql(file.path, edit) == 1
    with pytest.raises(LedgerRefused):
        file.verify()


def reserved(times):
    return json.dumps(
        {"reserve": event().to_json(), "times": times}, sort_keys=True, separators=(",", ":")
    )


def test_entries_in_the_documented_format_are_read(tmp_path):
    path = tmp_path / "old"
    write_version_1(path, [reserved(4), event().to_json(), '{"release":1}'])
    file = LedgerFile.open(path)
    assert file.charges == {2: event()}
    assert file.reservations == {}


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (['{"release":1}'], "damaged"),
        ([event().to_json(), '{"release":1}'], "damaged"),
        ([reserved(4), '{"release":1}', '{"release":1}'], "damaged"),
        ([reserved(1), event().to_json(), '{"release":1}'], "damaged"),
        ([reserved(0)], "damaged"),
        ([reserved(True)], "damaged"),
        ([reserved(4).replace(",", ", ")], "damaged"),
        ([reserved(4).replace("}", ',"who":"me"}')], "damaged"),
        (['"reserve"'], "damaged"),
        (["7"], "damaged"),
        ([reserved(11)], "exceed its budget"),
        ([reserved(10), OTHER.to_json()], "exceed its budget"),
    ],
)
def test_invalid_entries_are_refused(tmp_path, texts, reason):
    """Rightly chained: what a forger or another version makes."""
    path = tmp_path / "forged"
    write_version_1(path, texts)
    with pytest.raises(LedgerRefused, match=reason):
        LedgerFile.open(path)


def test_ledger_show_lists_reservations_and_release_cancels_them(file):
    file.charge(OTHER)
    file.reserve(event(), times=4)
    file.charge(event())
    run = CliRunner().invoke
    shown = run(main, ["ledger", "show", str(file.path)]).output
    assert "spent     epsilon 0.2" in shown
    assert "left      epsilon 0.5" in shown
    assert "   2  reserved: 3 times screen: TopK: 1 x PureDP(epsilon=0.1)" in shown
    assert "   3  screen: TopK, n=337" in shown
    done = run(main, ["ledger", "release", str(file.path), "2"])
    assert done.exit_code == 0
    assert "left      epsilon 0.8" in done.output
    assert "reserved" not in done.output
    again = run(main, ["ledger", "release", str(file.path), "2"])
    assert again.exit_code == 2
    assert "no reservation" in again.output
