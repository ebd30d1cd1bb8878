"""`python -m benchmarks.power [part ...] [--quick]`."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.power import alarms, compare, page, screens, variants

RESULTS = Path(__file__).parents[1] / "results" / "power.json"


def parts(quick: bool) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    values = compare.Values(1 if quick else 2)
    keys = 5 if quick else 100
    return {
        "compared": lambda: compare.compared(values),
        "found": lambda: compare.found(values),
        "variants": lambda: variants.tried(values),
        "screens": lambda: screens.screened(values),
        "curve": lambda: compare.curve(values),
        "alarms": lambda: alarms.measured(0.05 if quick else 1.0),
        "demo": lambda: screens.demo_screens(keys),
        "top": lambda: screens.top_screens(2 if quick else 24),
        "noise": lambda: screens.noise_on_values(4 * keys),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", choices=[*parts(True), "page"])
    parser.add_argument("--quick", action="store_true", help="few data sets, and nothing written")
    asked = parser.parse_args()
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() and not asked.quick else {}
    results = {"command": "python -m benchmarks.power", "seconds": {}} | known
    for name, measure in parts(asked.quick).items():
        if asked.part and name not in asked.part:
            continue
        start = time.perf_counter()
        results[name] = measure()
        results["seconds"][name] = round(time.perf_counter() - start)
        if asked.quick:
            print(name, json.dumps(results[name]), f"{results['seconds'][name]} s")
        else:
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if not asked.quick:
        page.write(results)


if __name__ == "__main__":
    main()
