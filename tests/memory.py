"""What a test process holds in memory: let go of when it is much, and its peak said at the end.

Compiled programs are most of it. JAX keeps every one that a process ever ran, and so do the
package's own caches; the few that later tests need again come back from the persistent cache.
"""

import ctypes
import gc
import os
import resource
import sys

import jax
import pytest

MEGABYTE = 2**20
MUCH = 900 * MEGABYTE  # held by a process that has imported everything: two thirds of that
ROOM = 150 * MEGABYTE  # to grow by before it is worth another look
_peaks = {}
_much = MUCH
_libc = ctypes.CDLL(None)
if hasattr(_libc, "mallopt"):
    # glibc gives every thread a heap of its own, and keeps what was freed inside: two for all of
    # them, and large arrays outside.
    _libc.mallopt(-8, 2)  # M_ARENA_MAX
    _libc.mallopt(-3, MEGABYTE)  # M_MMAP_THRESHOLD


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown():
    """After every test: a module's programs may be too many by themselves."""
    global _much
    result = yield
    if held() > _much:
        let_go()
        _much = max(MUCH, held() + ROOM)  # what cannot be let go of is not asked for each time
    return result


def let_go():
    """Forget every compiled program, and whatever else is only kept to be quick."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dpmic_jax."):
            for function in list(vars(module).values()):
                getattr(function, "cache_clear", int)()
    jax.clear_caches()
    gc.collect()
    if hasattr(_libc, "malloc_trim"):  # glibc keeps what is freed for itself
        _libc.malloc_trim(0)


def held():
    """Bytes of memory in use; their peak, where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        return peak()


def peak():
    """The most bytes that were ever in use."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def pytest_sessionfinish(session):
    output = getattr(session.config, "workeroutput", None)  # of a worker of pytest-xdist
    if output is not None:
        output["peak"] = peak()
    elif not _peaks:
        _peaks["this process"] = peak()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    if "peak" in getattr(node, "workeroutput", {}):  # it did not crash
        _peaks[node.gateway.id] = node.workeroutput["peak"]


def pytest_terminal_summary(terminalreporter):
    said = ", ".join(f"{name} {size / MEGABYTE:.0f} MB" for name, size in sorted(_peaks.items()))
    terminalreporter.write_line(f"peak memory: {said}")
