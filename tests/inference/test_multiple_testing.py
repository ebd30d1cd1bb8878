"""Adjusted p-values, against closed testing and against the published step-up rule."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.inference import FalseDiscovery, FamilyWise

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=6).map(np.array)


@given(p_values)
def test_holm_is_closed_testing_by_bonferroni(p):
    """A hypothesis is rejected iff every set that it is in is rejected by Bonferroni."""
    wanted = [
        max(
            min(len(group) * min(p[list(group)]), 1.0)
            for size in range(1, len(p) + 1)
            for group in itertools.combinations(range(len(p)), size)
            if i in group
        )
        for i in range(len(p))
    ]
    np.testing.assert_allclose(FamilyWise().adjusted(p), wanted, rtol=1e-12)


@given(p_values)
def test_false_discovery_is_the_published_step_up_rule(p):
    """The k smallest are rejected at a level q if the k-th is at most q k / (m (1 + ... + 1/m))."""
    m, ordered = len(p), np.sort(p)
    harmonic = sum(1 / k for k in range(1, m + 1))
    wanted = [
        min(
            min(m * harmonic * ordered[k - 1] / k, 1.0)
            for k in range(1, m + 1)
            if ordered[k - 1] >= each
        )
        for each in p
    ]
    np.testing.assert_allclose(FalseDiscovery().adjusted(p), wanted, rtol=1e-12)


@pytest.mark.parametrize("control", [FamilyWise(), FalseDiscovery()])
def test_dependent_true_hypotheses_are_rejected_at_most_as_often_as_the_level(control):
    """All 20 true, and p-values as dependent as they come: equal, or in a chain."""
    rng, level = np.random.default_rng(3), 0.1
    shared = rng.random((2000, 1))
    spread = (shared + np.arange(20) / 20) % 1
    for p in (np.repeat(shared, 20, axis=1), spread, rng.random((2000, 20))):
        rejected = np.array([(control.adjusted(row) <= level).any() for row in p])
        # Three standard deviations of a share of 2000.
        assert rejected.mean() <= level + 3 * np.sqrt(level * (1 - level) / 2000)


def test_no_p_values_give_no_adjusted_p_values():
    assert FamilyWise().adjusted(np.ones(0)).size == 0
    assert FalseDiscovery().adjusted(np.ones(0)).size == 0
