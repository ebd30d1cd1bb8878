"""docs/power.md: its tables, and the figure of power against the number of records."""

from collections.abc import Iterable
from typing import Any

from benchmarks.pages import DOCS, fill, table
from benchmarks.power.compare import MAIN
from benchmarks.power.mechanism import SCREEN, SIMULATED

PAGE = DOCS / "power.md"
FIGURE = DOCS / "power.png"
_OURS = (SCREEN.name, SIMULATED.name)
_FOUND = 0.9  # a power above this counts as found
_R_SQUARED = [f"R^2 = {tenths / 10:g}" for tenths in range(1, 10)]

Result = dict[str, Any]


def write(results: Result) -> None:
    """Write what was measured into the page; parts that were not measured stay."""
    made = {
        "compared": lambda found: compared(found),
        "all": lambda found: every_peer(found),
        "functions": lambda found: of_each(found["functions"], _R_SQUARED),
        "shapes": lambda found: of_each(found["shapes"], ["sd 0.02", "sd 0.05", "sd 0.1"]),
        "variants": variants,
        "screens": screens,
        "alarms": alarms,
        "demo": demo,
        "top": top,
        "noise": noise,
    }
    source = {"all": "compared", "functions": "found", "shapes": "found"}
    for mark, text in made.items():
        found = results.get(source.get(mark, mark))
        if found is not None:
            fill(PAGE, mark, text(found))
    if "curve" in results:
        draw(results["curve"])


def compared(rows: list[Result]) -> str:
    """Mean power over the functions, of this package and of the main peers."""
    names = [*_OURS, *MAIN]
    return table(
        ["n, pairs, epsilon, delta", "bar", "0.1.0, as planned", *names],
        (
            [_setting(row), _digits(row["bar"]), _digits(row["0.1.0"])]
            + [_digits(_peer(row, name).get("functions")) for name in names]
            for row in rows
        ),
    )


def every_peer(rows: list[Result]) -> str:
    """Mean power of every peer over functions, monotone functions and shapes."""
    parts = []
    for row in rows:
        head = (
            f"**{_setting(row)}**: {row['noise']}, sd {row['noise_sd']:.3g}, level "
            f"{row['level']:.3g} (simulated for uniform columns: {row['simulated level']:.3g})"
        )
        lines = (
            [peer["name"], *(_digits(peer[group]) for group in ("functions", "monotone", "shapes"))]
            for peer in row["peers"]
        )
        parts.append(f"{head}\n\n{table(['', 'functions', 'monotone', 'shapes'], lines)}")
    return "\n\n".join(parts)


def of_each(found: Result, strengths: list[str]) -> str:
    """Power of the screen for each function or shape, from strong to weak."""
    return table(
        ["", *strengths],
        ([name, *(f"{power:.2f}" for power in row["power"])] for name, row in found.items()),
    )


def variants(rows: list[Result]) -> str:
    """Mean power of the statistics that were tried."""
    groups = ("functions", "shapes", "left_out")
    return table(
        ["statistic", *map(_setting, rows[0]["found"])],
        (
            [
                row["name"],
                *(" / ".join(_digits(at[group]) for group in groups) for at in row["found"]),
            ]
            for row in rows
        ),
    )


def screens(rows: list[Result]) -> str:
    """Power and false alarms of real screens."""
    return table(
        ["n, pairs, epsilon, delta", "screens", "power", "computed", "false alarms"],
        (
            [
                _setting(row),
                str(row["screens"]),
                _rate(row["power"]),
                _digits(row["computed"]),
                _rate(row["false alarms"]),
            ]
            for row in rows
        ),
    )


def alarms(rows: list[Result]) -> str:
    """False alarms of every kind of columns."""
    parts = []
    for row in rows:
        head = (
            f"**{_setting(row)}**: level {row['level']:.3g}, simulated {row['simulated level']:.3g}"
        )
        lines = (
            [
                kind["columns"],
                str(kind["tables"]),
                _rate(kind["false alarms"]),
                _rate(kind["by the simulated level"]),
                f"{kind['largest distance, 95 %']:.3g}",
            ]
            for kind in row["rows"]
        )
        names = ["columns", "tables", "false alarms", "by the simulated level", "largest distance"]
        parts.append(f"{head}\n\n{table(names, lines)}")
    return "\n\n".join(parts)


def demo(found: Result) -> str:
    """Screens of the demo table."""
    return table(
        ["keys", "exactly the eight dependent pairs", "any other pair", "level"],
        [
            [
                str(found["keys"]),
                _rate(found["exactly the eight"]),
                _rate(found["any other"]),
                f"{found['level']:.3f}",
            ]
        ],
    )


def top(found: Result) -> str:
    """`TopK(20)` of 30 columns with planted pairs."""
    return table(
        [
            "MIC\\* of 15 planted pairs",
            "found",
            "least found of them",
            "screens with a false alarm",
        ],
        (
            [
                f"{row['MIC*']:.2f}",
                _rate(row["found"]),
                _digits(row["least of a pair"]),
                _rate(row["false alarms"]),
            ]
            for row in found["planted"]
        ),
    )


def noise(found: Result) -> str:
    """The noise that is added to distances."""
    return table(
        ["keys", "sd, measured", "sd, planned", "sd of independent Laplace noise", "ratio"],
        [
            [
                str(found["keys"]),
                f"{found['sd']:.5f}",
                f"{found['planned sd']:.5f}",
                f"{found['Laplace sd']:.5f}",
                f"{found['ratio']:.2f}",
            ]
        ],
    )


def draw(rows: list[Result]) -> None:
    """Mean power over the functions against the number of records."""
    from matplotlib.figure import Figure

    ax = Figure((8, 4), layout="constrained").subplots()
    for name in rows[0]["power"]:
        ours = name in _OURS
        ax.plot(
            [row["n"] for row in rows],
            [row["power"][name] for row in rows],
            label=name,
            linewidth=2.5 if ours else 1.2,
            marker="o" if ours else ".",
        )
    ax.set(xscale="log", ylim=(-0.02, 1.02), xlabel="records", ylabel="mean power")
    ax.set_title("66 pairs, epsilon = 1, delta = 0", loc="left", fontsize=9)
    ax.grid(color="0.9")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    ax.figure.savefig(FIGURE, dpi=110, metadata={"Software": None})


def _setting(row: Result) -> str:
    delta = f", {row['delta']:g}" if row["delta"] else ", 0"
    return f"{row['n']}, {row['pairs']}, {row['epsilon']:g}{delta}"


def _peer(row: Result, name: str) -> Result:
    return next((peer for peer in row["peers"] if peer["name"] == name), {})


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _rate(three: Iterable[float]) -> str:
    return "{:.3g} ({:.3g} to {:.3g})".format(*three)
