"""Compile for GPUs that are not there and say what that costs on paper, or measure on one.

`python -m benchmarks.gpu` takes `jax` and `jax-cuda13-plugin` of one version, no GPU and no other
package of NVIDIA's. It prints a table and writes `benchmarks/results/gpu.json`. `--device h100`
and `--task "baseball MICe"` choose some of it; `--xla` leaves out the kernels of this library.

`python -m benchmarks.gpu --run`, on a machine with a GPU, measures the same tasks there, checks
that integers are those of the CPU, and adds what it found to the same file. `--page` writes the
tables of `docs/gpu.md` from it.
"""

import argparse
import itertools
import json
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"
RESULTS = Path(__file__).parents[1] / "results" / "gpu.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", action="append", choices=["a100", "h100"])
    parser.add_argument("--task", action="append")
    parser.add_argument("--xla", action="store_true", help="without the kernels of this library")
    parser.add_argument("--run", action="store_true", help="measure on the GPU of this machine")
    parser.add_argument("--page", action="store_true", help="write the tables of docs/gpu.md")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.page:
        write_page(json.loads(options.out.read_text()))
        return
    if options.run:
        kind, found = "measured", measured(options.task)
    else:
        os.environ["JAX_PLATFORMS"] = "cpu"
        kernels = [False] if options.xla else [True]
        if not (options.task or options.device or options.xla):
            kernels = [True, False]
        kind, found = "paper", on_paper(options.device, options.task, kernels)
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    rows = {_key(row): row for row in [*known.get(kind, []), *found]}
    known |= {"jax": version("jax"), kind: list(rows.values())}
    options.out.write_text(json.dumps(known, indent=1) + "\n")


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row replaces an earlier one for."""
    return tuple(row.get(name) for name in ("device", "task", "part", "kernels"))


def on_paper(
    devices: list[str] | None, tasks: list[str] | None, kernels: list[bool]
) -> Iterator[dict[str, Any]]:
    """Rows of the table, printed as they are found."""
    from benchmarks.gpu import paper, programs

    print(
        f"{'':<6}{'task':<26}{'of':<11}{'kernels':<8}{'pairs':>6}{'launches':>10}{'a pair':>8}"
        f"{'kB':>7}{'kop':>8}{'MB':>6}{'pairs/s':>10}{'cautious':>10}{'regs':>5}{'spill':>6}"
        f"{'XLA':>6}{'asked':>6}"
    )
    for device, with_kernels in itertools.product(devices or ["a100", "h100"], kernels):
        for row in paper.rows(device, kernels=with_kernels, tasks=tasks or list(programs.TASKS)):
            cost, pairs = row.cost, row.pairs
            print(
                f"{device:<6}{row.task:<26}{row.part:<11}{'yes' if row.kernels else 'no':<8}"
                f"{pairs:>6}{cost.launches:>10}{cost.launches / pairs:>8.3f}"
                f"{cost.bytes / pairs / 1e3:>7.0f}{cost.operations / pairs / 1e3:>8.0f}"
                f"{row.memory / 1e6:>6.0f}{pairs / cost.seconds:>10.0f}"
                f"{pairs / cost.cautious:>10.0f}{row.registers:>5}{row.kernel_spills:>6}"
                f"{row.spills:>6}{cost.unknown:>6}",
                flush=True,
            )
            yield row.kept


def measured(tasks: list[str] | None) -> Iterator[dict[str, Any]]:
    """Measurements, printed as they are made."""
    from benchmarks.gpu import programs, run

    for task in tasks or list(programs.TASKS):
        row = run.measured(task)
        print(json.dumps(row), flush=True)
        yield row


def write_page(found: dict[str, Any]) -> None:
    """The tables of `docs/gpu.md`, between their marks."""
    text = PAGE.read_text()
    for name, lines in {"paper": paper_table(found), "measured": measured_table(found)}.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, rest = text.split(begin)
        text = head + begin + "\n" + "\n".join(lines) + "\n\n" + end + rest.split(end)[1]
    PAGE.write_text(text)


def paper_table(found: dict[str, Any]) -> list[str]:
    """Launches a pair and pairs a second on paper, with the kernels and by XLA alone."""
    rows = {
        (row["task"], row["part"], row["device"], row["kernels"]): row for row in found["paper"]
    }
    lines = [
        "| task | launches a pair | (XLA alone) | pairs/s on an A100 | (cautious) | (XLA alone) "
        "| pairs/s on an H100 | MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task, part in dict.fromkeys(key[:2] for key in rows):
        ours = rows[task, part, "a100", True]
        xla, other = (rows.get((task, part, *key)) for key in (("a100", False), ("h100", True)))
        lines.append(
            f"| {task}: {part} | {_launches(ours)} | {_launches(xla)} | {_rate(ours)} "
            f"| {_rate(ours, 'cautious')} | {_rate(xla)} | {_rate(other)} "
            f"| {ours['memory'] / 1e6:.0f} |"
        )
    return lines


def _launches(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{row['cost']['launches'] / row['pairs']:.2g}"


def _rate(row: dict[str, Any] | None, kind: str = "seconds") -> str:
    if row is None:
        return ""
    rate = row["pairs"] / row["cost"][kind]
    digits = 1 - len(str(int(rate)))
    return f"{round(rate, digits + 1):,.0f}".replace(",", " ")


def measured_table(found: dict[str, Any]) -> list[str]:
    """Pairs a second that were measured, if anyone has."""
    if not found.get("measured"):
        return ["Nothing has been measured yet."]
    lines = [
        "| device | task | pairs/s | (XLA alone) | integers equal | floats differ by, bits |",
        "|---|---|---|---|---|---|",
    ]
    for row in found["measured"]:
        ours, xla = (
            row[kind][len(row[kind]) // 2] for kind in ("pairs_a_second", "pairs_a_second_xla")
        )
        lines.append(
            f"| {row['device']} | {row['task']} | {ours:.0f} | {xla:.0f} "
            f"| {'yes' if row['integers_equal'] else '**no**'} "
            f"| {row['largest_difference_bits']:.1e} |"
        )
    return lines


if __name__ == "__main__":
    main()
