"""The time of a charge in a new ledger, and in the same ledger when it is long.

`python -m benchmarks.ledger` makes 10^5 charges in one file, each with its real fsyncs, and writes
`benchmarks/results/ledger.json`: the median time of the first 100 and of the last 100, the ratio
of the two, the time of `verify` on the long file, and the file's size. All charges differ in their
labels, as a user's do, and many in their epsilons. `--quick` makes 2000. `--folder` chooses the
disk: most of a charge is the disk's time to sync.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import dpmic_jax
from dpmic_jax.dp.accounting.events import ZCDP, Event, PureDP, ReplaceOne
from dpmic_jax.dp.ledger.file import Budget, LedgerFile

RESULTS = Path(__file__).parent / "results" / "ledger.json"
SAMPLE = 100


def event(number: int) -> Event:
    """An event of one of three kinds, with one of 997 epsilons."""
    epsilon = 1e-10 * (1 + number % 997)
    return Event(
        mechanism="screen: AllPairs",
        guarantee=ZCDP(epsilon, 1e-30) if number % 3 == 0 else PureDP(epsilon),
        relation=ReplaceOne(),
        n=20_000,
        sensitivity=Fraction(29, 1000),
        count=435,
        settings=(("B", "12"), ("bounds", "public"), ("c", "2")),
        label=f"run {number:032x}",
    )


def seconds(act: Any, *arguments: Any) -> float:
    began = time.perf_counter()
    act(*arguments)
    return time.perf_counter() - began


def measured(path: Path, charges: int) -> dict[str, Any]:
    """Charge a new ledger at `path` so many times."""
    book = LedgerFile.create(path, Budget(20.0, 1e-6), data_set="benchmark")
    one_by_one = []
    for number in range(charges):
        one_by_one.append(seconds(book.charge, event(number)))
        if (number + 1) % (charges // 10) == 0:
            now = 1e3 * median(one_by_one[-SAMPLE:])
            print(f"{number + 1:>7} charges, {now:.2f} ms each", flush=True)
    first, last = median(one_by_one[:SAMPLE]), median(one_by_one[-SAMPLE:])
    return {
        "charges": charges,
        "first_100_ms": 1e3 * first,
        "last_100_ms": 1e3 * last,
        "ratio": last / first,
        "check_ms": 1e3 * median(seconds(book.check, event(0)) for _ in range(SAMPLE)),
        "charge_once_that_is_there_ms": 1e3
        * median(seconds(book.charge_once, event(number)) for number in range(SAMPLE)),
        "verify_seconds": seconds(book.verify),
        "megabytes": path.stat().st_size / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2000 charges")
    parser.add_argument("--folder", type=Path, help="where to make the ledger")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found: dict[str, Any] = {
        "command": "python -m benchmarks.ledger" + " --quick" * options.quick,
        "version": dpmic_jax.__version__,
        "python": platform.python_version(),
        "load_average_before": os.getloadavg(),
    }
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found |= measured(Path(folder) / "ledger", 2000 if options.quick else 10**5)
    found["load_average_after"] = os.getloadavg()
    print(
        f"{found['first_100_ms']:.2f} ms a charge at first, {found['last_100_ms']:.2f} ms after "
        f"{found['charges']}: {found['ratio']:.2f} times; verify takes "
        f"{found['verify_seconds']:.1f} s, {found['megabytes']:.0f} MB"
    )
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
