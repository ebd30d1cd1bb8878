"""Screens by the real path: tables, seeded keys and the flags that users see."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest
from tqdm import tqdm

from benchmarks.peers import Setting
from benchmarks.power import data
from benchmarks.power.compare import SETTINGS, Values
from benchmarks.power.mechanism import SCREEN, Distance, plan_of, query
from dpmic_jax.data.demo import demo
from dpmic_jax.dp.rng.keys import seeded_key
from dpmic_jax.paper.family import data_sets, family
from dpmic_jax.results import ScreenResult
from dpmic_jax.screening import Against, AllPairs, TopK, preview, screen

_SEED = 20_261_120
PLANTED = (0.2, 0.1, 0.06)  # MIC* of the pairs of a table of 30 columns
_KEYS_OF_NOISE = 400


class Mixed(NamedTuple):
    """A table with some dependent pairs; all others are independent.

    Attributes:
      table: the columns.
      pairs: positions of the dependent pairs.
      sets: which data set each of them is.
    """

    table: np.ndarray
    pairs: np.ndarray
    sets: np.ndarray


def rate(count: int, of: int) -> list[float]:
    """A proportion and its 95 % Clopper-Pearson interval."""
    interval = binomtest(count, of).proportion_ci()
    return [round(float(x), 4) for x in (count / of, interval.low, interval.high)]


def tables(sets: data.Sets, pairs: int, seed: int) -> Iterator[Mixed]:
    """Tables for a screen of so many pairs that have every data set in them, most of them once."""
    columns, ask = query(pairs)
    rng = np.random.default_rng([seed, pairs])
    order = rng.permutation(len(sets.x))
    each = 1 if isinstance(ask, Against) else columns // 2
    for start in range(0, len(order), each):
        some = np.take(order, range(start, start + each), mode="wrap")
        table = rng.random((columns, sets.x.shape[1]), np.float32)
        place = np.arange(each)
        table[2 * place], table[2 * place + 1] = sets.x[some], sets.y[some]
        yield Mixed(table.T, np.stack([2 * place, 2 * place + 1], axis=1), some)


def flags(result: ScreenResult, columns: int) -> np.ndarray:
    """A matrix of what is called dependent, above the diagonal."""
    called = np.zeros((columns, columns), bool)
    x, y = result.pairs.T
    called[x, y] = result.dependent
    return called


def screened(values: Values, settings: Sequence[Setting] = SETTINGS) -> list[dict[str, Any]]:
    """Power and false alarms of real screens, beside the power that is computed."""
    rows = []
    for setting in sorted(settings):
        sets = values.sets("functions", setting.n)
        expected = values.power(SCREEN, setting, "functions")
        columns, ask = query(setting.pairs)
        hits, alarms, wanted = [], [], []
        every = list(tables(sets, setting.pairs, _SEED))
        for seed, mixed in enumerate(tqdm(every, desc=f"screens {tuple(setting)}")):
            result = screen(
                mixed.table,
                bounds=[(0.0, 1.0)] * columns,
                epsilon=setting.epsilon,
                delta=setting.delta,
                ask=ask,
                key=seeded_key(seed),
                force=True,
            )
            called = flags(result, columns)
            x, y = mixed.pairs.T
            hits.append(called[x, y])
            called[x, y] = False
            alarms.append(called.any())
            wanted.append(expected[mixed.sets])
        hit = np.concatenate(hits)
        rows.append(
            {
                **setting._asdict(),
                "screens": len(every),
                "power": rate(int(hit.sum()), len(hit)),
                "computed": round(float(np.concatenate(wanted).mean()), 4),
                "false alarms": rate(sum(alarms), len(alarms)),
            }
        )
    return rows


def demo_screens(keys: int) -> dict[str, Any]:
    """`dpmic screen demo --epsilon 1`, with many keys."""
    of = demo()
    right = others = 0
    result = None
    for seed in tqdm(range(keys), desc="demo"):
        result = screen(
            of.columns, bounds=of.bounds, epsilon=1.0, ask=AllPairs(), key=seeded_key(seed)
        )
        names = [frozenset(result.names[i] for i in pair) for pair in result.pairs]
        called = {name for name, flag in zip(names, result.dependent, strict=True) if flag}
        right += called == of.dependent
        others += bool(called - of.dependent)
    assert result is not None, "expected at least one key"
    return {
        "keys": keys,
        "exactly the eight": rate(right, keys),
        "any other": rate(others, keys),
        "level": round(result.dependence_threshold, 4),
    }


def top_screens(runs: int, *, n: int = 20_000, columns: int = 30, k: int = 20) -> dict[str, Any]:
    """`TopK(20)` of 30 columns: how many of 15 planted pairs are chosen and called dependent."""
    before = preview(columns=columns, n=n, epsilon=1.0, ask=TopK(k))
    rows = []
    of = family()
    for star in PLANTED:
        near = np.argsort(np.abs(of.stars - star), kind="stable")[: columns // 2]
        x, y = (
            np.concatenate(each)
            for each in zip(
                *(
                    data_sets(of, range(index, index + 1), n, range(runs), seed=_SEED)
                    for index in near.tolist()
                ),
                strict=True,
            )
        )
        hits, alarms = [], 0
        for run in tqdm(range(runs), desc=f"top {k}, MIC* near {star}"):
            table = np.empty((n, columns), np.float32)
            table[:, ::2], table[:, 1::2] = x[run::runs].T, y[run::runs].T
            result = screen(
                table,
                bounds=[(0.0, 1.0)] * columns,
                epsilon=1.0,
                ask=TopK(k),
                key=seeded_key(run),
            )
            called = flags(result, columns)
            hits.append(called[::2, 1::2].diagonal())
            alarms += called.sum() > hits[-1].sum()
        hit = np.array(hits)
        rows.append(
            {
                "MIC*": round(float(of.stars[near].mean()), 3),
                "functions": sorted({of.names[index] for index in near}),
                "found": rate(int(hit.sum()), hit.size),
                "least of a pair": round(float(hit.mean(axis=0).min()), 3),
                "false alarms": rate(alarms, runs),
            }
        )
    return {
        "runs": runs,
        "predicted": round(before.smallest, 4),
        "predicted distance": round(before.smallest_distance, 4),
        "planted": rows,
    }


def noise_on_values(keys: int = _KEYS_OF_NOISE, *, n: int = 10_000) -> dict[str, Any]:
    """The noise that real screens of 66 pairs add, beside independent Laplace noise."""
    setting = Setting(n, 66, 1.0)
    columns, ask = query(setting.pairs)
    table = np.random.default_rng(_SEED).random((n, columns), np.float32)
    table[:, 1::2] = table[:, ::2]  # far from both ends of the scale, where values are clipped
    x, y = np.triu_indices(columns, 1)
    exact = np.zeros((columns, columns))
    exact[x, y] = Distance().values(table.T[x], table.T[y])
    added = []
    for seed in tqdm(range(keys), desc="noise"):
        result = screen(
            table, bounds=[(0.0, 1.0)] * columns, epsilon=1.0, ask=ask, key=seeded_key(seed)
        )
        i, j = result.pairs.T
        added.append(result.distance - exact[i, j])
    drawn = np.concatenate(added)
    laplace = np.sqrt(2) * setting.pairs * Distance().sensitivity(n) / setting.epsilon
    plan = plan_of(setting)
    return {
        "keys": keys,
        "sd": round(float(drawn.std()), 6),
        "planned sd": round(plan.distances.sd, 6),
        "Laplace sd": round(float(laplace), 6),
        "ratio": round(float(laplace / drawn.std()), 3),
    }
