"""The keyed digest of records: the same for the same records in any order, for no others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax import secret_key, seeded_key
from dpmic_jax.runs.digest import records_digest

KEY = seeded_key(3)
CELLS = st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0**53, np.inf])
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6)


def digest(rows, key=KEY, batch=100):
    table = np.array(rows, float)
    parts = [table[start : start + batch] for start in range(0, len(table), batch)]
    return records_digest([tuple(part.T) for part in parts], key)


@given(ROWS, ROWS)
def test_two_tables_have_one_digest_iff_they_have_the_same_records(one, other):
    assert (digest(one) == digest(other)) == (sorted(one) == sorted(other))


@given(ROWS, st.randoms(use_true_random=False), st.integers(1, 6))
def test_neither_order_nor_batches_matter(rows, random, batch):
    shuffled = random.sample(rows, len(rows))
    assert digest(shuffled, batch=batch) == digest(rows)


def test_the_multiplicity_of_a_record_matters():
    """A sum that forgot it, such as by exclusive or, would call these the same."""
    a, b, c, d = (1.0, 2.0), (3.0, 4.0), (5.0, 6.0), (7.0, 8.0)
    assert digest([a, a, b, b]) != digest([c, c, d, d])
    assert digest([a, a, a, b]) != digest([a, b, b, b])


def test_the_column_of_a_value_matters():
    assert digest([(1.0, 2.0)]) != digest([(2.0, 1.0)])


def test_equal_numbers_of_different_types_have_different_digests():
    """By which cuts are rounded: 0.7 in 32 bits is above a cut at 0.7 there, and below it in 64."""
    rows = [(0.0, 1.0), (2.0, 3.0)]
    expected = digest(rows)
    for kind in (np.int8, np.float32):
        assert records_digest([tuple(np.array(rows, kind).T)], KEY) != expected
    assert digest([(-0.0, 1.0), (2.0, 3.0)]) == expected


@pytest.mark.parametrize("other", [seeded_key(4), secret_key()])
def test_digests_under_different_keys_differ(other):
    assert digest([(1.0, 2.0)], other) != digest([(1.0, 2.0)])
