"""The cost of a gradient of soft MICr: seconds of value and gradient as n grows.

`python -m benchmarks.soft` prints a table and writes `benchmarks/results/soft.json`. Every n runs
in a separate process, so that peak memory is that of this n. Within it, rounds of the value alone,
of value and gradient, and of `micr` (hard bins, from numpy columns) alternate, so that all see the
same load. Compilation is timed separately. Times are wall and CPU seconds; on a shared machine,
read the CPU seconds and the ratios.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "soft.json"
RECORDS = (250, 1000, 4000, 16_000)
B, C, TEMPERATURE = 60, 5, 0.02
BOUNDS = ((0.0, 1.0), (0.0, 1.0))


def seconds_of(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of the wall clock, and of all threads together."""
    import jax

    began = time.perf_counter(), time.process_time()
    jax.block_until_ready(work())
    return time.perf_counter() - began[0], time.process_time() - began[1]


def spread(seconds: np.ndarray) -> dict[str, float]:
    best, median, worst = np.quantile(seconds, [0, 0.5, 1])
    return {"best": float(best), "median": float(median), "worst": float(worst)}


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(n: int, rounds: int) -> dict[str, Any]:
    import jax

    import dpmic_jax

    rng = np.random.default_rng(0)
    x = rng.random(n, np.float32)
    y = np.float32((1 + np.cos(12 * x)) / 2)
    columns = jax.device_put((x, y))

    def soft(x: Any, y: Any) -> Any:
        return dpmic_jax.soft_micr(x, y, bounds=BOUNDS, B=B, c=C, temperature=TEMPERATURE)

    value, both = jax.jit(soft), jax.jit(jax.value_and_grad(soft, (0, 1)))
    work = {
        "value": lambda: value(*columns),
        "value_and_gradient": lambda: both(*columns),
        "micr": lambda: dpmic_jax.micr(x, y, bounds=BOUNDS, B=B, c=C),
    }
    before = memory()
    cold = {name: seconds_of(one) for name, one in work.items()}
    for one in work.values():
        seconds_of(one)  # warm
    times = {name: [] for name in work}
    for _ in range(rounds):
        for name, one in work.items():
            times[name].append(seconds_of(one))
    wall = {name: spread(np.array(seconds)[:, 0]) for name, seconds in times.items()}
    cpu = {name: spread(np.array(seconds)[:, 1]) for name, seconds in times.items()}
    return {
        "n": n,
        "seconds": wall,
        "cpu_seconds": cpu,
        "gradient_over_value": cpu["value_and_gradient"]["median"] / cpu["value"]["median"],
        "value_over_micr": cpu["value"]["median"] / cpu["micr"]["median"],
        "compile_cpu_seconds": {name: cold[name][1] - cpu[name]["median"] for name in work},
        "scratch_mb": both.lower(*columns).compile().memory_analysis().temp_size_in_bytes / 2**20,
        "peak_mb": memory(),
        "peak_mb_before": before,
    }


def report(cases: list[dict[str, Any]]) -> None:
    print("CPU time   value  and gradient  ratio      micr   compiling  scratch MB  peak MB")
    for row in cases:
        seconds = {name: one["median"] for name, one in row["cpu_seconds"].items()}
        compiling = row["compile_cpu_seconds"]["value_and_gradient"]
        print(
            f"{row['n']:>6}{1e3 * seconds['value']:>7.1f} ms"
            f"{1e3 * seconds['value_and_gradient']:>11.1f} ms{row['gradient_over_value']:>7.2f}"
            f"{1e3 * seconds['micr']:>7.1f} ms{compiling:>10.1f} s"
            f"{row['scratch_mb']:>12.1f}{row['peak_mb']:>9.0f}"
        )


def child(n: int, rounds: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.soft", "--n", str(n), "--rounds", str(rounds)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--n", type=int, help="run one n and print its JSON")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.n:
        print(json.dumps(run(options.n, options.rounds)))
        return
    import jax

    import dpmic_jax

    load = os.getloadavg()
    found = {
        "command": f"python -m benchmarks.soft --rounds {options.rounds}",
        "version": dpmic_jax.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average_before": load,
        "B": B,
        "c": C,
        "temperature": TEMPERATURE,
        "cases": [child(n, options.rounds) for n in RECORDS],
    }
    report(found["cases"])
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
