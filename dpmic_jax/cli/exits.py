"""How commands end: 0 done, 2 bad input, 3 budget exceeded, 4 interrupted and resumable."""

import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

BAD_INPUT, BUDGET_EXCEEDED, INTERRUPTED = 2, 3, 4


@contextmanager
def answered(*, resumable: str = "") -> Iterator[None]:
    """Turn what the library refuses into one line and an exit code.

    Args:
      resumable: where an interrupted run goes on, if it does.
    """
    from dpmic_jax.dp.budget import BudgetExceeded
    from dpmic_jax.dp.keyfile import KeyLostError
    from dpmic_jax.dp.ledger import LedgerRefused

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    except BudgetExceeded as error:
        _end(f"Budget exceeded: {error}. Nothing was charged or computed.", BUDGET_EXCEEDED)
    except InterruptedError as error:  # by the loss of workers
        _end(f"Interrupted: {error}.", INTERRUPTED)
    except (ValueError, TypeError, OSError, ImportError, LedgerRefused, KeyLostError) as error:
        _end(f"Error: {error}", BAD_INPUT)
    except KeyboardInterrupt:
        if resumable:
            _end(f"Interrupted. Run the same command again to go on in {resumable}.", INTERRUPTED)
        _end("Interrupted. Nothing is kept without --out, and what was charged is spent.", 1)


def _end(text: str, code: int) -> None:
    click.echo(text, err=True)
    sys.exit(code)


def _show_warning(message: Warning | str, *_: object) -> None:
    click.echo(f"Warning: {message}", err=True)
