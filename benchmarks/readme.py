"""Write the README's speed table from the results of `benchmarks.engine`."""

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.engine import RESULTS

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"(<!-- speed: .* -->\n).*?(\n<!-- end of speed -->)", re.DOTALL)


def table(found: dict[str, Any]) -> str:
    roof = 2 * found["roofline"]["giga_evaluations_a_second_a_core"]
    lines = [
        "| case | records, columns | pairs a second | integer path | fast-mine, 1 thread "
        "| ratio | to 2 processes | of the roofline | peak MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in found["cases"].items():
        ours, integer = row["pairs_a_second"], row["pairs_a_second_integer"]
        lines.append(
            f"| {name} | {row['n']}, {row['columns']} | {ours['median']:.0f} "
            f"({ours['worst']:.0f} to {ours['best']:.0f}) | {integer['median']:.0f} "
            f"| {row['peer_1_thread']['median']:.3g} | {row['ratio_to_1_thread']:.0f} "
            f"| {row['ratio_to_2_processes']:.0f} "
            f"| {row['giga_evaluations_a_second'] / roof:.0%} | {row['peak_mb']:.0f} |"
        )
    lines += ["", "| records (20 columns, B=150, c=5) | ms a pair | one scatter pass, ms |"]
    lines.append("|---|---|---|")
    for row in found["records"]:
        lines.append(f"| {row['n']} | {row['ms_a_pair']:.1f} | {row['ms_scatter_pass']:.2f} |")
    starts = "; ".join(
        f"{name}: {row['cold']:.1f} s, then {row['with_cache'][1]:.1f} s with JAX's cache"
        for name, row in found["cold_start"].items()
    )
    row = found["ladder"]
    lines += [
        "",
        f"`ladder(1.25)` on {row['pairs']} pairs, n={row['n']}, B=150, c=5: "
        f"{row['ratio']:.1f} times the pairs a second; with few pairs it gains less.",
    ]
    lines.append(f"From starting Python to the first answer: {starts}.")
    return "\n".join(lines)


def main() -> None:
    found = json.loads(RESULTS.read_text())
    text, times = BLOCK.subn(lambda m: m[1] + table(found) + m[2], README.read_text())
    if times != 1:
        raise SystemExit("README.md has no speed block to fill")
    README.write_text(text)


if __name__ == "__main__":
    main()
