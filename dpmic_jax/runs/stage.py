"""The progress of the current command, from which its exit code and last message follow.

Whether something was charged, and whether the command can be resumed, is known where the charge is
made and reported where the process ends. A process runs one command, so there is one global stage.
Nothing here handles signals; a program that calls the library from Python can ignore this module.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import NamedTuple

# Exit codes: resumable, charged but not resumable, and interrupted before a charge.
RESUMABLE, SPENT, INTERRUPTED = 4, 5, 130


class Stage(NamedTuple):
    """Whether something was charged, the folder to resume from, and whether all output is out."""

    charged: bool = False
    resume: PathLike[str] | None = None
    done: bool = False

    def code(self, before: int) -> int:
        """The exit code of a command that ends here; `before` if no run was begun or charged."""
        if self.resume is not None:
            return RESUMABLE
        return SPENT if self.charged else before

    @property
    def outcome(self) -> str:
        """What was charged, and how to resume, in words."""
        if self.resume is not None:
            again = ", at no further charge" if self.charged else ""
            return f"repeat the command to resume from {self.resume}{again}"
        if self.charged:
            return "the charge is spent, and the run cannot be resumed"
        return "nothing was charged"


_now = Stage()
_charges_in_progress = 0  # charges may nest: an interrupt waits for the outermost one
_waiting: Callable[[], object] | None = None  # what an interrupt during a charge will call


def now() -> Stage:
    """The current stage."""
    return _now


def reset() -> None:
    """Start a command: nothing was charged."""
    _set(Stage())


def begun(*, resume: PathLike[str]) -> None:
    """Record that the command can be resumed from the folder `resume`; no ledger is charged."""
    _set(Stage(resume=resume))


def charged(*, resume: PathLike[str] | None) -> None:
    """Record that the ledger was charged, now or before, and the folder to resume from, if any.

    Call it inside `charging`: an interrupt between the charge and this call would report no charge.
    """
    _set(Stage(charged=True, resume=resume))


def done() -> None:
    """Record that all output is out: interrupts are ignored from here on."""
    _set(_now._replace(done=True))


@contextmanager
def charging() -> Iterator[None]:
    """Defer interrupts until the block ends: by then the charge is on the disk, or refused."""
    global _charges_in_progress, _waiting
    _charges_in_progress += 1
    try:
        yield
    finally:
        _charges_in_progress -= 1
        if not _charges_in_progress and _waiting is not None:
            end, _waiting = _waiting, None
            end()


def interrupted(end: Callable[[], object]) -> None:
    """Call `end` now, or when no charge is in progress. A second call changes nothing."""
    global _waiting
    if _charges_in_progress:
        _waiting = end
    else:
        end()


def _set(stage: Stage) -> None:
    global _now
    _now = stage
