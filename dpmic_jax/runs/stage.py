"""How far the command at hand has come, so that whatever ends it can say the truth.

What was charged, and whether the same command can go on, is known where the charge is made; it is
told where the process ends. There is one command in a process, so there is one stage. Nothing
here listens to signals: for who calls the library from Python these are notes that nobody reads.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import NamedTuple

# Exit codes of what can go on, of what was charged for nothing, and of an interrupt before either.
RESUMABLE, SPENT, INTERRUPTED = 4, 5, 130


class Stage(NamedTuple):
    """Whether something was charged, the folder to go on in, and whether all is done."""

    charged: bool = False
    resume: PathLike[str] | None = None
    done: bool = False

    def code(self, before: int) -> int:
        """The exit code of what ends here; `before` if it was neither begun nor charged."""
        if self.resume is not None:
            return RESUMABLE
        return SPENT if self.charged else before

    @property
    def truth(self) -> str:
        """What was charged, and how to go on."""
        if self.resume is not None:
            again = ", and is not charged again" if self.charged else ""
            return f"the same command goes on in {self.resume}{again}"
        if self.charged:
            return "what was charged is spent, and nothing is kept to go on with"
        return "nothing was charged"


_now = Stage()
_charges_under_way = 0
_waiting: Callable[[], object] | None = None


def now() -> Stage:
    """How far it has come."""
    return _now


def reset() -> None:
    """A command begins: nothing was charged."""
    _move(Stage())


def begun(*, resume: PathLike[str]) -> None:
    """The same command goes on in the folder `resume`; no ledger is charged."""
    _move(Stage(resume=resume))


def charged(*, resume: PathLike[str] | None) -> None:
    """The ledger was charged, now or before; the same command goes on in `resume`, if any.

    To be called inside `charging`: between the charge and this an interrupt would not know of it.
    """
    _move(Stage(charged=True, resume=resume))


def done() -> None:
    """Everything is out: an interrupt has nothing left to end."""
    _move(_now._replace(done=True))


@contextmanager
def charging() -> Iterator[None]:
    """Interrupts that come inside wait until this ends: it is on the disk then, or refused."""
    global _charges_under_way, _waiting
    _charges_under_way += 1
    try:
        yield
    finally:
        _charges_under_way -= 1
        if not _charges_under_way and _waiting is not None:
            end, _waiting = _waiting, None
            end()


def interrupted(end: Callable[[], object]) -> None:
    """Call `end` now, or once no charge is under way any more. A second call changes nothing."""
    global _waiting
    if _charges_under_way:
        _waiting = end
    else:
        end()


def _move(stage: Stage) -> None:
    global _now
    _now = stage
