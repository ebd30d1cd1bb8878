"""Columns with public bounds -> codes of categories."""

import numpy as np
import pytest

from dpmic_jax import Categories, MissingBin, Number, seeded_key
from dpmic_jax.causal.binning import binned
from dpmic_jax.causal.contingency import GTest
from dpmic_jax.causal.em_pc import EMPC
from dpmic_jax.causal.kendall import Kendall
from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.causal.reading import TableCodes, read_coded
from dpmic_jax.causal.search import discover
from dpmic_jax.data.limits import CategoryLimits, NominalLimits, WithMissing
from dpmic_jax.data.source import open_source


def test_numbers_are_cut_into_bins_of_equal_width():
    values = np.array([-3.0, 0.0, 2.4, 2.5, 9.9, 10.0, 99.0])
    data = binned([values], [(0.0, 10.0)], [4])
    assert data.codes.tolist() == [[0, 0, 0, 1, 3, 3, 3]]
    assert data.categories == (4,)


def test_categories_keep_their_codes_even_if_some_do_not_occur():
    values = np.array([0, 2, 2, 1, 4], np.uint8)
    data = binned([values, values], [(-0.5, 5.5), (-0.5, 4.5)], [6, 5])
    assert data.codes.tolist() == [values.tolist()] * 2
    assert data.categories == (6, 5)


def test_missing_values_have_a_category_of_their_own_before_the_others():
    values = np.array([-np.inf, 0.0, 1.0, 3.0])
    data = binned([values], [WithMissing(-0.5, 3.5)], [4])
    assert data.codes.tolist() == [[0, 1, 2, 4]]
    assert data.categories == (5,)


def test_a_code_of_no_category_joins_the_first():
    values = np.array([-1, 0, 2, 1], np.int8)
    data = binned([values], [CategoryLimits(3)], [3])
    assert data.codes.tolist() == [[0, 0, 2, 1]]
    assert data.categories == (3,)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint64])
def test_codes_out_of_range_are_clipped_without_an_error(dtype):
    """An error would tell that there are some."""
    codes = np.array([[0, 1, 99, np.iinfo(dtype).max], [0, 1, 2, 3]], dtype)
    data = Coded(codes, (3, 300))
    assert data.codes.tolist() == [[0, 1, 2, 2], [0, 1, 2, 3]]
    if np.dtype(dtype).kind == "i":
        assert Coded(-codes, (3, 300)).codes.tolist() == [[0] * 4] * 2
    with pytest.raises(ValueError, match="at least one category in column 1, got 0"):
        Coded(codes, (3, 0))


def test_public_values_of_a_table_are_known_before_a_cell_is_read(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b,c\n" + "".join(f"{i},{'xyz'[i % 3]},{i}\n" for i in range(8)) + "?,?,?\n")
    schema = {
        "a": Number(0, 8),
        "b": Categories(("x", "y")),
        "c": Number(0, 8, missing=MissingBin()),
    }
    table = TableCodes(open_source(path, schema), 4)
    assert (table.names, table.n, table.categories) == (("a", "b", "c"), 9, (4, 2, 5))
    assert table.schema == open_source(path, schema).schema
    data = table.read()
    assert data.codes.tolist() == [
        [0, 0, 1, 1, 2, 2, 3, 3, 2],
        [0, 1, 0, 0, 1, 0, 0, 1, 0],
        [1, 1, 2, 2, 3, 3, 4, 4, 0],
    ]
    again = read_coded(path, bounds=schema, bins=4)
    assert again.names == table.names
    np.testing.assert_array_equal(again.data.codes, data.codes)
    for bins in (1, True, 2.0):
        with pytest.raises(ValueError, match="expected bins"):
            TableCodes(table.source, bins)


def test_one_bin_is_a_constant_column():
    assert binned([np.array([1.0, 5.0])], [(0.0, 10.0)], [1]).codes.tolist() == [[0, 0]]


def test_refuses_a_wrong_number_of_bins():
    with pytest.raises(ValueError, match="each of 1 columns, got 1 and 2"):
        binned([np.zeros(3)], [(0.0, 1.0)], [2, 2])
    with pytest.raises(ValueError, match="1 <= bins"):
        binned([np.zeros(3)], [(0.0, 1.0)], [0])


def test_nominal_columns_have_their_own_bins_however_many_are_asked_for():
    values = np.array([-1, 0, 2, 1], np.int8)
    data = binned([values], [NominalLimits(3, True)], [2])
    assert (data.codes.tolist(), data.categories) == ([[0, 1, 3, 2]], (4,))
    table = open_source({"x": ["b", "?", "c", "a"], "y": [1.0, 2.0, 3.0, 4.0]}, NOMINAL)
    coded = TableCodes(table, 2)
    assert (coded.nominal, coded.categories) == (("x",), (4, 2))
    assert coded.read().codes[0].tolist() == [2, 0, 3, 1]


NOMINAL = {"x": Categories(("a", "b", "c")), "y": Number(0, 4)}


def test_rank_tests_refuse_nominal_columns_before_anything_is_charged(tmp_path):
    table = {"x": ["b", "?", "c"] * 20, "y": np.arange(60.0)}
    data = TableCodes(open_source(table, NOMINAL), 2)
    settings = {"epsilon": 1.0, "delta": 1e-6, "max_order": 1, "threshold": 0.1}
    with pytest.raises(ValueError, match=r"no order: 'x'; declare ordered = true"):
        discover(data, Kendall, EMPC(**settings), key=seeded_key(1), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    # Contingency tables have no order.
    permuted = {**NOMINAL, "x": Categories(("c", "a", "b"))}
    scores = [
        GTest(TableCodes(open_source(table, each), 2).read()).scores([Query(0, 1, ())])
        for each in (NOMINAL, permuted)
    ]
    assert scores[0] == pytest.approx(scores[1])
