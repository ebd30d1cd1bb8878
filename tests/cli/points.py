"""The `dpmic` command as a process, up to a point at which it does something else."""

import os
import signal
import sys
from importlib import import_module


def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)


def command(words, action="", event="", point=":", count=1, module="dpmic_jax.__main__"):
    """Run the command; and `action`, if any, when it comes to a point for so many times.

    Args:
      words: of the command line.
      action: Python, which may use `interrupt`.
      event: "call" or "return".
      point: the function "module:name". It is found by Python's profiler: it does not matter
        where it is imported.
      count: how many times.
      module: whose `main` is the command.
    """
    owner, name = point.split(":")
    seen = 0

    def profile(frame, happened, _):
        nonlocal seen
        code = frame.f_code
        if happened == event and code.co_qualname == name and frame.f_globals["__name__"] == owner:
            seen += 1
            if seen == count:
                sys.setprofile(None)
                exec(action, globals())

    sys.argv[1:] = words
    main = import_module(module).main
    if action:
        sys.setprofile(profile)
    main()


if __name__ == "__main__":
    module, action, event, point, *words = sys.argv[1:]
    command(words, action, event, point, module=module)
