"""Processes that start at once: forked by a server that has imported what takes long.

They are processes like others, with signals and an end of their own. The server has imported JAX
and not used it, so there is no thread of JAX's that a fork would lose.
"""

import multiprocessing
import os
import threading

from tqdm import tqdm

HANGS = 600  # seconds; no verdict depends on how long anything takes

_SERVER = multiprocessing.get_context("forkserver")
_USED = ("causal", "inference", "minepy", "results", "data.schema", "data.source", "screening")
_SERVER.set_forkserver_preload(["pyarrow.parquet", *(f"dpmic_jax.{name}" for name in _USED)])


def started(work, *arguments, out=os.devnull, err=os.devnull):
    """A process that calls a function of a module, with its streams in files."""
    settings = (work, arguments, {1: str(out), 2: str(err)})
    process = _SERVER.Process(target=_run, args=settings, daemon=True)
    process.start()
    return process


def ended(process):
    """The exit code of a process, once it has come to its end; a signal's number is negative."""
    process.join(HANGS)
    hangs = process.exitcode is None
    if hangs:
        process.kill()
        process.join()
    code = process.exitcode
    process.close()
    assert not hangs, "the process hangs"
    return code


def _run(work, arguments, streams):
    for number, path in streams.items():
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOCTTY, 0o600)
        os.dup2(file, number)
        os.close(file)
    flags = os.environ.get("XLA_FLAGS", "").split()  # several devices are for other tests
    os.environ["XLA_FLAGS"] = " ".join(flag for flag in flags if "device_count" not in flag)
    tqdm.set_lock(threading.RLock())  # its own is the system's, and outlives a killed process
    work(*arguments)
