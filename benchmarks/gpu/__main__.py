"""Compile for GPUs that are not there, and say what the programs would cost on paper.

`python -m benchmarks.gpu` takes `jax` and `jax-cuda13-plugin` of one version, no GPU and no other
package of NVIDIA's. It prints a table and writes `benchmarks/results/gpu.json`. `--device h100`
and `--task "baseball MICe"` choose some of it; `--xla` leaves out the kernels of this library.
"""

import argparse
import json
import os
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results" / "gpu.json"


def main() -> None:
    os.environ["JAX_PLATFORMS"] = "cpu"
    from benchmarks.gpu import paper, programs

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", action="append", choices=["a100", "h100"])
    parser.add_argument("--task", action="append", choices=list(programs.TASKS))
    parser.add_argument("--xla", action="store_true", help="without the kernels of this library")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print(
        f"{'':<6}{'task':<26}{'of':<11}{'pairs':>6}{'launches':>10}{'a pair':>8}{'kB':>7}{'kop':>8}"
        f"{'MB':>6}{'pairs/s':>9}{'cautious':>9}{'regs':>5}{'spill':>6}{'XLA':>6}{'asked':>6}"
    )
    found = []
    for device in options.device or ["a100", "h100"]:
        tasks = options.task or list(programs.TASKS)
        for row in paper.rows(device, kernels=not options.xla, tasks=tasks):
            cost, pairs = row.cost, row.pairs
            print(
                f"{device:<6}{row.task:<26}{row.part:<11}{pairs:>6}{cost.launches:>10}"
                f"{cost.launches / pairs:>8.3f}{cost.bytes / pairs / 1e3:>7.0f}"
                f"{cost.operations / pairs / 1e3:>8.0f}{row.memory / 1e6:>6.0f}"
                f"{pairs / cost.seconds:>9.0f}{pairs / cost.cautious:>9.0f}"
                f"{row.registers:>5}{row.kernel_spills:>6}{row.spills:>6}{cost.unknown:>6}",
                flush=True,
            )
            found.append(row.kept)
    if options.out or not (options.task or options.device):
        about = {"command": "python -m benchmarks.gpu", "jax": version("jax"), "paper": found}
        (options.out or RESULTS).write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
