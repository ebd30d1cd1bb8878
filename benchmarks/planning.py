"""The tables of docs/planning.md: what a screen can find for given n, columns, epsilon and delta.

`python -m benchmarks.planning` writes them into the page, between its marks. It calls `preview` and
uses no data.
"""

from benchmarks.pages import DOCS, fill, table
from dpmic_jax.screening import Above, Against, AllPairs, Ask, Preview, TopK, preview

PAGE = DOCS / "planning.md"
RECORDS, COLUMNS = (1000, 10_000, 100_000, 1_000_000), (10, 30, 100, 300)
EPSILONS = (0.1, 1.0)
ASKS: dict[str, tuple[Ask, float]] = {
    "all pairs, delta = 0": (AllPairs(), 0.0),
    "all pairs, delta = 1e-6": (AllPairs(), 1e-6),
    "one column against the rest, delta = 0": (Against("column 0"), 0.0),
    "one column against the rest, delta = 1e-6": (Against("column 0"), 1e-6),
    "top 10, delta = 0": (TopK(10), 0.0),
    "top 10, delta = 1e-6": (TopK(10), 1e-6),
    "above 0.3, at most 10, delta = 0": (Above(0.3, 10), 0.0),
}
# Those of version 0.1.0, whose numbers the page has, as it had them: noise / smallest MICr found.
EARLIER: tuple[tuple[str, Ask, int, float, str], ...] = (
    ("all pairs", AllPairs(), 10, 0.1, "0.12 / 0.74"),
    ("all pairs", AllPairs(), 30, 1.0, "0.11 / 0.90"),
    ("one column against the rest", Against("column 0"), 30, 0.1, "0.074 / 0.46"),
    ("one column against the rest", Against("column 0"), 300, 1.0, "0.076 / 0.60"),
    ("top 10", TopK(10), 30, 0.1, "0.051 / 0.65"),
    ("above 0.3, at most 10", Above(0.3, 10), 30, 0.1, "0.051 / 0.67"),
)


def digits(mic: float) -> str:
    """A MIC with two decimals, or with one digit if it is below 0.1."""
    return f"{mic:.2f}" if mic >= 0.1 else f"{mic:.1g}"


def planned(ask: Ask, delta: float, n: int, columns: int, epsilon: float) -> Preview | None:
    """The plan; None if noise hides every dependence."""
    try:
        found = preview(columns=columns, n=n, epsilon=epsilon, delta=delta, ask=ask)
    except ValueError:  # more noise than can be drawn
        return None
    return found if found.found else None


def tables() -> str:
    """What every query finds at two epsilons."""
    parts = []
    for name, (ask, delta) in ASKS.items():
        rows = [
            (str(columns), *(_cell(ask, delta, n, columns) for n in RECORDS)) for columns in COLUMNS
        ]
        parts.append(f"**{name}**\n\n{table(('columns', *(f'n = {n}' for n in RECORDS)), rows)}")
    return "\n\n".join(parts)


def _cell(ask: Ask, delta: float, n: int, columns: int) -> str:
    found = [planned(ask, delta, n, columns, epsilon) for epsilon in EPSILONS]
    return " / ".join(digits(each.smallest) if each else "-" for each in found)


def earlier() -> str:
    """What version 0.1.0 found with n = 100 000 and delta = 0, and what is found now."""
    rows = []
    for name, ask, columns, epsilon, before in EARLIER:
        now = planned(ask, 0.0, 100_000, columns, epsilon)
        shown = f"{now.plan.distances.sd:.2g} / {digits(now.smallest)}" if now else "-"
        rows.append((name, str(columns), f"{epsilon:g}", before, shown))
    return table(("ask", "columns", "epsilon", "0.1.0", "now"), rows)


def main() -> None:
    fill(PAGE, "earlier", earlier())
    fill(PAGE, "tables", tables())


if __name__ == "__main__":
    main()
