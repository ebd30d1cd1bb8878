"""How commands end: in one sentence on stderr, and an exit code that says what was charged.

0    done
2    bad input, or a failure: nothing was charged
3    budget exceeded: nothing was charged
4    interrupted, or a failure, in a run's folder: the same command goes on, not charged again
5    interrupted, or a failure, after the charge, with nothing to go on with: it is spent
130  interrupted before anything was charged
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
    """Turn whatever ends a command into one sentence and an exit code."""
    stage.reset()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    except KeyboardInterrupt:  # of who runs a command inside another program
        _end("Interrupted", stage.INTERRUPTED)
    except Exception as error:
        _end(*_said(error))
    stage.done()


def _end(what: str, before: int) -> NoReturn:
    """Say what happened, what was charged and how to go on, and end.

    Args:
      what: what happened.
      before: the exit code, if nothing was charged or begun.
    """
    found = stage.now()
    stage.done()  # an interrupt that comes now has nothing to add
    code = found.code(before)
    # A refusal ends in its remedy.
    with suppress(OSError):  # of a full disk; the code is told all the same
        click.echo(what if code == FAILED else f"{what}; {found.truth}.", err=True)
    sys.exit(code)


def _said(error: Exception) -> tuple[str, int]:
    """The library's refusals in its words. A fault by its kind only: its words may quote values."""
    from dpmic_jax.dp.ledger.budget import BudgetExceeded
    from dpmic_jax.dp.ledger.file import LedgerRefused
    from dpmic_jax.dp.rng.errors import KeyLostError

    if isinstance(error, BudgetExceeded):
        return f"Budget exceeded: {error}", BUDGET_EXCEEDED
    refusals = (ValueError, TypeError, OSError, ImportError, LedgerRefused, KeyLostError)
    if isinstance(error, refusals):
        return f"Error: {error}", FAILED
    return f"Error: {type(error).__name__}, a fault of this program", FAILED


def tell_seconds(started: float) -> None:
    """Since `started`, beside the result, which is out: how long it took may depend on values."""
    stage.done()
    click.echo(f"{time.perf_counter() - started:.1f} s", err=True)


def _show_warning(message: Warning | str, *_: object) -> None:
    click.echo(f"Warning: {message}", err=True)
