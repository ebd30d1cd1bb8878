"""`dpmic` and `python -m dpmic_jax`: the command as a process, from its first signal to its end.

An interrupt ends the process where it is, in one sentence. It is not raised as KeyboardInterrupt,
which JAX's callbacks and destructors would swallow, so that the run went on and was charged, or
would show as a traceback. Nothing is lost by that: runs survive `kill -9` at any point. Only a
charge that is under way is waited for. This module is light, so that it listens before JAX, whose
import takes a second or two, is asked for.
"""

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from dpmic_jax.runs import stage


def main() -> NoReturn:
    """Run the command and end the process with its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stage.interrupted(_interrupt))
    code = 1
    if sys.stdout is None or sys.stderr is None:
        os._exit(2)  # a result, or what became of it, would be told to nobody
    try:
        from dpmic_jax.cli import main as command

        command()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else code
    # Not by the interpreter's own end: there threads that still read ahead in a file call
    # std::terminate, and an interrupt would find nobody who listens.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _interrupt() -> None:
    found = stage.now()
    if found.done:
        return
    # Not by sys.stderr, which may be in the middle of a write; and half a result that waits in
    # sys.stdout stays there. A terminal has "^C" or a progress bar in its line.
    line = "\n" if os.isatty(2) else ""
    with suppress(OSError):
        os.write(2, f"{line}Interrupted; {found.outcome}.\n".encode(errors="backslashreplace"))
    os._exit(found.code(stage.INTERRUPTED))


if __name__ == "__main__":
    main()
