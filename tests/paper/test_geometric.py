import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpmic_jax.mic.grids import Grid
from dpmic_jax.paper.geometric import noisy_grids, truncated_geometric
from dpmic_jax.paper.scoring import lanes_of

N = 40
DRAWS = 400_000


def definition(epsilon, n, count):
    """Probabilities of 0, 1, ..., n: Definition 4.5, line by line."""
    rho = np.exp(-epsilon)
    first = rho**count / (1 + rho)
    last = rho ** (n - count) / (1 + rho)
    inner = [(1 - rho) / (1 + rho) * rho ** abs(count - i) for i in range(1, n)]
    return np.array([first, *inner, last])


def p_value(draws, probabilities):
    """p-value of a chi-square test; cells with fewer than 20 expected draws are merged."""
    seen = np.bincount(draws, minlength=len(probabilities))
    expected = probabilities * len(draws)
    rare = expected < 20
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] == 0:
        seen, expected = seen[:-1], expected[:-1]
    return stats.chisquare(seen, expected * (seen.sum() / expected.sum())).pvalue


def drawn(count, epsilon, key, n=N):
    counts = jnp.full(DRAWS, count, jnp.int32)
    return np.asarray(truncated_geometric(counts, np.float32(epsilon), np.int32(n), key=key))


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.5])
def test_the_definition_has_all_the_probability(epsilon):
    """Otherwise the tests below would not compare with a distribution."""
    for count in (0, 1, N // 2, N):
        assert definition(epsilon, N, count).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.5])
@pytest.mark.parametrize("count", [0, 1, N // 2, N])
def test_draws_follow_the_definition_and_not_two_thirds_or_three_halves_of_it(key, epsilon, count):
    found = drawn(count, epsilon, key)
    assert p_value(found, definition(epsilon, N, count)) > 1e-4
    for factor in (2 / 3, 3 / 2):
        assert p_value(found, definition(factor * epsilon, N, count)) < 1e-9


def test_with_huge_epsilon_counts_stay_as_they_are(key):
    counts = jnp.arange(N + 1, dtype=jnp.int32)
    found = truncated_geometric(counts, np.float32(30), np.int32(N), key=key)
    np.testing.assert_array_equal(found, counts)


def test_with_tiny_epsilon_a_count_becomes_zero_or_n_with_equal_probability(key):
    found = drawn(3, 1e-5, key)
    # These two counts have all but 4e-4 of the probability; the standard error of a half is 8e-4.
    assert (found == 0).mean() == pytest.approx(0.5, abs=0.005)
    assert (found == N).mean() == pytest.approx(0.5, abs=0.005)


def test_noise_of_two_cells_is_independent(key):
    """All pairs of neighbouring draws, against the product of their distributions."""
    pairs = drawn(2, 0.5, key, n=5).reshape(-1, 2)
    single = definition(0.5, 5, 2)
    both = np.outer(single, single).ravel()
    assert p_value(pairs @ np.array([6, 1]), both) > 1e-4
    # A control that has to be rejected: the same noise in both cells.
    assert p_value(np.repeat(pairs[:, :1], 2, axis=1) @ np.array([6, 1]), both) < 1e-9


def test_each_cell_of_a_grid_gets_noise_of_half_epsilon_and_padding_gets_none(key):
    grids = [Grid(rows=3, master=5, parts=3), Grid(rows=4, master=6, parts=3)]
    lanes = lanes_of(grids, 4000)
    stride, cells = 4, 32
    counts = np.full((len(lanes.data), cells), 7, np.int32)
    found = np.asarray(
        noisy_grids(jnp.asarray(counts), lanes, np.int32(stride), key, np.float32(1.0), np.int32(N))
    )
    column, row = np.divmod(np.arange(cells), stride)
    inside = (column < lanes.master[:, None]) & (row < lanes.rows[:, None])
    assert not found[~inside].any()
    # 8000 lanes of 15 cells, 8000 of 24.
    assert inside.sum() == 8000 * (15 + 24)
    assert p_value(found[inside], definition(0.5, N, 7)) > 1e-4
    assert p_value(found[inside], definition(1.0, N, 7)) < 1e-9


def test_noise_depends_on_the_key_alone(key):
    lanes = lanes_of([Grid(4, 8, 3)], 50)
    counts = jnp.zeros((100, 32), jnp.int32)

    def noisy(key):
        level = np.float32(0.2), np.int32(N)
        return np.asarray(noisy_grids(counts, lanes, np.int32(4), key, *level))

    np.testing.assert_array_equal(noisy(key), noisy(key))
    other = noisy(jax.random.fold_in(key, 1))
    # Two independent ones share about a third: 1/(1+rho) = 0.52 of all are 0, twice by chance.
    assert (noisy(key) == other).mean() < 0.5
