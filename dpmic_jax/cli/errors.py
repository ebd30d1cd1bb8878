"""How commands end: one sentence on stderr, and an exit code that says what was charged.

0    success
2    invalid input, or an error; nothing was charged
3    budget exceeded; nothing was charged
4    interrupted, or an error; repeat the command to resume at no further charge
5    interrupted, or an error, after the charge; the run cannot be resumed
130  interrupted; nothing was charged
"""

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import click

from dpmic_jax.runs import stage

FAILED, BUDGET_EXCEEDED = 2, 3


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn every exception of a command into one sentence and an exit code."""
    stage.reset()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    # `dpmic_jax.__main__` handles signals itself; this is for programs that call the command.
    except KeyboardInterrupt:
        _end("Interrupted", stage.INTERRUPTED)
    except Exception as error:
        _end(*_describe(error))
    stage.done()


def _end(what: str, before: int) -> NoReturn:
    """Print what happened, what was charged and how to resume, and exit.

    Args:
      what: what happened.
      before: the exit code if nothing was charged and no run was begun.
    """
    reached = stage.now()
    stage.done()  # an interrupt from here on has nothing to add
    code = reached.code(before)
    # Error messages end in what to do about them, so nothing follows them if nothing was charged.
    with suppress(OSError):  # stderr may be on a full disk; the exit code still tells
        click.echo(what if code == FAILED else f"{what}; {reached.outcome}.", err=True)
    sys.exit(code)


def _describe(error: Exception) -> tuple[str, int]:
    """The message and the exit code of an exception.

    Messages of this library's own errors show no values of the data. Those of other errors may, so
    only their type is printed.
    """
    from dpmic_jax.dp.ledger.budget import BudgetExceeded
    from dpmic_jax.dp.ledger.file import LedgerRefused
    from dpmic_jax.dp.rng.errors import KeyLostError

    if isinstance(error, BudgetExceeded):
        return f"Budget exceeded: {error}", BUDGET_EXCEEDED
    expected = (ValueError, TypeError, OSError, ImportError, LedgerRefused, KeyLostError)
    if isinstance(error, expected):
        return f"Error: {error}", FAILED
    return f"Error: {type(error).__name__}, an internal error of dpmic_jax", FAILED


def print_seconds(started: float) -> None:
    """Print the time since `started` on stderr: it may depend on values, so no result has it."""
    stage.done()  # the result is out
    click.echo(f"{time.perf_counter() - started:.1f} s", err=True)


def _show_warning(message: Warning | str, *_: object) -> None:
    click.echo(f"Warning: {message}", err=True)
