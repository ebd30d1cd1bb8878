"""Tables and figure of docs/speed.md, from the results of `benchmarks.engine`."""

import json
from typing import Any

from benchmarks.engine import RESULTS
from benchmarks.pages import DOCS, fill

PAGE, FIGURE = DOCS / "speed.md", DOCS / "speed.png"


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


def figure(found: dict[str, Any]) -> None:
    """Pairs a second of each case, beside the peer's."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    cases = list(found["cases"].items())
    bars = {
        "dpmic_jax": [row["pairs_a_second"]["median"] for _, row in cases],
        "fast-mine, 2 processes": [row["peer_2_processes"] for _, row in cases],
        "fast-mine, 1 thread": [row["peer_1_thread"]["median"] for _, row in cases],
    }
    _, ax = plt.subplots(figsize=(7.5, 3.3), layout="constrained")
    for place, (name, rates) in enumerate(bars.items()):
        ours = name == "dpmic_jax"
        drawn = ax.barh(
            [index + 0.27 * (place - 1) for index in range(len(cases))],
            rates,
            height=0.25,
            label=name,
            color="#1f77b4" if ours else ("0.6", "0.8")[place - 1],
        )
        ax.bar_label(drawn, [f"{rate:,.0f}" for rate in rates], padding=3, fontsize=7)
    ax.set_yticks(
        range(len(cases)), [f"{name}\n{row['n']} x {row['columns']}" for name, row in cases]
    )
    ax.tick_params(axis="y", labelsize=7)
    ax.invert_yaxis()
    ax.set(xscale="log", xlim=(1, 10**5.3), xlabel="pairs a second")
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    ax.figure.savefig(FIGURE, dpi=110, metadata={"Software": None})


def main() -> None:
    found = json.loads(RESULTS.read_text())
    fill(PAGE, "speed", table(found))
    figure(found)


if __name__ == "__main__":
    main()
