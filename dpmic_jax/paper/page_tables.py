"""The tables of the page "The paper's numbers and ours", as Markdown."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from dpmic_jax.paper import published_values, summary
from dpmic_jax.paper.functions import FUNCTIONS
from dpmic_jax.paper.summary import Rows

# The mechanisms of ours that are judged, with one release each.
OURS = ("ours", "ours, MIC*", "variation, MIC*")
# Target median unsigned errors: those of a prototype with B up to 300, and more ambitious ones.
WANTED = {
    ("Baseball", 1.0): (0.036, 0.02),
    ("Baseball", 0.1): (0.21, 0.12),
    ("Spellman4381", 1.0): (0.0068, 0.005),
    ("Spellman4381", 0.1): (0.035, 0.02),
}


def real_table(rows: Rows) -> str:
    """Tables 1 and 3, with the printed numbers in brackets."""
    lines = []
    for row in rows:
        cell = summary.printed_cell(row)
        error = published_values.UNSIGNED.get((row["collection"], row["mechanism"]))
        error = error if row["epsilon"] == 1 else None
        lines.append(
            [
                row["collection"],
                f"{row['epsilon']:g}",
                row["mechanism"],
                row["setting"],
                f"{row['bias']:.3f}" + _bracketed(cell and cell.bias),
                f"{row['variance']:.2g}" + _bracketed(cell and cell.variance),
                f"{row['unsigned']:.4f}" + _bracketed(error),
            ]
        )
    titles = ("collection", "epsilon", "mechanism", "setting", "bias", "variance", "unsigned error")
    return markdown(titles, lines)


def _bracketed(value: float | None) -> str:
    return "" if value is None else f" ({value:g})"


def wanted_table(rows: Rows) -> str:
    """The rows of ours that reach the target errors `WANTED`."""
    lines = []
    for (collection, epsilon), levels in WANTED.items():
        found = {
            row["mechanism"]: row["unsigned"]
            for row in rows
            if (row["collection"], row["epsilon"]) == (collection, epsilon)
            and row["mechanism"].startswith("ours")
        }
        cells = [
            f"{level:g}: "
            + ("; ".join(f"{n} ({v:.4f})" for n, v in found.items() if v <= level) or "no row")
            for level in levels
        ]
        lines.append([collection, f"{epsilon:g}", *cells])
    return markdown(("collection", "epsilon", "wanted, reached by", "aimed for, reached by"), lines)


def geom_table(rows: Rows) -> str:
    """MICr-Geom on Spellman4381 under other settings and summaries."""
    names = [name for name in rows[0] if name not in ("bounds", "B", "c", "variance")]
    lines = [
        [row["bounds"], f"{row['B']}", f"{row['c']}", f"{row['variance']:.1e}"]
        + [f"{row[name]:.4f}" for name in names]
        for row in rows
    ]
    return markdown(("bounds", "B", "c", "variance", *names), lines)


def others_table(rows: Rows) -> str:
    """Errors on shapes that are not functions."""
    shapes = [name for name in rows[0] if name not in ("n", "epsilon", "mechanism")]
    lines = [
        [f"{row['n']}", f"{row['epsilon']:g}", row["mechanism"].replace("*", "\\*")]
        + [f"{row[name]:.3f}" for name in shapes]
        + [f"{sum(row[name] for name in shapes) / len(shapes):.3f}"]
        for row in rows
    ]
    return markdown(("n", "epsilon", "", *shapes, "mean"), lines)


def parts_table(rows: Rows) -> str:
    """Errors of `VariationLap`'s estimate by its number of bins."""
    levels = [name for name in rows[0] if name not in ("n", "parts")]
    lines = [
        [f"{row['n']}", f"{row['parts']}", *(f"{row[level]:.4f}" for level in levels)]
        for row in rows
    ]
    return markdown(("n", "parts", *(f"epsilon = {level}" for level in levels)), lines)


def finer_table(rows: Rows) -> str:
    """WSUM at the default c, and at a c beyond the search."""
    lines = [
        [
            f"{row['n']}",
            f"{row['epsilon']:g}",
            _setting(row),
            f"{row['wsum']:.4f}",
            f"{row['finer_wsum']:.4f}",
            f"{row['finer_wsum'] / row['wsum'] - 1:+.1%}",
        ]
        for row in rows
    ]
    titles = ("n", "epsilon", "shipped", "WSUM", f"with c = {rows[0]['finer']}", "change")
    return markdown(titles, lines)


def errors_of(rows: Rows) -> dict[tuple[int, float], dict[str, float]]:
    """Mean absolute errors of each mechanism, by n and epsilon."""
    found: dict[tuple[int, float], dict[str, float]] = {}
    for row in rows:
        found.setdefault((row["n"], row["epsilon"]), {})[row["mechanism"]] = row["error"]
    return found


def synthetic_table(rows: Rows) -> str:
    """Mean absolute errors over the distributions."""
    lines = []
    for (n, epsilon), errors in errors_of(rows).items():
        best = min(errors[name] for name in published_values.MECHANISMS)
        ours = min(errors[name] for name in OURS)
        values = [f"{error:.4f}" for error in errors.values()]
        lines.append([f"{n}", f"{epsilon:g}", *values, f"{ours / best:.2f}"])
    names = next(iter(errors_of(rows).values()))
    titles = ("n", "epsilon", *(name.replace("*", "\\*") for name in names), "ratio")
    return markdown(titles, lines)


def table_2(published: Rows) -> str:
    """The settings that tuning finds for the published mechanisms, beside the printed ones."""
    places = {("MICr-Geom", 1.0): 0, ("MICr-Geom", 0.1): 1, ("MICr-Lap", 1.0): 2}
    places["MICr-Lap", 0.1] = 3
    lines = []
    for row in published:
        for name in ("MICr-Lap", "MICr-Geom"):
            c, B = published_values.TABLE_2[row["n"]][places[name, row["epsilon"]]]
            best, *_ = found = row[name]
            above = next((w / best[2] - 1 for fc, fB, w in found if (fc, fB) == (c, B)), None)
            lines.append(
                [
                    f"{row['n']}",
                    f"{row['epsilon']:g}",
                    name,
                    f"({best[0]:g}, {best[1]})",
                    f"({c}, {B})",
                    "not tried" if above is None else f"{above:.1%}",
                ]
            )
    return markdown(("n", "epsilon", "mechanism", "found (c, B)", "printed", "above"), lines)


def defaults_table(settings: Rows) -> str:
    """The package's table of defaults, at three epsilons."""
    lines = []
    for row in settings:
        if row["epsilon"] in (0.1, 1.0, 10.0):
            both = [_setting(row[kind]) for kind in ("accurate", "cheap")]
            errors = [f"{row[kind]['wsum']:.4f}" for kind in ("accurate", "cheap")]
            work = f"{row['accurate']['evaluations'] / row['cheap']['evaluations']:.1f}"
            cells = (both[0], errors[0], both[1], errors[1], work)
            lines.append([f"{row['n']}", f"{row['epsilon']:g}", *cells])
    titles = (
        "n",
        "epsilon",
        "most accurate",
        "WSUM",
        "cheapest within 5 %",
        "WSUM",
        "times cheaper",
    )
    return markdown(titles, lines)


def _setting(entry: dict[str, Any]) -> str:
    sizes = "all sizes" if entry["ratio"] == 1 else f"ladder {entry['ratio']:g}"
    return f"B = {entry['B']}, c = {entry['c']:g}, {sizes}"


def consistency_table(rows: Rows) -> str:
    """Errors by function and n."""
    lines = [[name, *(f"{row[name]:.4f}" for row in rows)] for name in FUNCTIONS]
    falling = sum(
        all(later[name] < earlier[name] for earlier, later in itertools.pairwise(rows))
        for name in FUNCTIONS
    )
    titles = ("function", *(f"n = {row['n']} ({row['setting']})" for row in rows))
    return markdown(titles, lines) + f"\n\nFalling at every step: {falling} of {len(FUNCTIONS)}."


def convergence_table(rows: Rows) -> str:
    """MIC* on finer and finer partitions."""
    lines = [
        [
            f"{row['master']}, {row['fixed']}",
            f"{row['mean']:.5f}",
            f"{row['mean_change']:.5f}",
            f"{row['largest_change']:.5f}",
        ]
        for row in rows
    ]
    return markdown(("master, fixed", "mean MIC\\*", "mean change", "largest change"), lines)


def markdown(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rule = "|".join("---" for _ in titles)
    rows = [
        f"| {' | '.join(titles)} |",
        f"|{rule}|",
        *(f"| {' | '.join(line)} |" for line in lines),
    ]
    return "\n".join(rows)
