"""Several columns with one, pairs within groups, and lags, each against its definition."""

import itertools
import math

import numpy as np
import oracles
import pandas as pd
import polars as pl
import pytest
from scipy.stats import combine_pvalues

from dpmic_jax import MICe, TableTest, mice, pairwise
from dpmic_jax.frames import joint_mic, pairwise_given, pairwise_lagged

B, C = 12, 2
STATISTIC = MICe(B=B, c=C)


def told(cells, y, nominal):
    """S of a product, by trying every merge of the master partition of y."""
    cells = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
    k, side = cells.max() + 1, math.isqrt(B)
    if k == 1:
        return 0.0
    if nominal:
        bits = oracles.information(oracles.table_of(cells, y))
        return bits / math.log2(min(k, max(y) + 1))
    master = max(2, C * side)
    codes = oracles.mass_codes(y, master)
    return max(
        oracles.merge_by_enumeration(codes, cells, master, parts) / math.log2(min(parts, k))
        for parts in range(2, max(2, min(side, B // k)) + 1)
    )


def levels(values, nominal):
    """Every way to cut a column, from whole to fine, without repetitions."""
    every = [np.zeros(len(values), int)]
    ways = [values] if nominal else [oracles.mass_codes(values, p) for p in range(2, B // 2 + 1)]
    for codes in ways:
        if any((codes != known).any() for known in every[-1:]):
            every.append(np.asarray(codes))
    return every


def products(ways):
    """The cells of every product that has room."""
    for chosen in itertools.product(*ways):
        cells = np.stack(chosen, axis=1)
        if 2 * len(np.unique(cells, axis=0)) <= B:
            yield cells


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    a, b = rng.random((2, 40))
    return pd.DataFrame(
        {
            "a": a,
            "b": b.round(1),
            "ward": rng.choice(["n", "s", "w"], 40),
            "y": (a > 0.5) * (b > 0.5) + 0.3 * rng.random(40),
            "group": np.where(a + b < 1, "low", np.where(b < 0.6, "mid", "top")),
        }
    )


@pytest.mark.parametrize(
    ("using", "target"), [(["a", "b"], "y"), (["ward", "b"], "y"), (["a", "y"], "group")]
)
def test_joint_mic_is_the_largest_value_of_all_products(table, using, target):
    found = joint_mic(table, target, using=using, B=B, c=C)
    nominal = [table[name].dtype.kind != "f" for name in (*using, target)]
    codes = [
        np.unique(table[name], return_inverse=True)[1] if coded else table[name].to_numpy()
        for name, coded in zip((*using, target), nominal, strict=True)
    ]
    ways = [levels(*each) for each in zip(codes[:-1], nominal, strict=False)]
    expected = max(told(cells, codes[-1], nominal[-1]) for cells in products(ways))
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert list(found.parts) == using


def test_joint_mic_finds_what_no_pair_shows():
    rng = np.random.default_rng(0)
    a, b, y = rng.random((3, 400))
    frame = pl.DataFrame({"a": a, "b": b, "y": np.where((a > 0.5) ^ (b > 0.5), 1 + y, y)})
    found = joint_mic(frame, "y", using=["a", "b"])
    assert found.value > 0.9
    assert max(mice(a, frame["y"]), mice(b, frame["y"])) < 0.3
    assert found.parts["a"] >= 2
    assert found.parts["b"] >= 2


def test_values_given_groups_are_means_over_groups_and_p_values_are_fishers(table):
    table = table.assign(y=table["y"].where(table["a"] > 0.1))
    found = pairwise_given(
        table[["a", "y", "group"]], "group", statistic=STATISTIC, p_values=TableTest(draws=99)
    )
    groups = [rows for _, rows in table.groupby("group") if len(rows) >= 4]
    assert len(groups) == 2  # a group of two records has no value
    whole = [rows[["a", "y"]].dropna() for rows in groups]
    sizes = [len(rows) for rows in whole]
    values = [oracles.mice(rows["a"].to_numpy(), rows["y"].to_numpy(), B, C) for rows in whole]
    assert found.x_names == ("a", "y")
    assert found.records[0, 1] == sum(sizes)
    assert found.matrix[0, 1] == pytest.approx(np.average(values, weights=sizes), abs=2e-6)
    rng, each = np.random.default_rng(0), []
    for rows in groups:
        one = pairwise(
            rows[["a", "y", "group"]], statistic=STATISTIC, p_values=TableTest(draws=99), rng=rng
        )
        each.append(one.p_values[0, 1])
    assert found.p_values[0, 1] == pytest.approx(combine_pvalues(each, method="fisher").pvalue)


def test_columns_that_depend_by_their_groups_alone_are_independent_given_these():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 3, 120)
    frame = {"x": group + rng.random(120), "y": group + rng.random(120), "group": group}
    test = TableTest(draws=99)
    assert pairwise(frame, statistic=STATISTIC, p_values=test).p_values[0, 1] == 0.01
    assert pairwise_given(frame, "group", statistic=STATISTIC, p_values=test).p_values[0, 1] > 0.05


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, dict])
def test_lags_are_the_mice_of_shifted_columns(library):
    rng = np.random.default_rng(2)
    x, noise = rng.random((2, 60))
    y = np.roll(x, 2) + 0.1 * noise
    found = pairwise_lagged(library({"x": x, "y": y}), "y", lags=[-1, 0, 2], statistic=STATISTIC)
    assert found.x_names == ("x", "y")
    assert found.y_names == ("y, lag -1", "y, lag 0", "y, lag 2")
    for column, values in enumerate((x, y)):
        for place, lag in enumerate((-1, 0, 2)):
            expected = oracles.mice(values[1:58], y[1 + lag : 58 + lag], B, C)
            assert found.matrix[column, place] == pytest.approx(expected, abs=2e-6)
    assert found.matrix[0].argmax() == 2


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda table: joint_mic(table, "y", using=["z"]), "one of the columns 'a'"),
        (lambda table: joint_mic(table, "y", using=["y"]), "other columns than 'y'"),
        (lambda table: pairwise_given(table, "z"), "given to be one of"),
        (lambda table: pairwise_lagged(table, "y", lags=[]), "distinct whole numbers"),
        (lambda table: pairwise_lagged(table, "y", lags=[99]), "within the 40 records"),
    ],
)
def test_what_cannot_be_done_is_refused(table, call, text):
    with pytest.raises(ValueError, match=text):
        call(table)
