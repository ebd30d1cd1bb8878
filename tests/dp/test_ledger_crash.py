"""A ledger whose processes are killed, or race for what is left of it."""

import pytest
from forking import drive

DRIVER = r'''
EVENT = Event(mechanism="m", guarantee=PureDP(0.001), relation=ReplaceOne(), n=9,
              sensitivity=Fraction(1), label="x" * 500)


def charge_then_release(path, out):
    LedgerFile(path).charge(EVENT)
    os.write(out, b".")


def release_then_charge(path, out):
    os.write(out, b".")
    LedgerFile(path).charge(EVENT)


def kills(step=charge_then_release):
    """Charge until killed; a byte down the pipe is the release of what was charged."""
    dice = random.Random(7)
    found = {"released": 0, "journals": 0, "unused": 0, "unpaid": 0}
    for i in range(count // 20):
        path = os.path.join(folder, f"{i}.ledger")
        LedgerFile.create(path, Budget(1000.0), data_set="crash")
        known = 0

        def work(out):
            while True:
                step(path, out)

        for _ in range(20):
            pid, pipe = child(work)
            # Once it has begun, it can be anywhere in a charge when the time comes.
            select.select([pipe], [], [], 30)
            time.sleep(dice.uniform(0, 0.03))
            os.kill(pid, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
            released = len(everything(pipe))
            found["released"] += released
            found["journals"] += os.path.exists(path + "-journal")
            ledger = LedgerFile.open(path)
            # That the totals are those of the entries, too.
            assert ledger.verify() == len(ledger.events)
            paid = len(ledger.events) - known
            found["unpaid"] += max(released - paid, 0)
            found["unused"] += max(paid - released, 0)
            assert abs(paid - released) <= 1
            assert ledger.charge(EVENT).serial == known + paid + 1
            known += paid + 1
            assert ledger.spent.epsilon == known / 1000
    return found


def early():
    return kills(release_then_charge)


def races():
    """Eight processes want the last unit."""
    wins = []
    for i in range(count):
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


def creations():
    """Killed while making a ledger: it is there whole, or not at all."""
    dice = random.Random(7)
    made = 0
    for i in range(count):
        path = os.path.join(folder, f"{i}.ledger")
        pid, pipe = child(lambda out: LedgerFile.create(path, Budget(1.0), data_set="x"))
        time.sleep(dice.uniform(0, 0.02) * i / count)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(pipe)
        if os.path.exists(path):
            made += 1
            assert LedgerFile.open(path).events == ()
        else:
            LedgerFile.create(path, Budget(1.0), data_set="x")
    return {"made": made, "not made": count - made}
'''


@pytest.mark.parametrize("kills", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_lose_no_charge(tmp_path, kills):
    found = drive(DRIVER, tmp_path, "kills", kills)
    assert found["unpaid"] == 0
    # Some die before their first release, on a busy machine more of them.
    assert found["released"] >= kills // 2
    # Some died inside a transaction: their journals were there to be rolled back.
    assert found["journals"] > kills // 40


def test_the_kills_find_releases_that_come_before_their_charge(tmp_path):
    assert drive(DRIVER, tmp_path, "early", 40)["unpaid"] > 5


def test_eight_processes_racing_for_the_last_unit_have_one_winner(tmp_path):
    assert drive(DRIVER, tmp_path, "races", 10)["wins"] == [1] * 10


def test_a_killed_create_leaves_a_whole_ledger_or_none(tmp_path):
    assert drive(DRIVER, tmp_path, "creations", 40)["not made"] > 0


@pytest.mark.slow
def test_2000_kills_lose_no_charge(tmp_path):
    assert drive(DRIVER, tmp_path, "kills", 2000)["unpaid"] == 0
