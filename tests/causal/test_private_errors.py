"""Errors of Priv-PC's answers on the real code path stay under the corrected bounds."""

from math import log, sqrt

import numpy as np
import pytest
from scipy import stats

from dpmic_jax.causal.kendall import Kendall
from dpmic_jax.causal.priv_pc import PrivPC
from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.dp.rng.keys import seeded_key
from dpmic_jax.dp.selection.sieve_bounds import no_drift, type_one, type_two

N, QUERY = 2000, Query(0, 1)
ROUNDS = pytest.mark.parametrize("rounds", [300, pytest.param(10_000, marks=pytest.mark.slow)])
MARGIN = sqrt(log(1e5) / (2 * 1000))  # of Dvoretzky, Kiefer and Wolfowitz, for 1000 subsamples


def dependent():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, N)
    return Coded(np.stack([x, np.where(rng.random(N) < 0.3, 1 - x, x)]), (2, 2))


def answers(data, threshold, subsample, tweak, rounds):
    """How often the edge was removed, in rounds of e_s = e_e = 1; and the mechanism of a round."""
    search = PrivPC(
        epsilon=2.0 * rounds,
        threshold=threshold,
        max_order=0,
        rounds=rounds,
        subsample=subsample,
        tweak=tweak,
    )
    look = search._open_level(data, Kendall, seeded_key(2), 0, [QUERY])
    found = [look(number, 0) for number in range(rounds)]
    lattice, mechanism = search._level(data, Kendall, [QUERY])
    return sum(bool(f and f.independent) for f in found), lattice, mechanism


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


def missed(subsample, rounds):
    """Rounds that do not see an independence 3 Delta below T, and the bound on their share.

    The sieve's signs are opposite, so this is its Type I.
    """
    data = dependent()
    score = Kendall(data).scores([QUERY])[0]
    alpha = 3 * float(Kendall(data).sensitivity([QUERY]))
    removed, lattice, mechanism = answers(data, score + alpha, subsample, 0.1, rounds)
    steps = int(alpha * 2**lattice.bits) - 1
    bound = type_one(mechanism, steps, drift=drift(data, subsample, lattice, 1), rounds=1)
    return rounds - removed, bound


def wrongly_removed(subsample, rounds):
    """Rounds that remove an edge Delta above T, and the bound on their share: Type II."""
    data = dependent()
    score = Kendall(data).scores([QUERY])[0]
    delta = float(Kendall(data).sensitivity([QUERY]))
    removed, lattice, mechanism = answers(data, score - delta, subsample, 0.0, rounds)
    steps = int(delta * 2**lattice.bits) - 1
    return removed, type_two(mechanism, steps, drift=drift(data, subsample, lattice, -1), rounds=1)


@ROUNDS
@pytest.mark.parametrize("subsample", [N, N // 2])
@pytest.mark.parametrize(("kind", "most"), [(missed, 0.9), (wrongly_removed, 0.5)])
def test_answers_are_wrong_no_more_often_than_bounded(kind, most, subsample, rounds):
    wrong, bound = kind(subsample, rounds)
    assert bound < most
    assert stats.binomtest(wrong, rounds, bound, alternative="greater").pvalue > 1e-4
