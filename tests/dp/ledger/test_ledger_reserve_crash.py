"""Budget set aside, whose processes are killed, or race for it."""

import pytest
from forking import drive

DRIVER = r'''
import os, random, shutil, signal, time
from fractions import Fraction

from forking import child, ended, killed_everywhere, race, tried

from dpmic_jax.dp.accounting.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.ledger.file import Budget, LedgerFile

MINE, THEIRS = (Event(mechanism=name, guarantee=PureDP(0.001), relation=ReplaceOne(), n=9,
                      sensitivity=Fraction(1), label="x" * 300) for name in ("mine", "theirs"))


def reservers(folder, count):
    """Six processes want three of the five that are left."""
    wins = []
    for i in range(int(count)):
        path = os.path.join(folder, f"{i}.ledger")
        LedgerFile.create(path, Budget(0.005), data_set="race")
        want = lambda out: tried(out, lambda: LedgerFile(path).reserve(MINE, times=3))
        wins.append(b"".join(race([want] * 6)).count(b"W"))
        assert LedgerFile.open(path).left.epsilon == 0.002
    return {"wins": wins}


def holders(folder, count, reserve=True, last=False):
    """One may have reserved eight of twelve; three others take what they can get.

    All at once; or that one when the others have had their turn, as late as can be.
    """
    found = []
    for i in range(int(count)):
        path = os.path.join(folder, f"{i}.ledger")
        ledger = LedgerFile.create(path, Budget(0.012), data_set="race")
        if reserve:
            ledger.reserve(MINE, times=8)

        def taking(event):
            def take(out):
                for _ in range(8):
                    tried(out, lambda: LedgerFile(path).charge(event))
            return take

        own, others = [taking(MINE)], [taking(THEIRS)] * 3
        results = race(others) + race(own) if last else race(others + own)
        found.append([results[-1].count(b"W"), b"".join(results[:-1]).count(b"W")])
        assert len(LedgerFile.open(path).events) == 12
    return {"found": found}


def last_holders(folder, count):
    return holders(folder, count, last=True)


def unheld(folder, count):
    return holders(folder, count, reserve=False, last=True)


def whole(path):
    """A ledger that is as it should be: what is neither spent nor set aside is left."""
    file = LedgerFile.open(path)
    assert file.verify() == file.entries  # that the totals are those of the entries, too
    aside = sum(one.times for one in file.reservations.values())
    assert file.left.epsilon == (10**6 - len(file.events) - aside) / 1000
    return len(file.events), aside


# What is done, and how many are spent and set aside before and after.
STAGES = {
    "reserve": (lambda file: file.reserve(MINE, times=2), (0, 0), (0, 2)),
    "first draw": (lambda file: file.charge(MINE), (0, 2), (1, 1)),
    "last draw": (lambda file: file.charge(MINE), (1, 1), (2, 0)),
    "beyond": (lambda file: file.charge(MINE), (2, 0), (3, 0)),
    "theirs": (lambda file: file.charge(THEIRS), (1, 1), (2, 1)),
    "release": (lambda file: file.cancel_reservation(1), (1, 1), (1, 0)),
}


def steps(folder):
    return {stage: killed_in(os.path.join(folder, stage), *STAGES[stage]) for stage in STAGES}


def killed_in(folder, use, before, after):
    """Killed before each step of one use."""
    os.mkdir(folder)
    first = LedgerFile.create(os.path.join(folder, "first"), Budget(1000.0), data_set="crash")
    if sum(before):
        first.reserve(MINE, times=2)
    for _ in range(before[0]):
        first.charge(MINE)
    assert whole(first.path) == before
    found = {"before": 0, "after": 0, "journals": 0, "told": 0}

    def work(out, path, point):
        use(LedgerFile(path))
        point("told")
        os.write(out, b".")

    for path, _, wrote in killed_everywhere(
        lambda number: shutil.copy(first.path, os.path.join(folder, str(number))), work
    ):
        found["journals"] += os.path.exists(path + "-journal")
        state = whole(path)
        assert state in (before, after)
        # Whoever was told has it.
        assert state == after or not wrote
        found["after" if state == after else "before"] += 1
        found["told"] += len(wrote)
        if state == before:
            use(LedgerFile(path))
            assert whole(path) == after
    return found


def kills(folder, count):
    """Killed while reserving and drawing, at any moment: what is set aside was not drawn."""
    dice = random.Random(7)
    found = {"drawn": 0, "left": 0, "uncharged": 0}
    path = os.path.join(folder, "ledger")
    LedgerFile.create(path, Budget(1000.0), data_set="crash")

    def work(out):
        file = LedgerFile(path)
        file.reserve(MINE, times=5)
        os.write(out, b"R")
        while True:
            file.charge(MINE)
            os.write(out, b".")

    for _ in range(int(count)):
        before = len(LedgerFile.open(path).events)
        pid, pipe = child(work)
        assert os.read(pipe, 1) == b"R"
        time.sleep(dice.uniform(0, 0.05))
        os.kill(pid, signal.SIGKILL)
        _, told = ended(pid, pipe)
        spent, aside = whole(path)
        charged = spent - before
        found["uncharged"] += max(len(told) - charged, 0)
        found["drawn"] += charged
        assert aside == max(5 - charged, 0)
        file = LedgerFile.open(path)
        found["left"] += len(file.reservations)
        for serial in file.reservations:
            file.cancel_reservation(serial)
        assert whole(path) == (spent, 0)
    return found
'''


def test_of_six_processes_that_reserve_more_than_half_one_succeeds(tmp_path):
    assert drive(DRIVER, "reservers", tmp_path, 4)["wins"] == [1] * 4


@pytest.mark.parametrize("order", ["holders", "last_holders"])
def test_a_reservation_is_kept_while_other_processes_charge_the_rest(tmp_path, order):
    assert drive(DRIVER, order, tmp_path, 3)["found"] == [[8, 4]] * 3


def test_without_a_reservation_other_processes_use_up_the_budget(tmp_path):
    assert drive(DRIVER, "unheld", tmp_path, 1)["found"] == [[0, 12]]


def test_kills_before_every_step_lose_neither_charges_nor_reservations(tmp_path):
    for stage, found in drive(DRIVER, "steps", tmp_path).items():
        assert found["before"] > 5, stage
        # Died before it was told of what was done, or not at all.
        assert (found["after"], found["told"]) == (2, 1), stage
        assert found["journals"] == 2, stage


@pytest.mark.slow
def test_200_kills_at_any_moment_lose_neither_charges_nor_reservations(tmp_path):
    found = drive(DRIVER, "kills", tmp_path, 200)
    print(found)
    assert found["uncharged"] == 0
