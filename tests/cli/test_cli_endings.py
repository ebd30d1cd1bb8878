"""Whatever ends a command, the exit code and one sentence say what was charged and how to go on."""

import errno
import itertools
import os
import pty
import random
import signal
from collections import Counter

import pytest
from commands import dpmic
from interrupting import SIGNALS, Place, seconds_of
from processes import HANGS

from dpmic_jax import LedgerFile, MICrLap

NOTHING = "Interrupted; nothing was charged.\n"
SPENT = "Interrupted; the charge is spent, and the run cannot be resumed.\n"
CHECK = "dpmic_jax.dp.ledger.file:LedgerFile.check"
CHARGE = "dpmic_jax.dp.ledger.file:LedgerFile.charge"
OPEN = "dpmic_jax.data.source:open_source"
OPEN_LEDGER = "dpmic_jax.dp.ledger.file:LedgerFile.open"
# A command, where the interrupt comes, the exit code, and how many charges are in the ledger. An
# interrupt inside a charge waits for it.
POINTS = (
    ("screen", "call", "jax:<module>", 130, 0),
    ("screen", "call", "dpmic_jax.screening.tiles:TileScorer.tiles", 130, 0),
    ("screen, ledger", "call", OPEN_LEDGER, 130, 0),
    ("screen, ledger", "return", CHARGE, 5, 1),
    ("screen, out", "return", "dpmic_jax.runs.checkpoint:Folder.keep_tile", 4, 0),
    ("screen, out, ledger", "call", OPEN, 130, 0),
    ("screen, out, ledger", "call", CHARGE, 4, 1),
    ("screen, out, ledger", "call", "dpmic_jax.runs.checkpoint:Folder.finish", 4, 1),
    ("screen, out, ledger", "return", "dpmic_jax.results.screen_result:ScreenResult.to_csv", 4, 1),
    ("bounds learn", "return", OPEN, 130, 0),
    ("bounds learn", "call", CHARGE, 5, 1),
    ("bounds learn", "call", "dpmic_jax.mechanisms.cell_trees:CellTrees.release", 5, 1),
    ("causal", "call", OPEN, 130, 0),
    ("causal", "return", CHARGE, 5, 1),
    ("causal", "call", "dpmic_jax.causal.svt_pc:SVTPC._skeleton", 5, 1),
    ("causal, out", "return", CHECK, 130, 0),
    ("causal, out", "call", "dpmic_jax.runs.checkpoint:Folder.begin", 130, 0),
    ("causal, out", "return", "dpmic_jax.runs.checkpoint:Folder.keep_tile", 4, 1),
    ("report", "call", OPEN, 130, 0),
    ("report", "call", CHARGE, 4, 1),
    ("report", "call", "dpmic_jax.results.screen_result:ScreenResult.to_html", 4, 1),
    ("test", "call", "dpmic_jax.inference.post_selection:post_selection", 130, 0),
    ("plan", "return", "dpmic_jax.screening.preview:preview", 130, 0),
    ("causal-plan", "return", "dpmic_jax.causal.preview:preview_search", 130, 0),
    ("ledger init", "return", "dpmic_jax.data.schema.reading:read_schema", 130, 0),
    ("ledger set-budget", "return", OPEN_LEDGER, 130, 0),
    ("ledger show", "call", OPEN_LEDGER, 130, 0),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("endings"))


def sentence(place, command, code, charges):
    if code != 4:
        return {130: NOTHING, 5: SPENT}[code]
    again = ", at no further charge" if charges else ""
    return f"Interrupted; repeat the command to resume from {place.resumes_from(command)}{again}.\n"


@pytest.mark.parametrize(
    ("command", "event", "point", "code", "charges"),
    POINTS,
    ids=[f"{command}: {event} of {point}" for command, event, point, *_ in POINTS],
)
def test_an_interrupt_at_a_named_point_ends_in_one_true_sentence(
    place, command, event, point, code, charges
):
    place.cleared()
    # Other processes have imported JAX before they begin.
    run = place.at_point_anew if point == "jax:<module>" else place.at_point
    ending = run(command, event, point)
    assert ending == (code, "", sentence(place, command, code, charges), charges)
    assert not place.made.exists()


def test_an_interrupt_that_comes_too_late_changes_nothing(place):
    """The one change that these commands are for is made, and said."""
    init = place.cleared().at_point("ledger init", "call", "dpmic_jax.runs.data_set:create_ledger")
    assert (init.code, init.err) == (0, "")
    assert "left      epsilon 1\n" in init.out
    assert LedgerFile.open(place.made).events == ()
    budget = place.cleared().at_point(
        "ledger set-budget", "call", "dpmic_jax.dp.ledger.file:LedgerFile.set_budget"
    )
    assert (budget.code, budget.err) == (0, "")
    assert LedgerFile.open(place.ledger).budget.epsilon == 20
    done = place.cleared().at_point("plan", "return", "dpmic_jax.runs.stage:done")
    assert (done.code, done.err) == (0, "")
    assert "epsilon" in done.out


def test_an_interrupt_inside_the_garbage_collector_is_not_swallowed(place):
    """There, and in destructors, Python prints exceptions and goes on."""
    inside = "import gc; gc.callbacks.append(lambda *_: interrupt()); gc.collect()"
    point = ("ledger set-budget", "return", OPEN_LEDGER)
    assert place.cleared().at_point(*point, inside) == (130, "", NOTHING, 0)
    # Raised as an exception, as it was before, it is: the command goes on to its end.
    raised = "signal.signal(signal.SIGINT, signal.default_int_handler);" + inside
    swallowed = place.cleared().at_point(*point, raised)
    assert swallowed.code == 0
    assert "Exception ignored in" in swallowed.err
    assert "budget    epsilon 20" in swallowed.out


def test_on_a_terminal_the_sentence_has_a_line_of_its_own(place):
    ours, theirs = pty.openpty()
    place.cleared().at_point("ledger show", "call", OPEN_LEDGER, err=os.ttyname(theirs))
    os.close(theirs)
    assert os.read(ours, 1000).decode() == f"\r\n{NOTHING}".replace(".\n", ".\r\n")
    os.close(ours)


def test_nothing_runs_after_an_ending(place):
    """Threads that read ahead in a file abort the process if they see the interpreter end."""
    failing = "import atexit; atexit.register(os.abort); raise ValueError('refused')"
    point = ("ledger show", "call", OPEN_LEDGER, failing)
    assert place.at_point_anew(*point)[:3] == (2, "", "Error: refused\n")
    assert place.at_point_anew(*point, module="dpmic_jax.cli").code == -signal.SIGABRT


class TestInThisProcess:
    """Commands that other programs run, with faults put in."""

    SECRET = "98765.4321"
    SEARCH = "dpmic_jax.causal.svt_pc.SVTPC._skeleton"
    OPEN = "dpmic_jax.data.source.open_source"
    TILE = "dpmic_jax.runs.checkpoint.Folder.keep_tile"
    FOLDER = "screen, out, ledger"

    @pytest.fixture
    def ends(self, place, monkeypatch):
        def run(command, point, error):
            def fail(*_, **__):
                raise error

            place.cleared()
            with monkeypatch.context() as patch:
                patch.setattr(point, fail)
                done = dpmic(*place.words(command))
            assert done.stdout == ""
            assert self.SECRET not in done.output
            return done.exit_code, done.stderr, len(LedgerFile.open(place.ledger).events)

        return run

    def test_a_keyboard_interrupt_ends_as_a_signal_does(self, place, ends):
        assert ends("causal", self.OPEN, KeyboardInterrupt()) == (130, NOTHING, 0)
        assert ends("causal", self.SEARCH, KeyboardInterrupt()) == (5, SPENT, 1)
        assert ends(self.FOLDER, self.TILE, KeyboardInterrupt()) == (
            *(4, sentence(place, self.FOLDER, 4, 1), 1),
        )

    def test_a_full_disk_after_the_charge_is_not_reported_as_invalid_input(self, place, ends):
        full = OSError(errno.ENOSPC, "No space left on device")
        said = "Error: [Errno 28] No space left on device"
        assert ends("causal", self.OPEN, full) == (2, f"{said}\n", 0)
        assert ends("causal", self.SEARCH, full) == (5, SPENT.replace("Interrupted", said), 1)
        assert ends(self.FOLDER, self.TILE, full) == (
            *(4, sentence(place, self.FOLDER, 4, 1).replace("Interrupted", said), 1),
        )

    @pytest.mark.parametrize("there", [True, False])
    def test_a_failed_charge_is_looked_up_in_the_ledger(self, place, there, monkeypatch):
        """The disk may fail before the charge is on it, or after."""
        real = LedgerFile.charge

        def charge(self, event):
            if there:
                real(self, event)
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(LedgerFile, "charge", charge)
        done = dpmic(*place.cleared().words("causal"))
        said = "Error: [Errno 5] Input/output error"
        spent = SPENT.replace("Interrupted", said)
        assert (done.exit_code, done.stderr) == ((5, spent) if there else (2, f"{said}\n"))

    def test_an_error_after_the_charge_reports_the_charge(self, ends):
        code, said, charges = ends("causal", self.SEARCH, ValueError("too many columns"))
        assert (code, charges) == (5, 1)
        assert said == SPENT.replace("Interrupted", "Error: too many columns")

    def test_an_internal_error_is_named_by_its_type_only(self, ends):
        said = "Error: KeyError, an internal error of dpmic_jax"
        assert ends("causal", self.OPEN, KeyError(self.SECRET)) == (2, f"{said}\n", 0)
        spent = SPENT.replace("Interrupted", said)
        assert ends("causal", self.SEARCH, KeyError(self.SECRET)) == (5, spent, 1)

    def test_without_the_recorded_charge_the_message_would_deny_it(self, ends, monkeypatch):
        """So the tests above see it if a charge is not told."""
        monkeypatch.setattr("dpmic_jax.runs.stage.charged", lambda **_: None)
        assert ends("causal", self.SEARCH, KeyboardInterrupt()) == (130, NOTHING, 1)

    def test_a_run_that_cannot_be_resumed_does_not_claim_that_it_can(self, place, ends):
        words = place.words(self.FOLDER)

        def again(spoil):
            assert ends(self.FOLDER, self.TILE, KeyboardInterrupt())[0] == 4
            spoil()
            done = dpmic(*words)
            assert "resume from" not in done.stderr
            return done.exit_code, len(LedgerFile.open(place.ledger).events)

        table = place.table.read_text()
        head, first, rest = table.split("\n", 2)
        assert again(lambda: (place.out / "key").unlink()) == (5, 1)
        try:
            changed = "\n".join([head, "0.5" + first[3:], rest])
            assert again(lambda: place.table.write_text(changed)) == (2, 1)
        finally:
            place.table.write_text(table)

    def test_a_run_that_was_not_charged_and_has_no_budget_left_is_exit_3(self, place, ends):
        busy = TimeoutError("in use; nothing charged")
        code, _, charges = ends(self.FOLDER, "dpmic_jax.dp.ledger.file.LedgerFile.charge", busy)
        assert (code, charges) == (2, 0)
        LedgerFile.open(place.ledger).charge(MICrLap(epsilon=9.5).event(400))
        done = dpmic(*place.words(self.FOLDER))
        assert done.exit_code == 3
        assert "nothing was charged" in done.stderr
        assert not place.out.exists()

    def test_signal_handlers_of_the_calling_program_are_not_changed(self, place):
        before = [signal.getsignal(number) for number in SIGNALS]
        assert dpmic(*place.words("plan")).exit_code == 0
        assert [signal.getsignal(number) for number in SIGNALS] == before


def test_the_exit_code_is_right_if_nothing_can_be_printed(place):
    """A full disk for both streams; and without a stream for the result nothing is charged."""
    with open("/dev/full", "w") as full:
        process = place.cleared().started("screen, ledger", stdout=full, stderr=full)
        assert process.wait(timeout=HANGS) == 5
    assert len(LedgerFile.open(place.ledger).events) == 1
    closed = (
        "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    ending = place.ended(place.cleared().started("screen, ledger", "-c", closed, "-m", "dpmic_jax"))
    assert (ending.code, ending.charges) == (2, 0)


RANDOM = int(os.environ.get("DPMIC_INTERRUPTS", "100"))  # for each command
COMMANDS = ("screen, out, ledger", "screen, ledger", "bounds learn", "causal", "causal, out")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [*COMMANDS, "report", "test", "plan", "causal-plan", "ledger init", "ledger show"]
)
def test_interrupts_at_random_moments_end_in_a_documented_way(place, command):
    """Python ends in ways of its own while it starts, before the command listens.

    How many do is a matter of time. That it listens before JAX is imported is one of the points.
    """
    chance, own_ways = random.Random(command), {1, *(-number for number in SIGNALS)}
    # The first one compiles.
    whole = min(seconds_of(lambda: place.ended(place.cleared().started(command))) for _ in "123")
    endings = Counter()
    for _, number in zip(range(RANDOM), itertools.cycle(SIGNALS), strict=False):
        ending = place.cleared().after(command, chance.uniform(0, whole), number)
        endings[ending.code] += 1
        if ending.code in own_ways:
            assert (ending.out, ending.charges) == ("", 0)
            assert os.path.join("dpmic_jax", "cli") not in ending.err
        elif ending.code == 0:
            assert "Interrupted" not in ending.err
            assert ending.out or place.page.exists()
        else:
            assert ending.err == sentence(place, command, ending.code, ending.charges)
            assert ending.charges == (ending.code != 130)
    print(f"{command}: {dict(endings)}")
    assert endings.keys() <= {0, 4, 5, 130} | own_ways
    assert place.ended(place.cleared().started(command)).code == 0
