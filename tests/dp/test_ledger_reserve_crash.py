"""Budget set aside, whose processes are killed, or race for it."""

import pytest
from forking import drive

DRIVER = r'''
MINE, THEIRS = (Event(mechanism=name, guarantee=PureDP(0.001), relation=ReplaceOne(), n=9,
                      sensitivity=Fraction(1), label="x" * 300) for name in ("mine", "theirs"))


def reservers():
    """Six processes want three of the five that are left."""
    wins = []
    for i in range(count):
        path = os.path.join(folder, f"{i}.ledger")
        LedgerFile.create(path, Budget(0.005), data_set="race")
        want = lambda out: tried(out, lambda: LedgerFile(path).reserve(MINE, times=3))
        wins.append(b"".join(race([want] * 6)).count(b"W"))
        assert LedgerFile.open(path).left.epsilon == 0.002
    return {"wins": wins}


def holders(reserve=True):
    """One has reserved eight of twelve and takes its time; three others take what they can get."""
    found = []
    for i in range(count):
        path = os.path.join(folder, f"{i}.ledger")
        ledger = LedgerFile.create(path, Budget(0.012), data_set="race")
        if reserve:
            ledger.reserve(MINE, times=8)

        def mine(out):
            for _ in range(8):
                time.sleep(0.01)
                tried(out, lambda: LedgerFile(path).charge(MINE))

        def theirs(out):
            for _ in range(8):
                tried(out, lambda: LedgerFile(path).charge(THEIRS))

        own, *others = race([mine, theirs, theirs, theirs])
        found.append([own.count(b"W"), b"".join(others).count(b"W")])
        assert len(LedgerFile.open(path).events) == 12
    return {"found": found}


def unheld():
    return holders(reserve=False)


def kills():
    """Killed while reserving and drawing: what is set aside is what was not drawn."""
    dice = random.Random(7)
    found = {"drawn": 0, "left": 0, "unpaid": 0}
    path = os.path.join(folder, "ledger")
    LedgerFile.create(path, Budget(1000.0), data_set="crash")
    for _ in range(count):
        before = len(LedgerFile.open(path).events)

        def work(out):
            file = LedgerFile(path)
            file.reserve(MINE, times=5)
            os.write(out, b"R")
            while True:
                file.charge(MINE)
                os.write(out, b".")

        pid, pipe = child(work)
        select.select([pipe], [], [], 30)
        time.sleep(dice.uniform(0, 0.05))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        told = everything(pipe)
        file = LedgerFile.open(path)
        file.verify()  # that the totals are those of the entries, too
        paid = len(file.events) - before
        found["unpaid"] += max(told.count(b".") - paid, 0)
        found["drawn"] += paid
        kept = file.reservations
        if b"R" in told:
            assert sum(one.times for one in kept.values()) == max(5 - paid, 0)
        found["left"] += len(kept)
        for serial in kept:
            file.release(serial)
        spent = len(file.events)
        assert file.left.epsilon == (10**6 - spent) / 1000
    return found
'''


def test_of_six_processes_that_reserve_more_than_half_one_wins(tmp_path):
    assert drive(DRIVER, tmp_path, "reservers", 4)["wins"] == [1] * 4


def test_whoever_has_reserved_gets_it_while_others_take_the_rest(tmp_path):
    assert drive(DRIVER, tmp_path, "holders", 3)["found"] == [[8, 4]] * 3


def test_whoever_has_not_reserved_is_overtaken(tmp_path):
    assert any(own < 8 for own, _ in drive(DRIVER, tmp_path, "unheld", 3)["found"])


@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_lose_neither_charges_nor_what_is_set_aside(tmp_path, kills):
    found = drive(DRIVER, tmp_path, "kills", kills)
    assert found["unpaid"] == 0
    assert found["drawn"] > 0
    assert found["left"] > 0
