"""Errors of Priv-PC's answers on the real code path stay under the corrected bounds."""

from math import log, sqrt

import numpy as np
import pytest
from scipy import stats

from dpmic_jax.causal.kendall import Kendall
from dpmic_jax.causal.priv_pc import PrivPC
from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.dp.keys import seeded_key
from dpmic_jax.dp.selection.sieve_bounds import no_drift, type_one, type_two

N, ROUNDS, QUERY = 2000, 300, Query(0, 1)
MARGIN = sqrt(log(1e5) / (2 * 1000))  # of Dvoretzky, Kiefer and Wolfowitz, for 1000 subsamples


def dependent():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, N)
    return Coded(np.stack([x, np.where(rng.random(N) < 0.3, 1 - x, x)]), (2, 2))


def answers(data, threshold, subsample, tweak):
    """How often the edge was removed, in rounds of e_s = e_e = 1; and the law of a round."""
    search = PrivPC(
        epsilon=2.0 * ROUNDS,
        threshold=threshold,
        max_order=0,
        rounds=ROUNDS,
        subsample=subsample,
        tweak=tweak,
    )
    look = search._opened(data, Kendall, seeded_key(2), 0, [QUERY])
    found = [look(number, 0) for number in range(ROUNDS)]
    lattice, law = search._level(data, Kendall, [QUERY])
    return sum(bool(f and f.independent) for f in found), lattice, law


def drift(data, subsample, lattice, sign):
    """A bound on P(sign (score on a subsample - score) >= step), from subsamples of our own."""
    rng = np.random.default_rng(0)
    if subsample == N:
        return no_drift
    unit = 2**lattice.bits
    whole = Kendall(data).scores([QUERY])[0] * unit
    gaps = np.array(
        [
            Kendall(data.take(rng.permutation(N)[:subsample])).scores([QUERY])[0] * unit - whole
            for _ in range(1000)
        ]
    )
    # One step more for rounding down.
    return lambda step: min(1.0, float((sign * gaps >= step - 1).mean()) + MARGIN)


@pytest.mark.parametrize("subsample", [N, N // 2])
def test_an_independence_is_missed_no_more_often_than_bounded(subsample):
    """T is above the score by alpha; the sieve's signs are opposite, so this is its Type I."""
    data = dependent()
    score = Kendall(data).scores([QUERY])[0]
    alpha = 3 * float(Kendall(data).sensitivity([QUERY]))
    removed, lattice, law = answers(data, score + alpha, subsample, 0.1)
    steps = int(alpha * 2**lattice.bits) - 1
    bound = type_one(law, steps, drift=drift(data, subsample, lattice, 1), rounds=1)
    assert bound < 0.9
    missed = ROUNDS - removed
    assert stats.binomtest(missed, ROUNDS, bound, alternative="greater").pvalue > 1e-4


@pytest.mark.parametrize("subsample", [N, N // 2])
def test_an_edge_is_removed_wrongly_no_more_often_than_bounded(subsample):
    """T is below the score by alpha: the sieve's Type II."""
    data = dependent()
    score = Kendall(data).scores([QUERY])[0]
    delta = float(Kendall(data).sensitivity([QUERY]))
    removed, lattice, law = answers(data, score - delta, subsample, 0.0)
    steps = int(delta * 2**lattice.bits) - 1
    bound = type_two(law, steps, drift=drift(data, subsample, lattice, -1), rounds=1)
    assert bound < 0.5
    assert stats.binomtest(removed, ROUNDS, bound, alternative="greater").pvalue > 1e-4
