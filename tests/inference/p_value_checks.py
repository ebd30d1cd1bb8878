"""Checks that p-values are valid or uniform, and brute force over every order of the records."""

import itertools

import numpy as np
import oracles
from scipy import stats


def too_small(p_values, sharing=0.0):
    """Whether p-values are clearly smaller than uniform ones (one-sided Kolmogorov, 1e-4).

    Args:
      sharing: by how much draws that are shared raise the variance of the share of p <= a.
    """
    p = np.sort(p_values)
    # sup_a F(a) - a; P(sqrt(m) sup >= z) <= exp(-2 z^2) for uniform p-values.
    excess = (np.arange(1, len(p) + 1) / len(p) - p).max()
    return excess > np.sqrt(-np.log(1e-4) / 2 / len(p) * (1 + sharing))


def not_uniform(p_values, sharing=0.0, bins=10):
    """Whether p-values that are multiples of 1/(draws + 1) are clearly not uniform."""
    counts = np.bincount(np.minimum((p_values * bins - 1e-9).astype(int), bins - 1), minlength=bins)
    expected = len(p_values) / bins
    statistic = ((counts - expected) ** 2 / expected).sum() / (1 + sharing)
    return stats.chi2.sf(statistic, bins - 1) < 1e-4


def all_orders(n):
    return np.array(list(itertools.permutations(range(n))))


def entries(x, y, statistic, bounds=((0, 1), (0, 1))):
    """The characteristic matrix from the definition: every merge of every master is tried."""
    if type(statistic).__name__ == "MICe":
        codes = lambda v, parts, _: oracles.mass_codes(v, parts)  # noqa: E731
    else:
        codes = lambda v, parts, axis: oracles.width_codes(v, parts, *bounds[axis])  # noqa: E731
    found = oracles.characteristic(x, y, statistic.B, statistic.c, codes, oracles.enumerate_merges)
    return np.array(list(found.values()))


def mic(x, y, statistic):
    return entries(x, y, statistic).max()


def tic(x, y, statistic):
    return entries(x, y, statistic).sum()
