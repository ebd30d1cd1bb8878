"""`python -m benchmarks.peers`: this package beside others that are not private (`exact_peers`).

What is measured already is kept: `--again` measures it anew. Times take an idle machine.
"""

import argparse
import fcntl
import json
import os
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.exact_peers import page, power, speed, support
from benchmarks.exact_peers.scores import SCORES

RESULTS = Path(__file__).parents[1] / "results" / "peers.json"
LOCK = Path(tempfile.gettempdir()) / "dpmic_jax-benchmarks-peers.lock"
PACKAGES = ("scipy", "dcor", "hyppo", "phik", "ccc-coef", "scikit-learn", "fast-mine", "ppscore")
MORE = ("numpy", "numba", "pandas", "jax")
PARTS = ("power", "support", "speed", "page")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", choices=PARTS, default=[])
    parser.add_argument("--only", nargs="*", choices=list(SCORES), default=[], help="these scores")
    parser.add_argument("--again", action="store_true", help="measure what is known, too")
    asked = parser.parse_args()
    parts, only = asked.part or PARTS, set(asked.only)
    for name, measured in (("power", power.measured), ("speed", speed.measured)):
        if name not in parts:
            continue
        known = {} if asked.again else _read().get(name, {})
        for (outer, inner), row in measured(known, only):
            _add((name, outer, inner), row)
    if "support" in parts:
        _add(("support",), support.measured())
    if "page" in parts:
        page.write(_read())


def _add(place: tuple[str, ...], found: dict[str, Any]) -> None:
    """Enter what was found. Other processes may measure other scores at the same time."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = _read()
        inner = results
        for name in place[:-1]:
            inner = inner.setdefault(name, {})
        inner[place[-1]] = found
        _write(results)


def _read() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def _write(results: dict[str, Any]) -> None:
    about = {
        "command": "python -m benchmarks.peers",
        "settings": {
            "level": power.LEVEL,
            "repeats": power.REPEATS,
            "seconds of a score at one n": power.SECONDS,
            "most seconds": power.MOST_SECONDS,
            "seconds of a cell of speed": speed.LIMIT,
            "memory of a process": speed.MEMORY,
        },
        "versions": {name: version(name) for name in PACKAGES + MORE},
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
    }
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(results | about, indent=1) + "\n")
    part.replace(RESULTS)


if __name__ == "__main__":
    main()
