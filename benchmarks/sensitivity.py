"""Sensitivities of MICr and MICe: published bounds and proven ones side by side.

`python -m benchmarks.sensitivity` prints the table of docs/published.md, in its form.
"""

import jax

from dpmic_jax import MICe, MICr
from dpmic_jax.mechanisms.sensitivity import exact, published
from dpmic_jax.mic.grids import power
from dpmic_jax.mic.ties import RandomTies

RECORDS = (25, 100, 337, 1000, 5000, 10**5, 10**6)


def row(n: int) -> str:
    """One row: n, then published, exact and their ratio for each statistic."""
    statistics = MICr(B=150), MICe(B=power(0.6), c=15, ties=RandomTies(jax.random.key(0)))
    cells = [str(n)]
    for statistic in statistics:
        printed, proven = published(statistic, n), exact(statistic, n)
        cells += [f"{float(printed):.3g}", f"{float(proven):.3g}", f"{float(printed / proven):.1f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    for n in RECORDS:
        print(row(n))


if __name__ == "__main__":
    main()
