"""Columns with public bounds -> codes of categories."""

import numpy as np
import pytest

from dpmic_jax.causal.binning import binned
from dpmic_jax.mic.binning import WithMissing


def test_numbers_are_cut_into_parts_of_equal_width():
    values = np.array([-3.0, 0.0, 2.4, 2.5, 9.9, 10.0, 99.0])
    data = binned([values], [(0.0, 10.0)], [4])
    assert data.codes.tolist() == [[0, 0, 0, 1, 3, 3, 3]]
    assert data.categories == (4,)


def test_categories_keep_their_codes_and_may_not_occur():
    values = np.array([0, 2, 2, 1, 4], np.uint8)
    data = binned([values, values], [(-0.5, 5.5), (-0.5, 4.5)], [6, 5])
    assert data.codes.tolist() == [values.tolist()] * 2
    assert data.categories == (6, 5)


def test_missing_values_have_a_category_of_their_own_before_the_others():
    values = np.array([-np.inf, 0.0, 1.0, 3.0])
    data = binned([values], [WithMissing(-0.5, 3.5)], [4])
    assert data.codes.tolist() == [[0, 1, 2, 4]]
    assert data.categories == (5,)


def test_one_bin_is_a_constant_column():
    assert binned([np.array([1.0, 5.0])], [(0.0, 10.0)], [1]).codes.tolist() == [[0, 0]]


def test_refuses_bins_for_other_columns():
    with pytest.raises(ValueError, match="each of 1 columns, got 1 and 2"):
        binned([np.zeros(3)], [(0.0, 1.0)], [2, 2])
    with pytest.raises(ValueError, match="1 <= bins"):
        binned([np.zeros(3)], [(0.0, 1.0)], [0])
