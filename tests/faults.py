"""Points at which a process kills itself: just before one of its own changes on the disk.

Python tells audit hooks what it is about to do with files, and a connection of SQLite tells which
statement it begins. So nothing that reads or writes is replaced, and no clock has a say in where
a process dies.
"""

import os
import re
import resource
import signal
import sqlite3
import sys

# Audit events that change a folder, and which of their arguments has the name that changes.
_CHANGES = {"os.rename": 1, "os.link": 1, "os.remove": 0, "os.mkdir": 0, "os.rmdir": 0}
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def notice_steps(notice):
    """Call `notice` before each step, such as "os.rename run.json", "open lock" or "COMMIT".

    For good: only for a process that is about to die.
    """

    def hook(event, arguments):
        if event in _CHANGES:
            notice(f"{event} {_name(arguments[_CHANGES[event]])}")
        elif event == "open" and isinstance(arguments[0], str) and arguments[2] & _TO_WRITE:
            notice(f"open {_name(arguments[0])}")

    def traced(*arguments, connect=sqlite3.connect, **options):
        connection = connect(*arguments, **options)
        connection.set_trace_callback(notice)
        return connection

    sys.addaudithook(hook)
    sqlite3.connect = traced


def die_at(pattern, count=1, end=kill):
    """Be killed before the step, by its number, of those that match a pattern from their start."""
    waited_for, seen = re.compile(pattern), 0

    def notice(step):
        nonlocal seen
        seen += waited_for.match(step) is not None
        if seen == count:
            end()

    notice_steps(notice)
    return notice


def die_beyond(size):
    """Be killed by the system in the middle of the write that makes a file longer than this.

    It ends the process as SIGKILL does, without another instruction of it.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # which Python ignores


def _name(path):
    return os.path.basename(os.fsdecode(path))
