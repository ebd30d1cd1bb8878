"""The proven tail of the distance bounds probabilities that are added up over all small tables."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpmic_jax.mic.distance import steps_of
from dpmic_jax.screening import independence
from dpmic_jax.screening.independence import dependence_level, distance_tail
from dpmic_jax.screening.noises import Share, value_noise

X = np.linspace(0, 0.41, 300)
EXACT = 1 + 1e-9  # sums of probabilities, the smallest of which are added up first


def distances(near, every):
    """From the definition in `mic.distance`: parts are last, and n is the same for all tables."""
    n = int(every.reshape(-1, every.shape[-1])[0].sum())
    t = 1 / (1 + np.arange(steps_of(n) + 1) / steps_of(n))
    found, total = np.inf, near.sum(axis=-1)
    for share in (*t, *(1 - t)):
        most = max(share, 1 - share)
        apart = np.abs(near - share * every).sum(axis=-1)
        apart += (2 * most - 1) * np.abs(share * n - total)
        found = np.minimum(found, apart / (2 * most * n))
    return found


def beyond(found, chances):
    """P(distance > x) for every x."""
    order = np.argsort(found, axis=None)
    above = np.append(np.cumsum(chances.ravel()[order][::-1])[::-1], 0)
    return above[np.searchsorted(found.ravel()[order], X, side="right")]


def of_one_split(p, sizes):
    """P(distance > x) of a flag that is 1 with probability p, given a column of two values."""
    near = np.stack(np.meshgrid(*(np.arange(size + 1) for size in sizes), indexing="ij"), axis=-1)
    chances = np.prod([stats.binom.pmf(near[..., i], size, p) for i, size in enumerate(sizes)], 0)
    return beyond(distances(near, np.broadcast_to(sizes, near.shape)), chances)


@pytest.mark.parametrize(
    ("p", "sizes"),
    [(0.5, (150, 150)), (0.5, (230, 70)), (0.7, (100, 200)), (0.9, (150, 150)), (0.98, (99, 201))],
)
def test_the_tail_of_a_split_bounds_the_probability_of_all_tables(p, sizes):
    exact = of_one_split(p, np.array(sizes))
    assert np.all(exact <= EXACT * independence._split_tail(X, sum(sizes), 1, 2))
    assert exact[0] > 0.9


def test_more_parts_on_the_other_axis_have_a_larger_tail(rng):
    """A flag against nominal columns of 16 and 64 even categories."""
    for bins in (16, 64):
        every = np.full(bins, 3000 // bins)
        found = distances(rng.binomial(every, 0.5, (1000, bins)), every)
        n = int(every.sum())
        middle, high = np.quantile(found, [0.5, 0.99])
        assert independence._split_tail(middle, n, 1, bins) > 0.5
        assert independence._split_tail(high, n, 1, bins) > 0.01
        # The control: with a third of the parts it would be too small.
        assert independence._split_tail(high, n, 1, bins // 3) < 0.01


def test_two_thirds_of_the_variance_proxy_would_not_bound_it(monkeypatch):
    error, proxy = independence._worst(600, 1)
    exact = of_one_split(0.5, np.array([300, 300]))
    assert np.all(exact <= EXACT * independence._split_tail(X, 600, 1, 2))
    monkeypatch.setattr(independence, "_worst", lambda n, records: (error, proxy * 2 / 3))
    assert np.any(exact > 2 * independence._split_tail(X, 600, 1, 2))


def test_the_tail_of_a_pair_bounds_the_probability_of_all_tables_of_two_flags():
    """Of both axes, and whatever the other column is: n = 100, as a screen computes it."""
    n = 100
    sides = np.arange(n + 1)
    # How many records are 1 in the second flag, and of these and the others in the first.
    of_y, one, other = (each.ravel() for each in np.meshgrid(sides, sides, sides, indexing="ij"))
    real = (one <= of_y) & (other <= n - of_y)
    of_y, one, other = (each[real] for each in (of_y, one, other))
    of_x = one + other
    found = np.maximum(
        distances(np.stack([one, other], -1), np.stack([of_y, n - of_y], -1)),
        distances(np.stack([one, of_y - one], -1), np.stack([of_x, n - of_x], -1)),
    )
    bound = distance_tail(X, n)
    assert bound.min() < 0.05
    for p, q in ((0.5, 0.5), (0.8, 0.5), (0.97, 0.9)):
        chances = stats.binom.pmf(of_y, n, q) * stats.binom.pmf(one, of_y, p)
        chances *= stats.binom.pmf(other, n - of_y, p)
        assert chances.sum() == pytest.approx(1)
        assert np.all(beyond(found, chances) <= EXACT * bound)


def test_all_splits_together_exceed_what_one_split_does_so_their_bounds_add_up():
    """A column of four even values against a flag: 7 splits, given 8 records of each side."""
    n, values = 16, 4
    counts = [c for c in itertools.product(range(9), repeat=values) if sum(c) == n // 2]
    chances = stats.multinomial.pmf(counts, n // 2, np.full(values, 1 / values))
    every = np.full((len(counts),) * 2 + (2,), n // 2)
    found = []
    for side in range(1, 2 ** (values - 1)):
        near = np.array(counts) @ [side >> value & 1 for value in range(values)]
        both = np.stack(np.broadcast_arrays(near[:, None], near[None, :]), axis=-1)
        found.append(distances(both, every))
    chances = chances[:, None] * chances
    together, each = beyond(np.max(found, axis=0), chances), [beyond(f, chances) for f in found]
    assert np.all(together <= EXACT * len(found) * independence._split_tail(X, n, 1, 2))
    # A control: even the exact tail of any one split would not do for all.
    assert np.any(together > 3 * np.max(each, axis=0))


def test_the_threshold_holds_for_the_integer_noise_that_is_drawn():
    """The level is solved for a continuous radius; here all radii and points are added up."""
    n, pairs = 2000, 3
    noise = value_noise(Share(epsilon=Fraction(1)), Fraction(1, n), pairs)
    rate, top = 1 / noise.lattice.sensitivity, noise.lattice.top
    r = np.arange(40 * noise.lattice.sensitivity)
    mass = pairs * np.log(2 * r + 1) - rate * r
    mass = np.exp(mass - mass.max())
    mass /= mass.sum()
    x = np.linspace(0, 0.4, 20_001)
    tail = distance_tail(x, n)

    def alarms(level):
        drawn = np.arange(-r[-1], r[-1] + 1)
        left = level - drawn / top
        above = np.where(left < 0, 1, np.interp(left, x, tail))
        sums = np.concatenate([[0], np.cumsum(above)])
        of_radius = (sums[len(r) + r] - sums[len(r) - 1 - r]) / (2 * r + 1)
        return float(mass @ np.minimum(1, pairs * of_radius))

    level = dependence_level(noise, n, pairs)
    assert 0.049 < alarms(level) <= 0.05
    assert alarms(0.97 * level) > 0.05
