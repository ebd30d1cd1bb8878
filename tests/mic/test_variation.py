"""Dependence across a cut, against its definition in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmic_jax.mic.variation import variation


def defined(table):
    """The largest 4 p (1-p) TV(near, far), from conditional distributions, cut by cut."""
    n, best = int(table.sum()), Fraction(0)
    for counts in (table.tolist(), table.T.tolist()):
        for cut in range(1, len(counts)):
            near, far = (
                [sum(c) for c in zip(*part, strict=True)] for part in (counts[:cut], counts[cut:])
            )
            a, b = sum(near), sum(far)
            if a and b:
                gaps = (
                    abs(Fraction(u, a) - Fraction(v, b)) for u, v in zip(near, far, strict=True)
                )
                best = max(best, 4 * Fraction(a, n) * Fraction(b, n) * sum(gaps) / 2)
    return best


@given(
    arrays(np.int64, st.tuples(st.integers(2, 5), st.integers(2, 5)), elements=st.integers(0, 9))
)
def test_is_the_definition(table):
    table[0, 0] += 1
    found = variation(table[None])
    assert Fraction(int(found[0]), int(table.sum()) ** 2) == defined(table)


@given(arrays(np.int64, (4, 4), elements=st.integers(0, 9)))
def test_orientation_does_not_matter_and_merging_parts_never_adds(table):
    table[0, 0] += 1
    found = variation(table[None])
    assert variation(table.T[None]) == found
    merged = table.reshape(2, 2, 2, 2).sum(axis=(1, 3))
    assert variation(merged[None]) <= found


@pytest.mark.parametrize("n", [2, 10, 1000, 10**6, 3 * 10**9])
def test_two_equal_halves_in_opposite_corners_reach_the_top(n):
    """Also where n^2 is beyond 32 bits, and near the end of 64."""
    table = np.array([[[n // 2, 0], [0, n // 2]]])
    assert variation(table).tolist() == [n**2]


def test_independent_counts_have_none():
    table = np.outer([1, 2, 5], [3, 1, 4, 2])
    assert variation(table[None]).tolist() == [0]


def test_one_column_for_all_has_none():
    table = np.zeros((1, 3, 3), int)
    table[0, :, 1] = [4, 5, 6]
    assert variation(table).tolist() == [0]


def test_pairs_do_not_mix(rng):
    tables = rng.multinomial(50, np.full(9, 1 / 9), size=6).reshape(6, 3, 3)
    alone = [variation(table[None])[0] for table in tables]
    np.testing.assert_array_equal(variation(tables), alone)
