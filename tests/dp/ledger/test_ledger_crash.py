"""A ledger whose processes are killed, or race for what is left of it."""

import pytest
from forking import drive

DRIVER = r'''
import os, random, shutil, signal, time
from fractions import Fraction

from faults import die_beyond
from forking import child, ended, killed_everywhere, race, tried

from dpmic_jax.dp.accounting.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.ledger.file import Budget, LedgerFile

EVENT = Event(mechanism="m", guarantee=PureDP(0.001), relation=ReplaceOne(), n=9,
              sensitivity=Fraction(1), label="x" * 500)


def charge_then_release(out, path, point=lambda _: None):
    """A byte down the pipe is the release of what was charged."""
    LedgerFile(path).charge(EVENT)
    point("release")
    os.write(out, b".")
    point("next")


def release_then_charge(out, path, point):
    os.write(out, b".")
    LedgerFile(path).charge(EVENT)
    point("next")


def made(path, charges):
    ledger = LedgerFile.create(path, Budget(1000.0), data_set="crash")
    for _ in range(charges):
        ledger.charge(EVENT)
    return path


def whole(path, known):
    """How many charges there are more than were known, in a file that is as it should be."""
    ledger = LedgerFile.open(path)
    # That the totals are those of the entries, too.
    assert ledger.verify() == len(ledger.events)
    charged = len(ledger.events) - known
    assert ledger.charge(EVENT).serial == known + charged + 1
    assert ledger.spent.epsilon == (known + charged + 1) / 1000
    return charged


def steps(folder, step=charge_then_release):
    """Killed before each step of a charge."""
    found = {"uncharged": 0, "unused": 0, "used": 0, "journals": 0}
    first = made(os.path.join(folder, "first.ledger"), 2)
    begin = lambda number: shutil.copy(first, os.path.join(folder, f"{number}.ledger"))
    for path, _, wrote in killed_everywhere(begin, step):
        found["journals"] += os.path.exists(path + "-journal")
        charged, released = whole(path, 2), len(wrote)
        assert charged <= 1 and released <= 1
        found["uncharged"] += released > charged
        found["unused"] += charged > released
        found["used"] += charged == released == 1
    return found


def early(folder):
    return steps(folder, release_then_charge)


def torn(folder):
    """Ended in the middle of a write: of the journal, and of the ledger's own pages."""
    found = {"journal": 0, "pages": 0, "done": 0}
    # So many that the pages reach beyond the journal, which has only those that change.
    first = made(os.path.join(folder, "first.ledger"), 30)
    content, path = open(first, "rb").read(), os.path.join(folder, "torn.ledger")

    def work(out, limit):
        die_beyond(limit)
        charge_then_release(out, path)

    for limit in range(100, len(content) + 3 * 4096, 2500):
        shutil.copy(first, path)
        code, wrote = ended(*child(lambda out: work(out, limit)))
        assert code in (0, -signal.SIGXFSZ)
        assert len(wrote) == (code == 0)
        if code:
            assert os.path.exists(path + "-journal")
        changed = open(path, "rb").read() != content
        found["done" if code == 0 else "pages" if changed else "journal"] += 1
        assert whole(path, 30) == (code == 0)
    return found


def kills(folder, count):
    """Charge until killed, at any moment."""
    dice = random.Random(7)
    found = {"released": 0, "journals": 0, "uncharged": 0}
    for i in range(int(count) // 20):
        path, known = made(os.path.join(folder, f"{i}.ledger"), 0), 0

        def work(out):
            while True:
                charge_then_release(out, path)

        for _ in range(20):
            pid, pipe = child(work)
            # Once it has begun, it can be anywhere in a charge when the time comes.
            released = len(os.read(pipe, 1))
            time.sleep(dice.uniform(0, 0.03))
            os.kill(pid, signal.SIGKILL)
            code, wrote = ended(pid, pipe)
            assert code == -signal.SIGKILL
            released += len(wrote)
            found["released"] += released
            found["journals"] += os.path.exists(path + "-journal")
            charged = whole(path, known)
            found["uncharged"] += max(released - charged, 0)
            assert abs(charged - released) <= 1
            known += charged + 1
    return found


def races(folder, count):
    """Eight processes want the last unit."""
    wins = []
    for i in range(int(count)):
        path = os.path.join(folder, f"{i}.ledger")
        ledger = LedgerFile.create(path, Budget(0.005), data_set="race")
        for _ in range(4):
            ledger.charge(EVENT)
        want = lambda out: tried(out, lambda: LedgerFile(path).charge(EVENT))
        results = b"".join(race([want] * 8))
        wins.append(results.count(b"W"))
        assert len(results) == 8
        assert len(LedgerFile.open(path).events) == 5
    return {"wins": wins}


def creations(folder):
    """Killed before each step of making a ledger: it is there whole, or not at all."""
    found = {"there": 0, "not there": 0}
    begin = lambda number: os.path.join(folder, f"{number}.ledger")
    make = lambda out, path, _: LedgerFile.create(path, Budget(1.0), data_set="x")
    for path, _, _ in killed_everywhere(begin, make):
        there = os.path.exists(path)
        found["there" if there else "not there"] += 1
        if there:
            assert LedgerFile.open(path).events == ()
        else:
            LedgerFile.create(path, Budget(1.0), data_set="x")
    return found
'''


def test_kills_before_every_step_lose_no_charge(tmp_path):
    found = drive(DRIVER, "steps", tmp_path)
    assert found["uncharged"] == 0
    # Died between the charge and its release; and before the next charge, or not at all.
    assert (found["unused"], found["used"]) == (1, 2)
    # Died inside the transaction: before its second change, and before it is committed.
    assert found["journals"] == 2


def test_the_kills_detect_a_release_before_its_charge(tmp_path):
    found = drive(DRIVER, "early", tmp_path)
    assert found["uncharged"] > 5
    assert found["journals"] == 2


def test_partial_writes_are_rolled_back(tmp_path):
    found = drive(DRIVER, "torn", tmp_path)
    assert found["journal"] > 3
    # Their journals were there to put pages back that had been overwritten.
    assert found["pages"] > 3
    assert found["done"] > 0


def test_of_eight_processes_one_charges_the_last_unit(tmp_path):
    assert drive(DRIVER, "races", tmp_path, 10)["wins"] == [1] * 10


def test_a_killed_create_leaves_a_whole_ledger_or_none(tmp_path):
    found = drive(DRIVER, "creations", tmp_path)
    assert found["not there"] > 5  # the file under another name is filled, and linked at last
    assert found["there"] > 1


@pytest.mark.slow
def test_2000_kills_at_any_moment_lose_no_charge(tmp_path):
    found = drive(DRIVER, "kills", tmp_path, 2000)
    print(found)
    assert found["uncharged"] == 0
