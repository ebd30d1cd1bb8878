"""The tables of docs/max_information.md: bits and levels by each theorem; uses no data.

`python -m benchmarks.max_information` writes them into the page, between its marks.
"""

import itertools
import math

from benchmarks.pages import DOCS, fill, table
from dpmic_jax.dp.accounting.events import ZCDP, ApproximateDP, PureDP
from dpmic_jax.dp.max_information import (
    InformationTheorem,
    Laws,
    approximate,
    approximate_product,
    concentrated,
    corrected_level,
    largest_epsilon,
    largest_rho,
    pure,
    pure_product,
)
from dpmic_jax.dp.max_information.pure import mean

ALPHA, BETA = 0.05, 0.025
RECORDS = (10**3, 10**4, 10**5, 10**6)


def of_epsilon() -> str:
    rows = []
    for n, epsilon in itertools.product(RECORDS, (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)):
        printed = pure_product(epsilon, n, BETA)
        # Hoeffding's inequality with the sharper mean.
        azuma = n * mean(epsilon) + epsilon * math.sqrt(n * math.log(1 / BETA) / 2)
        best_printed = max(
            pure_product(epsilon, n, share * ALPHA).level(ALPHA)
            for share in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
        )
        bits = (printed.bits, azuma / math.log(2), pure(epsilon, n).at(BETA).bits)
        level = corrected_level(ALPHA, PureDP(epsilon), n=n).level
        rows.append(
            [str(n), f"{epsilon:g}", *map(_bits, bits), _level(best_printed), _level(level)]
        )
    head = ("n", "epsilon", "Theorem 1.4", "Azuma with c(epsilon)", "Theorem B")
    return table((*head, "level by 1.4", "level by B"), rows)


def of_delta() -> str:
    rows = []
    for n, epsilon, delta in itertools.product(RECORDS, (0.001, 0.01, 0.1), (1e-9, 1e-12, 1e-18)):
        bits = approximate_product(epsilon, delta, n, BETA).bits
        ours = approximate(epsilon, delta, n).at(BETA).bits
        level = corrected_level(ALPHA, ApproximateDP(epsilon, delta), n=n).level
        rows.append([str(n), f"{epsilon:g}", f"{delta:g}", _bits(bits), _bits(ours), _level(level)])
    return table(("n", "epsilon", "delta", "Theorem 3.1", "Theorem C", "level"), rows)


def of_rho() -> str:
    rows = []
    for n, total in itertools.product((10**3, 10**5, 10**6), (0.001, 0.01, 0.1, 1.0, 10.0)):
        by_information = InformationTheorem(nats=total, laws=Laws.PRODUCT).at(BETA).bits
        by_moments = concentrated(total / n, n).at(BETA).bits
        levels = []
        for alpha in (ALPHA, 0.001):
            found = corrected_level(alpha, ZCDP(total / n), n=n)
            levels.append(f"{_level(found.level)} ({found.theorem.split()[1]})")
        rows.append([str(n), f"{total:g}", _bits(by_information), _bits(by_moments), *levels])
    head = ("n", "n rho", "bits, D", "bits, C", "level at alpha = 0.05", "level at alpha = 0.001")
    return table(head, rows)


def largest() -> str:
    levels = (0.025, 0.005, 0.0005)
    rows = []
    for n in RECORDS:
        epsilons = [f"{largest_epsilon(level, alpha=ALPHA, n=n):.3g}" for level in levels]
        rhos = [f"{largest_rho(level, alpha=ALPHA, n=n):.2g}" for level in levels]
        rows.append([f"10^{len(str(n)) - 1}", *epsilons, *rhos])
    named = [f"{unit}: {level:g}" for unit in ("epsilon", "rho") for level in levels]
    return table(("n", *named), rows)


def _bits(value: float) -> str:
    return f"{value:.3g}"


def _level(value: float) -> str:
    return f"{value:.2g}" if value > 1e-300 else "0"


def main() -> None:
    page = DOCS / "max_information.md"
    for mark, text in {
        "pure": of_epsilon(),
        "approximate": of_delta(),
        "zcdp": of_rho(),
        "largest": largest(),
    }.items():
        fill(page, mark, text)


if __name__ == "__main__":
    main()
