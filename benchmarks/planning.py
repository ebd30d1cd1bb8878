"""The tables of docs/planning.md: what a screen can find for given n, columns, epsilon and delta.

`python -m benchmarks.planning` writes them into the page, between its marks. It calls `preview` and
uses no data.
"""

from benchmarks.pages import DOCS, fill
from dpmic_jax.screening import Above, Against, AllPairs, Ask, Preview, TopK, preview

PAGE = DOCS / "planning.md"
RECORDS, COLUMNS = (1000, 10_000, 100_000, 1_000_000), (10, 30, 100, 300)
ASKS: dict[str, tuple[Ask, float]] = {
    "all pairs, delta = 0": (AllPairs(), 0.0),
    "all pairs, delta = 1e-6": (AllPairs(), 1e-6),
    "one column against the rest, delta = 0": (Against("column 0"), 0.0),
    "one column against the rest, delta = 1e-6": (Against("column 0"), 1e-6),
    "top 10, delta = 0": (TopK(10), 0.0),
    "above 0.3, at most 10, delta = 0": (Above(0.3, 10), 0.0),
}


def cell(ask: Ask, delta: float, n: int, columns: int, epsilon: float) -> str:
    """The noise and the smallest MICr that is found, or a note that there is none."""
    try:
        found = preview(columns=columns, n=n, epsilon=epsilon, delta=delta, ask=ask)
    except ValueError:  # more noise than can be drawn
        return "-"
    if found.smallest > 1:
        return "-"
    return f"{found.plan.values.sd:.2g} / {_digits(found)}"


def _digits(found: Preview) -> str:
    return f"{found.smallest:.2f}" if found.smallest >= 0.1 else f"{found.smallest:.1g}"


def tables() -> str:
    parts = []
    for name, (ask, delta) in ASKS.items():
        for epsilon in (0.1, 1.0):
            rows = [
                f"| {columns} | "
                + " | ".join(cell(ask, delta, n, columns, epsilon) for n in RECORDS)
                + " |"
                for columns in COLUMNS
            ]
            head = "| columns | " + " | ".join(f"n = {n}" for n in RECORDS) + " |"
            rule = "|---" * (len(RECORDS) + 1) + "|"
            parts.append("\n".join([f"**{name}, epsilon = {epsilon:g}**\n", head, rule, *rows]))
    return "\n\n".join(parts)


def main() -> None:
    fill(PAGE, "tables", tables())


if __name__ == "__main__":
    main()
