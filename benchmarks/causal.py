"""F1 of the skeleton against epsilon: PC, EM-PC, SVT-PC and Priv-PC on known Bayesian networks.

`python -m benchmarks.causal` runs all networks at n = 10 000 and 100 000, five keys each, and
writes `benchmarks/results/causal.json`, `docs/causal.png` and the tables of docs/causal_results.md.
`--networks asia --n 10000` runs a part, and `--networks` without a value only writes the page and
the picture. Parts are added to the file, and may run concurrently. Every key has its own records,
the same for all algorithms. All algorithms have the same T, which was chosen by PC's F1 on the
small networks, so it depends on the true graphs (docs/causal_results.md). There are enough
rounds to remove all edges, and `--rounds-factor` times as many for Priv-PC, whose rounds may remove
nothing.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpmic_jax
from benchmarks.pages import DOCS, fill, table
from dpmic_jax.causal.em_pc import EMPC
from dpmic_jax.causal.kendall import Kendall
from dpmic_jax.causal.priv_pc import PrivPC
from dpmic_jax.causal.queries import Coded
from dpmic_jax.causal.search import Make, Search, discover
from dpmic_jax.causal.skeleton import Skeleton, score_at_most, stable_skeleton
from dpmic_jax.causal.svt_pc import SVTPC
from dpmic_jax.dp.rng.keys import seeded_key
from tests.causal.bayes_nets import NETWORKS, Network, load

RESULTS = Path(__file__).parent / "results" / "causal.json"
FIGURE = DOCS / "causal.png"
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
ALGORITHMS = ("PC", "EM-PC", "SVT-PC", "Priv-PC")


def f1(found: Skeleton, network: Network) -> float:
    """F1 of undirected edges: 2 hits / (found + true)."""
    hits = len(found.edges & network.skeleton)
    return 2 * hits / (len(found.edges) + len(network.skeleton))


def searches(
    network: Network, n: int, epsilon: float, delta: float, arguments: argparse.Namespace
) -> list[Search]:
    """One search of each kind, with as many rounds as could be needed."""
    columns = len(network.names)
    enough = columns * (columns - 1) // 2 + arguments.max_order + 1
    usual: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "threshold": arguments.threshold,
        "max_order": arguments.max_order,
    }
    return [
        EMPC(**usual),
        SVTPC(rounds=enough, **usual),
        PrivPC(
            rounds=round(enough * arguments.rounds_factor),
            subsample=round(n * arguments.share),
            tweak=arguments.tweak,
            **usual,
        ),
    ]


def measured(
    name: str, n: int, make: Make, arguments: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """One row for each algorithm, epsilon and key."""
    network = load(name)
    for key in range(arguments.keys):
        records = network.sample(n, np.random.default_rng([key, n]))
        data = Coded(records.T, network.states)

        def row(
            algorithm: str,
            epsilon: float | None,
            run: Callable[[], Skeleton],
            key: int = key,
        ) -> dict[str, Any]:
            start = time.perf_counter()
            found = run()
            seconds = time.perf_counter() - start
            return {
                "network": name,
                "n": n,
                "algorithm": algorithm,
                "epsilon": epsilon,
                "key": key,
                "f1": f1(found, network),
                "edges": len(found.edges),
                "finished": found.finished,
                "seconds": seconds,
            }

        decide = score_at_most(make(data), arguments.threshold)
        yield row(
            "PC",
            None,
            lambda decide=decide: stable_skeleton(
                len(network.names), decide, max_order=arguments.max_order
            ),
        )
        for epsilon in arguments.epsilons:
            for search in searches(network, n, epsilon, arguments.delta, arguments):
                yield row(
                    search.mechanism,
                    epsilon,
                    lambda search=search, data=data, key=key: (
                        discover(
                            data,
                            make,
                            search,
                            names=network.names,
                            key=seeded_key(key),
                            force=True,
                        ).found
                    ),
                )


def summary(rows: list[dict[str, Any]], cell: Callable[[list[dict[str, Any]]], str]) -> str:
    """A table with a row for each network, n and algorithm, and a column for each epsilon."""
    lines = []
    order = sorted({(NETWORKS.index(r["network"]), r["network"], r["n"]) for r in rows})
    epsilons = sorted({r["epsilon"] for r in rows if r["epsilon"] is not None})
    for _, name, n in order:
        for algorithm in ALGORITHMS:
            here = [
                r for r in rows if (r["network"], r["n"], r["algorithm"]) == (name, n, algorithm)
            ]
            at = [[r for r in here if r["epsilon"] == e] for e in epsilons]
            cells = [cell(here), *[""] * (len(at) - 1)] if algorithm == "PC" else map(cell, at)
            seconds = f"{np.median([r['seconds'] for r in here]):.2g}"
            lines.append([name, f"{n}", algorithm, *cells, seconds])
    head = ["network", "n", "", *(f"epsilon = {e:g}" for e in epsilons), "seconds a run"]
    return table(head, lines)


def scores(rows: list[dict[str, Any]]) -> str:
    """The mean, smallest and largest F1 over the keys."""
    found = [r["f1"] for r in rows]
    return f"{np.mean(found):.2f} ({min(found):.2f}-{max(found):.2f})" if found else "-"


def left(rows: list[dict[str, Any]]) -> str:
    """The mean number of edges kept, and the number of runs that stopped before the last query."""
    if not rows:
        return "-"
    stopped = sum(not r["finished"] for r in rows)
    return f"{np.mean([r['edges'] for r in rows]):.1f}" + (f" ({stopped})" if stopped else "")


def reversals(rows: list[dict[str, Any]]) -> str:
    """Cases in which the order of two algorithms is opposite to the literature's, with details."""
    cells = sorted({(r["network"], r["n"], r["epsilon"]) for r in rows if r["epsilon"]})
    lines = []
    for first, second in (("SVT-PC", "EM-PC"), ("Priv-PC", "SVT-PC"), ("Priv-PC", "EM-PC")):
        more = fewer = alike = overlap = 0
        for cell in cells:
            found = [r for r in rows if (r["network"], r["n"], r["epsilon"]) == cell]
            one, other = ([r for r in found if r["algorithm"] == a] for a in (first, second))
            f1s = [[r["f1"] for r in some] for some in (one, other)]
            if np.mean(f1s[0]) < np.mean(f1s[1]):
                edges = [np.mean([r["edges"] for r in some]) for some in (one, other)]
                more, fewer = more + (edges[0] > edges[1]), fewer + (edges[0] < edges[1])
                alike += edges[0] == edges[1]
                overlap += max(f1s[0]) >= min(f1s[1])
        total = more + fewer + alike
        counts = f"{total} of {len(cells)}", f"{fewer}", f"{more}", f"{overlap}"
        lines.append([f"{first} above {second}", *counts])
    head = "expected", "the other way round", "it then keeps fewer edges", "more edges"
    return table([*head, "ranges overlap"], lines)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """One panel for each network and n: mean F1 against epsilon, with the range over keys."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    names = [name for name in NETWORKS if any(r["network"] == name for r in rows)]
    sizes = sorted({r["n"] for r in rows})
    figure, panels = pyplot.subplots(
        len(sizes),
        len(names),
        figsize=(3 * len(names) + 1, 2.6 * len(sizes) + 0.6),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for i, n in enumerate(sizes):
        for j, name in enumerate(names):
            panel = panels[i, j]
            panel.set_title(f"{name}, n = {n}", fontsize=9)
            here = [r for r in rows if (r["network"], r["n"]) == (name, n)]
            true, columns = len(load(name).skeleton), len(load(name).names)
            every = 2 * true / (true + columns * (columns - 1) // 2)
            panel.axhline(every, color="0.7", lw=0.8, label="all edges kept")
            for algorithm, color in zip(ALGORITHMS, ("black", "C0", "C1", "C2"), strict=True):
                kept = [r for r in here if r["algorithm"] == algorithm]
                if not kept:
                    continue
                if algorithm == "PC":
                    range_of = [r["f1"] for r in kept]
                    panel.axhspan(min(range_of), max(range_of), color=color, alpha=0.08, lw=0)
                    panel.axhline(
                        np.mean([r["f1"] for r in kept]), color=color, ls=":", label=algorithm
                    )
                    continue
                at = sorted({r["epsilon"] for r in kept})
                scores = [[r["f1"] for r in kept if r["epsilon"] == e] for e in at]
                panel.plot(at, [np.mean(s) for s in scores], color=color, label=algorithm)
                panel.fill_between(
                    at,
                    [min(s) for s in scores],
                    [max(s) for s in scores],
                    color=color,
                    alpha=0.15,
                    lw=0,
                )
            panel.set_xscale("log")
            panel.set_ylim(0, 1.02)
    panels[0, 0].legend(fontsize=7)
    figure.supxlabel("epsilon", fontsize=9)
    figure.supylabel("F1 of the skeleton", fontsize=9)
    figure.savefig(path, dpi=68)


def kept() -> dict[str, Any]:
    return json.loads(RESULTS.read_text())["parts"] if RESULTS.exists() else {}


def add(name: str, part: dict[str, Any]) -> None:
    """Add rows to the file, which is read again as other parts may be running; one row a line."""
    content = json.dumps({"parts": kept() | {name: part}})
    RESULTS.write_text(content.replace("}, {", "},\n{") + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--n", nargs="+", type=int, default=[10_000, 100_000])
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--threshold", type=float, default=1.0)
    parser.add_argument("--max-order", type=int, default=2)
    parser.add_argument("--share", type=float, default=0.5, help="of records in a subsample")
    parser.add_argument("--tweak", type=float, default=0.0)
    parser.add_argument("--rounds-factor", type=float, default=1.5)
    arguments = parser.parse_args()
    for name in arguments.networks:
        for n in arguments.n:
            rows = list(measured(name, n, Kendall, arguments))
            part = {
                "command": "python -m benchmarks.causal " + " ".join(sys.argv[1:]),
                "settings": vars(arguments),
                "test": Kendall.__name__,
                "version": dpmic_jax.__version__,
                "python": platform.python_version(),
                "machine": platform.machine(),
                "rows": rows,
            }
            add(f"{name} {n}", part)
            print(summary(rows, scores), flush=True)
    everything = [row for part in kept().values() for row in part["rows"]]
    draw(everything, FIGURE)
    fill(DOCS / "causal_results.md", "f1", summary(everything, scores))
    fill(DOCS / "causal_results.md", "edges", summary(everything, left))
    fill(DOCS / "causal_results.md", "order", reversals(everything))


if __name__ == "__main__":
    main()
