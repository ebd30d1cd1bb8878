"""The tables of docs/epsilon.md: the cost of typical screens in all units; uses no data.

`python -m benchmarks.units` writes them into the page, between its marks.
"""

import numpy as np

from benchmarks.pages import DOCS, fill, table
from dpmic_jax.dp.accounting.events import Event, PureDP
from dpmic_jax.dp.conversions import privacy_cost
from dpmic_jax.dp.information import capacity, kl_to_mi, pure_to_kl, pure_to_mi
from dpmic_jax.dp.max_information import corrected_level_after
from dpmic_jax.screening import AllPairs, Ask, TopK, preview

PAGE = DOCS / "epsilon.md"
ALPHA, BETA, DELTA = 0.05, 0.025, 1e-6
SCREENS: tuple[tuple[str, Ask, int, int, float, float], ...] = (
    ("all pairs", AllPairs(), 12, 20_000, 1.0, 0.0),
    ("all pairs", AllPairs(), 30, 100_000, 1.0, 1e-6),
    ("all pairs", AllPairs(), 30, 1_000_000, 0.1, 1e-6),
    ("all pairs", AllPairs(), 100, 1_000_000, 1.0, 1e-6),
    ("top 10", TopK(10), 100, 10_000, 1.0, 0.0),
    ("top 10", TopK(10), 100, 100_000, 0.1, 0.0),
    ("top 1", TopK(1), 50, 100_000, 0.01, 0.0),
    ("top 1", TopK(1), 50, 1_000_000, 0.001, 0.0),
)


def screens() -> str:
    head = (
        "screen",
        "columns",
        "n",
        "epsilon",
        f"epsilon at delta = {DELTA:g}",
        "rho",
        "nats (bits) about one person",
        f"bits of max-information at beta = {BETA:g}",
        "level",
    )
    rows = [_row(*screen) for screen in SCREENS]
    return table(head, rows)


def _row(name: str, ask: Ask, columns: int, n: int, epsilon: float, delta: float) -> list[str]:
    event: Event = preview(columns=columns, n=n, epsilon=epsilon, delta=delta, ask=ask).plan.event
    found = privacy_cost([event], delta=DELTA, beta=BETA)
    level = corrected_level_after(ALPHA, [event]).level
    return [
        name,
        str(columns),
        str(n),
        "-" if np.isinf(found.epsilon) else f"{found.epsilon:.3g}",
        f"{found.approximate_epsilon:.3g}",
        f"{found.rho:.2g}",
        f"{found.nats:.2g} ({found.nats / np.log(2):.2g})",
        f"{found.bits:.3g}",
        f"{level:.2g}" if level > 1e-12 else "none",
    ]


def capacities() -> str:
    head = (
        "epsilon",
        "divergence, nats",
        "bound, nats",
        "randomised response: 2 values",
        "16 values",
        "the worst there is: 200 values",
    )
    rows = []
    for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0):
        pure = PureDP(epsilon)
        rows.append(
            [
                f"{epsilon:g}",
                f"{kl_to_mi(pure_to_kl(pure)).nats:.4f}",
                f"{pure_to_mi(pure).nats:.4f}",
                *(f"{capacity(_response(k, epsilon)).nats:.4f}" for k in (2, 16)),
                f"{capacity(_circle(200, epsilon)).nats:.4f}",
            ]
        )
    return table(head, rows)


def _response(values: int, epsilon: float) -> np.ndarray:
    """Randomized response: the own value has odds of e^epsilon to each of the others."""
    likely = np.exp(epsilon * np.eye(values))
    return likely / likely.sum(axis=1, keepdims=True)


def _circle(values: int, epsilon: float) -> np.ndarray:
    """Values on a circle, each with odds of e^epsilon to fall on the arc that begins with it."""
    u = epsilon / -np.expm1(-epsilon)
    arc = round(values * (u - 1) / np.expm1(epsilon))
    ahead = (np.arange(values) - np.arange(values)[:, None]) % values
    likely = np.exp(epsilon * (ahead < arc))
    return likely / likely.sum(axis=1, keepdims=True)


def main() -> None:
    fill(PAGE, "units", screens())
    fill(PAGE, "capacity", capacities())


if __name__ == "__main__":
    main()
