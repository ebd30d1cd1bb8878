"""`python -m benchmarks.skewed [--quick | --page]`: power on skewed columns, by their bounds.

The records of the 189 functions are taken to uniform marginals by rank, and from there to skewed
ones, which changes no dependence. Distances are those of the engine, and power that of the screen
with its proven level (`benchmarks.power.mechanism`). Breakpoints are bought by `learn_bounds`, with
noise of its own for every table of 12 columns.
"""

import argparse
import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from tqdm import tqdm

from benchmarks.pages import DOCS, fill, table
from benchmarks.peers import Setting
from benchmarks.power import data
from benchmarks.power.mechanism import SCREEN, distances
from dpmic_jax.data.limits import Limits
from dpmic_jax.data.schema import Number, Rule
from dpmic_jax.data.source.coding import limits
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.rng.keys import seeded_key
from dpmic_jax.mechanisms.cell_trees import GaussianTrees, LaplaceTrees, Tree
from dpmic_jax.screening import learn_bounds
from dpmic_jax.screening.breakpoints import Cells

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results" / "skewed.json"
N, COLUMNS, PAIRS = 10_000, 12, 66
TOTALS = (1.0, 0.3, 0.1)
SHARES = (0.1, 0.2, 0.3, 0.5)  # of epsilon that are spent on breakpoints
DELTA = 1e-6  # of all; a ledger admits events of 1/64 of it
_SEED = 20_261_119
_SHOWN = 0.3  # share of epsilon in the table of the page

Columns = np.ndarray  # columns by records, or a column


class Marginal(NamedTuple):
    """A skewed distribution, and public bounds that someone may know who has not seen the data.

    Attributes:
      of: takes uniform numbers to it.
      log: powers of ten between which nearly all values lie.
    """

    of: Callable[[Columns], Columns]
    log: tuple[float, float]

    @property
    def wide(self) -> tuple[float, float]:
        """Bounds on a linear scale that hold all values, but those above the largest of `log`."""
        return 0.0, self.log[1]

    @property
    def near(self) -> tuple[float, float]:
        """Bounds that leave about 3 % of the records outside at each end, to two digits."""
        low, high = (float(f"{x:.2g}") for x in self.of(np.array([0.03, 0.97])))
        return max(low, self.log[0]), high


MARGINALS = {
    "log-normal, sigma 1": Marginal(lambda u: 1000 * np.exp(ndtri(u)), (10.0, 1e5)),
    "log-normal, sigma 2": Marginal(lambda u: 1000 * np.exp(2 * ndtri(u)), (0.1, 1e7)),
    "Pareto, alpha 1": Marginal(lambda u: 1 / (1 - u), (1.0, 1e5)),
    "Pareto, alpha 2": Marginal(lambda u: (1 - u) ** -0.5, (1.0, 1000.0)),
    "counts": Marginal(lambda u: np.floor(20 * np.exp(1.5 * ndtri(u))), (1.0, 1e4)),
}


def uniform(values: Columns) -> Columns:
    """Columns by rank: (rank + 1/2) / n."""
    return (values.argsort(axis=1).argsort(axis=1) + 0.5) / values.shape[1]


def statistic(x: Columns, y: Columns, x_limits: list[Limits], y_limits: list[Limits]) -> Columns:
    """The distance from independence of every data set."""
    place = np.arange(len(x))
    pairs = np.stack([place, len(x) + place], axis=1)
    return distances([*x, *y], [*x_limits, *y_limits], pairs)


def power(values: Columns, epsilon: float) -> float:
    """The share of data sets that a screen of 66 pairs calls dependent."""
    return round(float(SCREEN.power(values, Setting(N, PAIRS, epsilon)).mean()), 3)


def bought(
    x: Columns, y: Columns, wide: tuple[float, float], epsilon: float, delta: float
) -> tuple[Columns, dict[str, Any]]:
    """Distances on bought breakpoints, which every twelve columns get together."""
    half, rule = COLUMNS // 2, Number(*wide)
    values, errors, found = [], [], None
    for start in tqdm(range(0, len(x), half), desc=f"buy for {epsilon:.3g}, {delta:g}"):
        some = np.take(np.arange(len(x)), range(start, start + half), mode="wrap")
        columns = dict(zip(map(str, range(COLUMNS)), [*x[some], *y[some]], strict=True))
        found = learn_bounds(
            columns,
            within=dict.fromkeys(columns, rule),
            epsilon=epsilon,
            delta=delta,
            key=seeded_key(_SEED + start),
        )
        rules: list[Rule] = [learned for _, learned in found.schema.columns]
        own = list(map(limits, rules))
        values.append(statistic(x[some], y[some], own[:half], own[half:]))
        errors += [
            np.mean(column < b) - share
            for column, learned in zip(columns.values(), rules, strict=True)
            for b, share in _shares(learned)
        ]
    assert found is not None, "expected data sets"
    told = {
        "noise": dict(found.event.settings)["noise"],
        "tree": dict(found.event.settings)["tree"],
        "predicted error": round(found.error, 4),
        "error": round(float(np.std(errors)), 4),
    }
    return np.concatenate(values)[: len(x)], told


def kinds(epsilon: float, delta: float) -> dict[str, Any]:
    """The error of quantiles by each kind of mechanism, for log-normal columns on wide bounds.

    Predicted for counts, and measured for medians of halves of halves (`_medians`).
    """
    budget, n = Budget(epsilon, delta), N
    made: dict[str, list[float]] = {}
    for tree in (Tree(b, levels) for levels in (1, 2, 3) for b in range(2, 257)):
        if not 16 <= tree.leaves <= 4096:
            continue
        shape = "flat" if tree.levels == 1 else "tree"
        shared = {"tree": tree, "columns": COLUMNS}
        laplace = LaplaceTrees(epsilon=epsilon, **shared).error(n)
        made.setdefault(f"{shape}, Laplace", []).append(laplace)
        if delta:
            gaussian = GaussianTrees(mu=budget.mu, **shared).error(n)
            made.setdefault(f"{shape}, Gauss", []).append(gaussian)
    found: dict[str, Any] = {kind: round(min(errors), 4) for kind, errors in made.items()}
    of = MARGINALS["log-normal, sigma 1"]
    cells = Cells(Number(*of.wide), 4096)
    column = of.of(uniform(np.random.default_rng(_SEED).random((1, n))))[0]
    below = np.concatenate([[0], np.cumsum(cells.tally(column)[1:])])
    found["medians"] = round(_medians(below, epsilon, budget.rho), 4)
    return {"epsilon": epsilon, "delta": delta, **found}


def _medians(below: Columns, epsilon: float, rho: float, repeats: int = 200) -> float:
    """The error of 15 quantiles in four levels, each the private median of every part.

    A record that is replaced changes two parts of a level, and the ranks of a part by 1/2: epsilon
    is shared by 2 * 4 * 12 choices. Permute-and-flip has the law of exponential noise, and rounds
    of the exponential mechanism, of which each is epsilon_0^2 / 8-zCDP, that of Gumbel noise.
    """
    rng, choices = np.random.default_rng(_SEED), 2 * 4 * COLUMNS
    rate = np.sqrt(8 * rho / choices) if rho else epsilon / choices
    noise = rng.gumbel if rho else rng.exponential
    off = []
    for _ in range(repeats):
        edges = [0, len(below) - 1]
        for _ in range(4):
            inner = []
            for start, stop in pairwise(edges):
                ranks = below[start : stop + 1]
                score = -np.abs(ranks - (ranks[0] + ranks[-1]) / 2) * rate
                inner.append(start + int(np.argmax(score + noise(size=len(score)))))
            edges = sorted([*edges, *inner])
        off += (below[edges[1:-1]] / below[-1] - np.arange(1, 16) / 16).tolist()
    return float(np.std(off))


def _shares(rule: Rule) -> list[tuple[float, float]]:
    points = rule.breakpoints if isinstance(rule, Number) else ()
    return [(b, (i + 1) / (len(points) + 1)) for i, b in enumerate(points)]


def measured(repeats: int, names: list[str], shares: tuple[float, ...]) -> dict[str, Any]:
    """Power by marginal and bounds."""
    sets = data.functions(N, repeats)
    u, v = uniform(sets.x), uniform(sets.y)
    flat = statistic(u, v, [(0.0, 1.0)] * len(u), [(0.0, 1.0)] * len(v))
    rows = []
    for name in names:
        of = MARGINALS[name]
        x, y = of.of(u), of.of(v)
        known = {
            "wide": statistic(x, y, *[[limits(Number(*of.wide))] * len(x)] * 2),
            "log": statistic(x, y, *[[limits(Number(*of.log, scale="log"))] * len(x)] * 2),
            "log, near": statistic(x, y, *[[limits(Number(*of.near, scale="log"))] * len(x)] * 2),
        }
        for total in TOTALS:
            row: dict[str, Any] = {
                "marginal": name,
                "epsilon": total,
                "uniform": power(flat, total),
            }
            row |= {kind: power(values, total) for kind, values in known.items()}
            row["bought"] = []
            for share in shares:
                for delta in (0.0, DELTA / 64):
                    buy = round(share * total, 6)
                    try:
                        values, told = bought(x, y, of.wide, buy, delta)
                    except ValueError as error:
                        row["bought"].append({"share": share, "delta": delta, "no": str(error)})
                        continue
                    got = power(values, round(total - buy, 6))
                    row["bought"].append({"share": share, "delta": delta, "power": got} | told)
            rows.append(row)
    mechanisms = [kinds(e, delta) for e in (0.3, 0.09, 0.03) for delta in (0.0, DELTA / 64)]
    of = {"n": N, "pairs": PAIRS, "columns": COLUMNS, "data sets": len(u)}
    return {**of, "rows": rows, "mechanisms": mechanisms}


def page(found: dict[str, Any]) -> None:
    """Write the tables of docs/skewed.md."""
    spent = f"{_SHOWN} of epsilon bought"
    rows = []
    for row in found["rows"]:
        got = [each for each in row["bought"] if each["share"] == _SHOWN]
        told = [f"{each['power']:.2f}" if "power" in each else "-" for each in got]
        known = [f"{row[kind]:.2f}" for kind in ("uniform", "wide", "log", "log, near")]
        rows.append([row["marginal"], f"{row['epsilon']:g}", *known, *told])
    head = ["columns", "epsilon", "uniform", "linear, wide", "log, wide", "log, near"]
    fill(DOCS / "skewed.md", "power", table([*head, spent, f"{spent}, with delta"], rows))
    # Rows with a delta have all kinds.
    names = max(found["mechanisms"], key=len)
    lines = [[_text(row.get(name)) for name in names] for row in found["mechanisms"]]
    fill(DOCS / "skewed.md", "errors", table(list(names), lines))


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one marginal; nothing is written")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    asked = parser.parse_args()
    if asked.page:
        page(json.loads(RESULTS.read_text()))
        return
    quick = asked.quick
    start = time.process_time()
    names = list(MARGINALS)[:1] if quick else list(MARGINALS)
    found = measured(1, names, (0.3,) if quick else SHARES)
    found = {"command": "python -m benchmarks.skewed", **found}
    found["CPU seconds"] = round(time.process_time() - start)
    text = json.dumps(found, indent=1)
    if quick:
        print(text)
    else:
        RESULTS.write_text(text + "\n")
        page(found)


if __name__ == "__main__":
    main()
