"""Would free gaps make the values after a top-k better?

`python -m benchmarks.gaps` writes the table of docs/selection.md. A top-k by noisy scores may
release by how much each chosen score exceeds the best of the others, at no cost if the noise is
two-sided (Ding, Wang, Xiao, Zhang and Kifer 2019), and values measured afterwards may be combined
with these gaps. With v_i the measured values, g_i the gaps and bars for means, the least squares
estimate is

    bar v + w (g_i - bar g) + (1 - w) (v_i - bar v),   w = var v / (var v + var g).

Noise is that of `preview(..., ask=TopK(k))` with so much of epsilon for the choice. In some tables
a few pairs have the same distance, chosen so that they are found in part; in others none has any.
All other pairs have a distance of 0, the best case for the gaps. The threshold for either estimate
is what the largest of its values exceeds in 5 % of tables in which no pair has any.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.pages import DOCS, fill, table
from dpmic_jax.screening import TopK, preview
from dpmic_jax.screening.plan import Plan

PAGE = DOCS / "selection.md"
N, COLUMNS, TABLES, TRUE = 10_000, 30, 4000, 5
_SEED = 20_261_123
CASES = ((5, 0.5), (5, 0.7), (20, 0.5), (20, 0.7))


class Estimates(NamedTuple):
    """Estimates of the chosen pairs' values.

    Attributes:
      real: which of them are of pairs that depend on each other.
      measured, combined: the estimates.
    """

    real: np.ndarray
    measured: np.ndarray
    combined: np.ndarray


def simulated(plan: Plan, height: float, rng: np.random.Generator) -> Estimates:
    """Tables in which `TRUE` pairs have a distance of `height`."""
    k, pairs, choice = plan.released, len(plan.pairs), plan.choice
    assert choice is not None, "a fraction for the choice was given"
    scores = np.zeros((TABLES, pairs))
    scores[:, :TRUE] = height
    noisy = scores + choice.scale * rng.exponential(size=scores.shape)
    order = np.argsort(-noisy, axis=1)[:, : k + 1]
    gaps = np.take_along_axis(noisy, order[:, :k], axis=1)
    gaps -= np.take_along_axis(noisy, order[:, k:], axis=1)
    radius = plan.distances.scale * rng.gamma(plan.distances.points + 1, size=(TABLES, 1))
    values = np.take_along_axis(scores, order[:, :k], axis=1)
    values = values + radius * rng.uniform(-1, 1, values.shape)
    weight = plan.distances.sd**2 / (plan.distances.sd**2 + choice.scale**2)
    centre = values.mean(axis=1, keepdims=True)
    combined = weight * (gaps - gaps.mean(axis=1, keepdims=True))
    combined += (1 - weight) * (values - centre) + centre
    return Estimates(order[:, :k] < TRUE, values, combined)


def measured(k: int, fraction: float) -> list[str]:
    """A row of the table."""
    ask = TopK(k, selection_fraction=fraction)
    plan = preview(columns=COLUMNS, n=N, epsilon=1.0, ask=ask).plan
    rng = np.random.default_rng([_SEED, k, round(100 * fraction)])
    none = simulated(plan, 0.0, rng)
    assert plan.choice is not None, "a fraction for the choice was given"
    height = plan.choice.scale * np.log(len(plan.pairs) / k)
    some = simulated(plan, height, rng)
    cells = [str(k), f"{fraction:g}", f"{height:.3f}"]
    for name in ("measured", "combined"):
        level = np.quantile(getattr(none, name).max(axis=1), 0.95)
        found = getattr(some, name)
        off = found[some.real] - height
        power = (some.real & (found > level)).sum() / (TRUE * TABLES)
        cells.append(f"{np.sqrt((off**2).mean()):.4f}, {off.mean():+.4f}; {level:.3f}; {power:.3f}")
    return cells


def main() -> None:
    names = ["k", "fraction for the choice", "distance of 5 pairs", "values", "with gaps"]
    text = table(names, [measured(*case) for case in CASES])
    print(text)
    fill(PAGE, "gaps", text)


if __name__ == "__main__":
    main()
