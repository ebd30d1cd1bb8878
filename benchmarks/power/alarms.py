"""False alarms on tables of independent columns, over the worst columns that we know of.

Distances are those of the engine, and noise is drawn as in a screen, from the key of each table.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from benchmarks.peers import Setting
from benchmarks.power.mechanism import SIMULATED, distances, plan_of, query
from benchmarks.power.screens import rate
from dpmic_jax.data.limits import Limits, WithMissing
from dpmic_jax.mechanisms.release import add_noise

SETTINGS = (
    Setting(1000, 11, 1.0),
    Setting(1000, 66, 10.0),
    Setting(10_000, 66, 1.0),
    Setting(10_000, 66, 0.1),
    Setting(10_000, 435, 1.0, 1e-6),
)
TABLES = {11: 600, 66: 300, 435: 60}
_SEED = 20_261_121
_TOGETHER = 20  # tables that are scored at once

Columns = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

UNIT: Limits = (0.0, 1.0)


def _rare(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return (rng.random(shape) < 0.01).astype(float)


def _missing(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.3, -np.inf, rng.random(shape))


def _mixed(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.5, 0.5, rng.random(shape))


MARGINALS: dict[str, tuple[Columns, Limits]] = {
    "uniform": (lambda rng, shape: rng.random(shape), UNIT),
    "two values, half each": (lambda rng, shape: rng.integers(0, 2, shape) / 1.0, UNIT),
    "two values, 1 % and 99 %": (_rare, UNIT),
    "16 equal atoms": (lambda rng, shape: (rng.integers(0, 16, shape) + 0.5) / 16, UNIT),
    "heavy tails, most in one bin": (lambda rng, shape: rng.pareto(1.0, shape), (0.0, 100.0)),
    "half of the records tied": (_mixed, UNIT),
    "30 % missing": (_missing, WithMissing(0.0, 1.0)),
}
ALL = "all of these in one table"


def independent(
    kind: str, columns: int, n: int, seed: int
) -> tuple[list[np.ndarray], list[Limits]]:
    """Columns of one kind, or of all kinds in turn, with their limits."""
    rng = np.random.default_rng([_SEED, seed, n])
    kinds = [kind] if kind != ALL else list(MARGINALS)
    made = [MARGINALS[kinds[i % len(kinds)]] for i in range(columns)]
    return [draw(rng, (1, n))[0] for draw, _ in made], [limits for _, limits in made]


def alarms(setting: Setting, kind: str, tables: int) -> dict[str, Any]:
    """The share of tables in which any pair is called dependent, by the proven level."""
    plan = plan_of(setting)
    columns, _ = query(setting.pairs)
    names, top = len(plan.names), plan.distances.lattice.top
    level, exact_level = plan.dependence_level, SIMULATED.level(setting)
    any_proven = any_simulated = 0
    largest = []
    for start in range(0, tables, _TOGETHER):
        some = range(start, min(start + _TOGETHER, tables))
        made = [independent(kind, columns, setting.n, seed) for seed in some]
        pairs = np.concatenate([plan.pairs + names * place for place in range(len(made))])
        every = [column for own, _ in made for column in own]
        found = distances(every, [limit for _, own in made for limit in own], pairs)
        for seed, values in zip(some, np.split(found, len(made)), strict=True):
            points = np.floor(values * top).astype(np.int64)
            key = jax.random.fold_in(jax.random.key(_SEED), seed)
            noisy = add_noise(plan.distances, points, plan.pairs, key) / top
            any_proven += bool((noisy > level).any())
            any_simulated += bool((noisy > exact_level).any())
            largest.append(values.max())
    return {
        "columns": kind,
        "tables": tables,
        "false alarms": rate(any_proven, tables),
        "by the simulated level": rate(any_simulated, tables),
        "largest distance, 95 %": round(float(np.quantile(largest, 0.95)), 4),
    }


def measured(share: float = 1.0, settings: Sequence[Setting] = SETTINGS) -> list[dict[str, Any]]:
    """False alarms of every setting and kind of columns."""
    return [
        {
            **setting._asdict(),
            "level": round(plan_of(setting).dependence_level, 4),
            "simulated level": round(SIMULATED.level(setting), 4),
            "rows": [
                alarms(setting, kind, max(20, round(share * TABLES[setting.pairs])))
                for kind in tqdm((*MARGINALS, ALL), desc=f"false alarms {tuple(setting)}")
            ],
        }
        for setting in settings
    ]
