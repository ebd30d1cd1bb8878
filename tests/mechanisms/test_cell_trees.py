"""Noisy trees of cells: exact loss on tiny tables, the law of the noise, and what is read off."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmic_jax import Budget, ReplaceOne, seeded_key
from dpmic_jax.dp.accounting.gaussian_dp import delta_for
from dpmic_jax.dp.noise import DiscreteGaussian
from dpmic_jax.mechanisms.cell_trees import GaussianTrees, LaplaceTrees, Tree, best_trees
from dpmic_jax.mechanisms.release import add_noise

KEY = seeded_key(4)


def cells_of(table, leaves):
    """How many records have each value, column by column."""
    return np.array([np.bincount(column, minlength=leaves) for column in np.array(table).T])


# --- what one person moves -----------------------------------------------------------------


@given(
    before=arrays(np.int64, (7, 3), elements=st.integers(0, 7)),
    others=arrays(np.int64, (2, 3), elements=st.integers(0, 7)),
    tree=st.sampled_from([Tree(8, 1), Tree(2, 3)]),
)
def test_a_persons_records_move_the_counts_by_no_more_than_is_claimed(before, others, tree):
    after = np.concatenate([others, before[2:]])
    moved = tree.counts(cells_of(after, 8)) - tree.counts(cells_of(before, 8))
    shared = {"tree": tree, "columns": 3, "relation": ReplaceOne(2)}
    assert np.abs(moved).sum() <= LaplaceTrees(epsilon=1.0, **shared).sensitivity
    assert (moved**2).sum() <= GaussianTrees(mu=1.0, **shared).moved_squared


@pytest.mark.parametrize("tree", [Tree(8, 1), Tree(2, 3)])
def test_there_are_records_that_move_the_counts_by_all_that_is_claimed(tree):
    before, after = (cells_of([[value] * 3] * 2 + [[4] * 3], 8) for value in (0, 7))
    moved = tree.counts(after) - tree.counts(before)
    shared = {"tree": tree, "columns": 3, "relation": ReplaceOne(2)}
    assert np.abs(moved).sum() == LaplaceTrees(epsilon=1.0, **shared).sensitivity
    assert (moved**2).sum() == GaussianTrees(mu=1.0, **shared).moved_squared


def test_the_counts_of_a_tree_are_those_of_the_values_below_each_node(rng):
    table = rng.integers(0, 27, (40, 2))
    found = Tree(3, 3).counts(cells_of(table, 27))
    for column, counts in zip(table.T, found, strict=True):
        expected = [
            sum(column // width == node) for width in (9, 3, 1) for node in range(27 // width)
        ]
        assert counts.tolist() == expected


# --- privacy -------------------------------------------------------------------------------


def worst_ratios(noise, n, room):
    """By (v, w): the largest P(v is released as o) / P(w is released as o), exactly."""
    outs = range(n + 2 * room + 1)
    pmf = {v: [noise.pmf(v + room, out) for out in outs] for v in range(n + 1)}
    return {
        (v, w): max(p / q for p, q in zip(pmf[v], pmf[w], strict=True))
        for v, w in itertools.product(range(n + 1), repeat=2)
    }


def exact_loss_of(trees, n):
    """The largest loss over all tables of n records, the first of which is replaced.

    Counts have noise of their own, so the worst case over all outputs is that of each count.
    """
    leaves, columns = trees.tree.leaves, trees.columns
    ratios = worst_ratios(trees.noise(n), n, trees.room(n))
    records = [*itertools.product(range(leaves), repeat=columns)]
    worst = Fraction(0)
    for rest in itertools.combinations_with_replacement(records, n - 1):
        for a, b in itertools.permutations(records, 2):
            v, w = (trees.tree.counts(cells_of([x, *rest], leaves)).ravel() for x in (a, b))
            loss = math.prod((ratios[int(i), int(j)] for i, j in zip(v, w, strict=True)))
            worst = max(worst, loss)
    return float(math.log(worst))


@pytest.mark.parametrize(("tree", "columns"), [(Tree(2, 1), 2), (Tree(2, 2), 1), (Tree(4, 1), 1)])
def test_exact_loss_of_laplace_trees_is_within_epsilon_and_nearly_all_of_it(tree, columns):
    trees = LaplaceTrees(tree=tree, columns=columns, epsilon=2.0)
    assert 1.99 < exact_loss_of(trees, 3) <= 2.0


def test_noise_for_two_thirds_of_the_moves_is_caught():
    """So is noise that forgets that a record is in two levels: it would be twice too small."""
    trees = LaplaceTrees(tree=Tree(2, 2), columns=1, epsilon=3.0)
    assert exact_loss_of(trees, 3) > 2.0
    assert exact_loss_of(trees, 3) <= 3.0


def exact_delta(sigma, moved, epsilon):
    """delta(epsilon) of discrete Gaussian noise on so many counts, each of which moves by one.

    The loss is (x + 1/2) / sigma^2 of their summed noise x, so its law is a convolution.
    """
    noise = DiscreteGaussian(sigma=sigma)
    reach = math.ceil(12 * float(sigma))
    one = np.array([float(noise.pmf(x)) for x in range(-reach, reach + 1)])
    law = one
    for _ in range(moved - 1):
        law = np.convolve(law, one)
    x = np.arange(len(law)) - len(law) // 2
    loss = (2 * x + moved) / (2 * float(sigma) ** 2)
    return float((law * np.maximum(0, -np.expm1(epsilon - loss))).sum())


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.5])
def test_delta_of_gaussian_trees_is_that_of_the_gaussian_mechanism(epsilon):
    trees = GaussianTrees(tree=Tree(2, 2), columns=2, mu=0.2)
    claimed, moved = delta_for(0.2, epsilon), trees.moved_squared
    assert moved == 8
    assert exact_delta(trees.sigma, moved, epsilon) <= claimed
    assert exact_delta(trees.sigma, moved, epsilon) > 0.8 * claimed
    assert exact_delta(trees.sigma * Fraction(2, 3), moved, epsilon) > claimed


def test_errors_of_all_draws_are_in_the_guarantee():
    one = GaussianTrees(tree=Tree(16, 1), columns=1, mu=0.1).guarantee
    many = GaussianTrees(tree=Tree(16, 2), columns=10, mu=0.1).guarantee
    assert one.mu == many.mu == 0.1
    assert many.delta > 100 * one.delta > 0


# --- noise ---------------------------------------------------------------------------------

MANY = {"tree": Tree(16, 3), "columns": 2}


@pytest.mark.parametrize(
    "trees", [LaplaceTrees(epsilon=3.0, **MANY), GaussianTrees(mu=0.5, **MANY)]
)
def test_noise_has_the_variance_that_is_predicted_and_every_column_its_own(trees):
    cells = np.full((2, 4096), 100)
    counts = trees.tree.counts(cells)
    noise = trees.release(cells, KEY) - counts
    assert noise.var() == pytest.approx(trees.variance, rel=0.1)
    assert noise.var() != pytest.approx(trees.variance * 1.5, rel=0.1)
    draws = noise.shape[1]
    assert abs(np.corrcoef(noise)[0, 1]) < 5 / math.sqrt(draws)
    # One key for two columns would be seen.
    twice = add_noise(trees.noise(409600), counts + trees.room(409600), np.zeros((2, 2), int), KEY)
    assert np.corrcoef(twice - counts)[0, 1] > 0.99


def test_a_column_has_the_same_noise_however_many_get_theirs_at_a_time(monkeypatch):
    trees = LaplaceTrees(tree=Tree(4, 1), columns=5, epsilon=3.0)
    cells = np.full((5, 4), 7)
    expected = trees.release(cells, KEY)
    monkeypatch.setattr("dpmic_jax.mechanisms.cell_trees._TOGETHER", 2)
    np.testing.assert_array_equal(trees.release(cells, KEY), expected)


# --- what is read off ----------------------------------------------------------------------


@given(
    counts=arrays(np.int64, (2, 12), elements=st.integers(-30, 60)),
    n=st.integers(1, 80),
)
def test_estimates_are_the_nearest_counts_that_add_up_and_are_not_negative(counts, n):
    found = LaplaceTrees(tree=Tree(3, 2), columns=2, epsilon=1.0).estimated(counts, n)
    for row, noisy in zip(found, counts, strict=True):
        tops = nearest(noisy[:3], n)
        expected = [
            nearest(noisy[3 + 3 * node : 6 + 3 * node], top) for node, top in enumerate(tops)
        ]
        np.testing.assert_allclose(row, np.concatenate(expected), atol=1e-6)


def nearest(noisy, total):
    """Taken down by what leaves the total, found by bisection."""
    low, high = noisy.min() - total - 1.0, noisy.max() + 1.0
    for _ in range(100):
        middle = (low + high) / 2
        above = np.maximum(noisy - middle, 0).sum() > total
        low, high = (middle, high) if above else (low, middle)
    return np.maximum(noisy - low, 0)


def test_exact_counts_are_estimated_as_they_are(rng):
    trees = LaplaceTrees(tree=Tree(4, 2), columns=3, epsilon=1.0)
    cells = cells_of(rng.integers(0, 16, (50, 3)), 16)
    np.testing.assert_allclose(trees.estimated(trees.tree.counts(cells), 50), cells, atol=1e-9)


@pytest.mark.parametrize("tree", [Tree(64, 1), Tree(16, 2), Tree(7, 3)])
def test_the_predicted_error_is_that_of_shares_below_a_value(tree, rng):
    """Of a column with many records in every cell, where no estimate is near 0."""
    columns, n, variance = 300, tree.leaves * 10_000, 100.0
    trees = LaplaceTrees(tree=tree, columns=columns, epsilon=1.0)
    exact = np.full((columns, tree.leaves), 10_000)
    noisy = tree.counts(exact) + rng.normal(0, math.sqrt(variance), (columns, sum(tree.sizes)))
    below = np.cumsum(trees.estimated(noisy.round().astype(int), n) - exact, axis=1)
    grain = trees.error(10**15) ** 2  # no noise is left
    predicted = (trees.error(n) ** 2 - grain) * n**2 * variance / trees.variance
    assert 0.75 < below.var() / predicted < 1.05


# --- the choice ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "kind"),
    [(Budget(1.0), LaplaceTrees), (Budget(1.0, 1e-6), GaussianTrees)],
)
def test_the_smallest_predicted_error_is_chosen_of_all_that_the_budget_allows(budget, kind):
    best = best_trees(columns=12, n=10_000, budget=budget)
    assert isinstance(best, kind)
    for tree in (Tree(16, 1), Tree(64, 1), Tree(16, 2), Tree(8, 3), Tree(16, 3)):
        other = LaplaceTrees(tree=tree, columns=12, epsilon=1.0)
        assert other.error(10_000) >= best.error(10_000)


def test_one_column_and_a_delta_too_small_to_help_get_laplace_noise():
    assert isinstance(best_trees(columns=1, n=1000, budget=Budget(1.0, 1e-12)), LaplaceTrees)


def test_more_columns_records_of_a_person_or_less_epsilon_make_larger_errors():
    base = {"columns": 10, "n": 10_000, "budget": Budget(1.0)}
    worse = [
        {"columns": 20},
        {"n": 5000},
        {"budget": Budget(0.5)},
        {"budget": Budget(1.0, relation=ReplaceOne(2))},
    ]
    best = best_trees(**base).error(10_000)
    for change in worse:
        assert best_trees(**base | change).error({**base, **change}["n"]) > 1.5 * best


def test_noise_that_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="fewer columns"):
        best_trees(columns=2**20, n=1000, budget=Budget(1e-6))
