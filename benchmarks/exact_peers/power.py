"""Power at equal false-positive rate, and equitability, of every score on the same data sets.

Records are drawn from the mixtures by rejection. The threshold of a score is the 95 % quantile of
its values on shuffled pairs: those of every data set, with y in a random order. So each score calls
5 % of these dependent. Seconds are of the processor, as other work slows the clock.
"""

import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.exact_peers.scores import SCORES, Score
from benchmarks.power.data import DEVIATIONS
from dpmic_jax.paper.dependences import other_shapes
from dpmic_jax.paper.family import family
from dpmic_jax.paper.mixtures import Mixture

SIZES = (100, 500, 2000)
REPEATS = 4
SECONDS = 8.0  # of the processor, of a score at one n, by fewer repeats
MOST_SECONDS = 60.0  # else a third of the distributions is taken, or the score left as "over"
LEVEL = 0.05
Measured = tuple[tuple[str, str], dict[str, Any]]  # the place of a row in the results, and it
LEFT_OUT = {"MICe, B <= 150, c = 5, ladder"}  # for large n


def measured(known: dict[str, Any], only: set[str]) -> Iterator[Measured]:
    """Power and equitability of the scores that are not known yet, n by n."""
    for n in SIZES:
        wanted = [name for name in SCORES if name not in LEFT_OUT and (not only or name in only)]
        rows = known.get(str(n), {})
        wanted = [name for name in wanted if name not in rows]
        if not wanted:
            continue
        names, x, y = data(n)
        shuffled = np.random.default_rng([7, n]).permuted(y, axis=2)
        for name in wanted:
            try:
                row = of_score(SCORES[name](), names, x, y, shuffled)
            except Exception:  # the other scores are measured still, and this one next time
                traceback.print_exc()
                continue
            print(n, name, row.get("functions"), row["seconds_a_pair"], flush=True)
            yield (str(n), name), row


def data(n: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The 189 distributions, then shapes that are no functions, three of each.

    Returns:
      The function or shape of each distribution; x and y, distributions by repeats by records.
    """
    of, rng = family(), np.random.default_rng([20_261_119, n])
    names, mixtures = list(of.names), list(of.mixtures)
    for name, centres in other_shapes().items():
        names += [name] * len(DEVIATIONS)
        mixtures += [Mixture(centres, deviation) for deviation in DEVIATIONS]
    drawn = np.array([[_draw(each, n, rng) for _ in range(REPEATS)] for each in mixtures])
    return names, drawn[..., 0], drawn[..., 1]


def _draw(mixture: Mixture, n: int, rng: np.random.Generator) -> np.ndarray:
    """Records of a mixture in the unit square."""
    found = np.empty((0, 2))
    while len(found) < n:
        centres = mixture.centres[rng.integers(len(mixture.centres), size=2 * n)]
        points = centres + mixture.deviation * rng.normal(size=centres.shape)
        found = np.concatenate([found, points[((points >= 0) & (points <= 1)).all(axis=1)]])
    return found[:n]


def of_score(
    score: Score,
    names: list[str],
    x: np.ndarray,
    y: np.ndarray,
    shuffled: np.ndarray,
) -> dict[str, Any]:
    """What is found of one score.

    Args:
      score: the score.
      names: the function or shape of each distribution; those of a function are at R^2 = 0.1,
        0.2, ..., 0.9.
      x, y: distributions by repeats by records.
      shuffled: y without dependence.
    """
    score.many(x[:2, 0], y[:2, 0])  # compiles
    start = time.process_time()
    score.many(x[::40, 0], y[::40, 0])
    each = (time.process_time() - start) / len(x[::40])
    third = 2 * len(x) * each > MOST_SECONDS
    if third:  # R^2 = 0.2, 0.5, 0.8, and the middle one of each shape
        names, (x, y, shuffled) = names[1::3], (array[1::3] for array in (x, y, shuffled))
    pairs, most, n = x.shape
    if 2 * pairs * each > MOST_SECONDS:
        return {"over": MOST_SECONDS, "seconds_a_pair": each}
    batched = score.package == "dpmic_jax"
    repeats = most if batched else max(1, min(most, int(SECONDS / (2 * pairs * each))))
    start = time.process_time()
    found, null = (
        score.many(x[:, :repeats].reshape(-1, n), b[:, :repeats].reshape(-1, n)).reshape(
            pairs, repeats
        )
        for b in (y, shuffled)
    )
    seconds = time.process_time() - start
    found, null = np.nan_to_num(found), np.nan_to_num(null)
    threshold = np.quantile(null, 1 - LEVEL, method="higher")
    called, alarms = found > threshold, null > threshold
    of = np.array(names)
    each_name = {name: float(called[of == name].mean()) for name in dict.fromkeys(names)}
    functions = sum(is_function(name) for name in names)
    rates = [float(alarms[of == name].mean()) for name in each_name]
    return {
        "repeats": repeats,
        "distributions": pairs,
        "seconds_a_pair": seconds / (2 * pairs * repeats),
        "false_positives": float(alarms.mean()),
        "false_positives_of_functions": [min(rates), max(rates)],
        "functions": _mean(called[:functions]),
        "shapes": _mean(called[functions:]),
        "by_name": each_name,
        "equitability": equitability(found[:functions]),
    }


def _mean(called: np.ndarray) -> list[float]:
    """The mean power, and a 95 % interval of Wilson."""
    m, p, z = called.size, called.mean(), 1.96
    middle = (p + z**2 / (2 * m)) / (1 + z**2 / m)
    half = z / (1 + z**2 / m) * np.sqrt(p * (1 - p) / m + z**2 / (4 * m**2))
    return [float(p), float(middle - half), float(middle + half)]


def is_function(name: str) -> bool:
    """Whether a name is that of one of the 21 functions."""
    return name[0] == "F" and name[1:].isdigit()


def equitability(found: np.ndarray) -> dict[str, float]:
    """How well a score tells R^2, whatever the function is (Reshef et al. 2015).

    At each R^2 the score has a central 90 % interval, over functions and repeats. The interpretable
    interval of a score s are the R^2 whose intervals hold s; its width is 0 at best.
    """
    by_r = found.reshape(21, len(found) // 21, -1)  # functions, R^2, repeats
    r = np.arange(1, 10) / 10 if len(found) == 189 else np.array([0.2, 0.5, 0.8])
    low, high = np.quantile(by_r, [0.05, 0.95], axis=(0, 2))
    scores = by_r.ravel()
    inside = (low <= scores[:, None]) & (scores[:, None] <= high)
    widths = np.where(inside, r, -np.inf).max(axis=1) - np.where(inside, r, np.inf).min(axis=1)
    widths = widths[inside.any(axis=1)]
    means = by_r.mean(axis=2)
    rise = means[:, -1].mean() - means[:, 0].mean()
    return {
        "mean_interval": float(widths.mean()),
        "worst_interval": float(widths.max()),
        "spread": float(means.std(axis=0).mean() / rise),
    }
