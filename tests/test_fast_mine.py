"""Against fast-mine, the living implementation of minepy's numbers."""

import fast_mine
import numpy as np
import oracles
import pytest

from dpmic_jax import MICe, mice, pairwise
from dpmic_jax.mic.optimise import at_most, best_information
from dpmic_jax.mic.xlogx import UNIT, exact_gains


def score(x, y, alpha=0.6, c=15):
    settings = fast_mine.MineParameter(alpha=alpha, c=c, est=fast_mine.EST_MIC_E)
    return fast_mine.mine_compute_score(fast_mine.MineProblem(x, y, len(x)), settings)


def mic(x, y):
    return float(fast_mine.mine_mic(score(x, y)))


@pytest.fixture(scope="module")
def table():
    """30 untied columns: independent ones, noisy functions, and noiseless ones."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(1000, 30))
    for target, source, noise in ((1, 0, 0.5), (3, 2, 0.2), (5, 4, 1.0), (7, 6, 0.1)):
        X[:, target] = X[:, source] + noise * X[:, target]
    X[:, 9] = np.sin(5 * X[:, 8]) + 0.1 * X[:, 9]
    X[:, 11] = X[:, 10] ** 2
    return X


def clumps(rows):
    """Ends of the runs of records in one row: minepy never cuts inside one."""
    return np.append(np.flatnonzero(np.diff(rows)) + 1, len(rows))


def superclumps(ends, parts):
    """Cut the runs into parts of equal mass, by the rule for tied groups."""
    sizes = np.diff(np.concatenate([[0], ends]))
    labels = np.repeat(np.arange(len(ends)), sizes)
    return labels if len(ends) <= parts else oracles.mass_codes(labels, parts)


def entry(x, y, rows, parts, master):
    """One entry by this package's OptimizeAxis, on minepy's master partition."""
    order = np.argsort(x)
    fixed = oracles.mass_codes(y, rows)[order]
    columns = superclumps(clumps(fixed), master)
    counts = np.zeros((columns.max() + 2, rows + 1, 1), np.int32)
    np.add.at(counts, (columns + 1, fixed, 0), 1)
    np.add.at(counts, (columns + 1, rows, 0), 1)  # of all rows
    edges = np.cumsum(counts, axis=0, dtype=np.int32)
    import jax.numpy as jnp

    gains = exact_gains(len(x))
    found = at_most(np.asarray(best_information(jnp.asarray(edges), parts, gains)), gains)
    return float(found[-1, 0]) / UNIT / np.log2(parts)


def test_equal_entry_by_entry_on_its_own_master_partition(table):
    """The only difference on untied data is the partition that OptimizeAxis starts from."""
    B, c = int(1000**0.6), 15
    for i, j in ((0, 1), (8, 9), (10, 11), (20, 21)):
        x, y = table[:, i].copy(), table[:, j].copy()
        theirs = score(x, y).M
        for rows, parts in ((31, 2), (20, 3), (12, 5), (9, 7)):
            ours = entry(x, y, rows, parts, c * (B // rows))
            # Either orientation may come first in their matrix.
            assert (
                min(
                    abs(ours - theirs[rows - 2][parts - 2]), abs(ours - theirs[parts - 2][rows - 2])
                )
                < 1e-5
            )


@pytest.mark.slow
def test_untied_columns_agree_as_far_as_the_master_partitions_do(table):
    """On whole tables: runs of records that minepy keeps together move its master's edges."""
    ours = pairwise(table, statistic=MICe()).matrix
    gaps = np.array(
        [
            ours[i, j] - mic(table[:, i].copy(), table[:, j].copy())
            for i in range(30)
            for j in range(i)
        ]
    )
    assert np.median(np.abs(gaps)) < 1e-4
    assert np.mean(np.abs(gaps) < 1e-4) > 0.8
    assert np.abs(gaps).max() < 0.03


@pytest.mark.slow
def test_ties_move_mic_by_less_than_0_04(rng):
    for levels in (3, 10, 40):
        x = rng.integers(0, levels, 337).astype(float)
        y = np.round(x / 3 + rng.normal(size=337), 1)
        z = rng.integers(0, 8, 337).astype(float)
        for a, b in ((x, y), (x, z), (y, z)):
            assert abs(mice(a, b) - mic(a, b)) < 0.04
