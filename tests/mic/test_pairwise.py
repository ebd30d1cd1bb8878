import itertools

import jax
import numpy as np
import oracles
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmic_jax import MICe, MICr, characteristic, mice, micr, pairwise
from dpmic_jax.mic.characteristic import tic
from dpmic_jax.mic.grids import definition, ladder
from dpmic_jax.mic.ties import RandomTies
from dpmic_jax.mic.xlogx import exact_gains, fast_gains

GAINS = {"fast": fast_gains, "exact": exact_gains}
UNIT_SQUARE = ((0, 1), (0, 1))


def both(x, y, statistic, gains, bounds=None):
    found = pairwise(
        np.stack([x, y], axis=1), statistic=statistic, bounds=bounds, gains=GAINS[gains]
    )
    return found.matrix[0, 1]


@pytest.mark.parametrize(
    ("gains", "rule"),
    [
        ("exact", "reshef"),
        pytest.param("fast", "definition", marks=pytest.mark.slow),
        pytest.param("exact", "definition", marks=pytest.mark.slow),
        pytest.param("fast", "reshef", marks=pytest.mark.slow),
    ],
)
def test_equals_enumeration_of_every_sub_partition(rng, gains, rule):
    statistics = {"master": definition} if rule == "definition" else {}
    for n in (4, 5, 6, 7, 8):
        x, y = rng.random(n), np.round(rng.random(n), 1)
        for B, c in ((4, 2), (6, 3), (8, 1)):
            mass = oracles.characteristic(
                x,
                y,
                B,
                c,
                lambda v, parts, _: oracles.mass_codes(v, parts),
                oracles.enumerate_merges,
                rule=rule,
            )
            width = oracles.characteristic(
                x,
                y,
                B,
                c,
                lambda v, parts, _: oracles.width_codes(v, parts, 0, 1),
                oracles.enumerate_merges,
                rule=rule,
            )
            found = both(x, y, MICe(B=B, c=c, **statistics), gains)
            assert found == pytest.approx(max(mass.values()), abs=1e-6)
            found = both(x, y, MICr(B=B, c=c, **statistics), gains, UNIT_SQUARE)
            assert found == pytest.approx(max(width.values()), abs=1e-6)


def test_never_above_mic_by_enumeration_of_every_grid(rng):
    for n in (4, 6, 8):
        x, y = rng.random(n), rng.random(n)
        for B in (4, 6, 9):
            mic = oracles.mic(x, y, B)
            assert mice(x, y, B=B, c=2) <= mic + 1e-6
            assert micr(x, y, bounds=UNIT_SQUARE, B=B, c=2) <= mic + 1e-6


def test_equals_mic_where_the_best_grid_is_an_equipartition():
    x = np.arange(8.0)
    y = np.repeat([3.0, 1.0], 4) + x / 100
    assert mice(x, y, B=4, c=4) == pytest.approx(oracles.mic(x, y, 4), abs=1e-6) == 1


SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(0, 7, n),
    "two values": lambda rng, n: rng.integers(0, 2, n),
    "constant": lambda rng, n: np.zeros(n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n),
    "almost constant": lambda rng, n: (np.arange(n) == n // 2).astype(float),
}


@pytest.mark.parametrize(
    ("n", "columns"),
    [
        (23, 15),
        (337, 15),
        pytest.param(1000, 15, marks=pytest.mark.slow),
        pytest.param(4381, 15, marks=pytest.mark.slow),
    ],
)
def test_within_2e_6_of_float64_on_every_kind_of_column(rng, n, columns):
    """105 pairs of mixed kinds for each n, both statistics, both kinds of gains."""
    kinds = [list(SHAPES.values())[i % len(SHAPES)] for i in range(columns)]
    X = np.stack([kind(rng, n).astype(float) for kind in kinds], axis=1)
    X[:, 6] = X[:, 0] ** 2 + 0.2 * X[:, 6]  # and some that depend on each other
    X[:, 12] = np.sin(4 * X[:, 0])
    B, c = max(4, n**0.5), 4
    bounds = [(-3.0, 3.0)] * columns
    reference = {}
    coded = {}

    def cached(kind, code):
        def lookup(column, parts, _):
            index = int(column[0])
            if (kind, index, parts) not in coded:
                coded[kind, index, parts] = code(X[:, index], parts)
            return coded[kind, index, parts]

        return lookup

    ways = {
        "MICe": cached("mass", oracles.mass_codes),
        "MICr": cached(
            "width",
            lambda v, parts: np.searchsorted(
                [
                    oracles.nearest(oracles.Fraction(-3) + oracles.Fraction(6 * p, parts), v.dtype)
                    for p in range(1, parts)
                ],
                v,
                side="right",
            ),
        ),
    }
    for i in range(columns):
        for j in range(i + 1, columns):
            for name, codes in ways.items():
                entries = oracles.characteristic(
                    np.array([i]), np.array([j]), B, c, codes, oracles.merge_by_recursion
                )
                reference[name, i, j] = max(entries.values())
    for gains in GAINS.values():
        for name, statistic, limits in (
            ("MICe", MICe(B=B, c=c), None),
            ("MICr", MICr(B=B, c=c), bounds),
        ):
            found = pairwise(X, statistic=statistic, bounds=limits, gains=gains).matrix
            for i in range(columns):
                for j in range(i + 1, columns):
                    assert found[i, j] == pytest.approx(reference[name, i, j], abs=2e-6)


@pytest.mark.parametrize("statistic", [MICe(B=20, c=3), MICr(B=20, c=3)])
@given(
    x=arrays(np.float64, 40, elements=st.floats(0, 1)),
    y=arrays(np.float64, 40, elements=st.integers(0, 3)),
)
def test_between_0_and_1_symmetric_and_blind_to_the_order_of_records(statistic, x, y):
    bounds = ((0, 1), (0, 3)) if isinstance(statistic, MICr) else None
    flipped = bounds and bounds[::-1]
    one = characteristic(x, y, statistic=statistic, bounds=bounds).mic
    assert 0 <= one <= 1
    assert characteristic(y, x, statistic=statistic, bounds=flipped).mic == one
    order = np.random.default_rng(0).permutation(40)
    assert characteristic(x[order], y[order], statistic=statistic, bounds=bounds).mic == one


@given(order=st.permutations(range(50)))
def test_mice_sees_only_ranks(order):
    x, y = np.array(order, float) / 10, np.cos(np.arange(50.0))
    assert mice(np.exp(x), y**3, B=16, c=4) == mice(x, y, B=16, c=4)


@pytest.mark.parametrize("n", [50, 500, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_column_depends_on_itself_completely(rng, n):
    x = rng.normal(size=n)
    # Parts of a power of two divide n unevenly: the entropy is just below its largest.
    assert mice(x, x) > 1 - 30 / n**1.5
    assert mice(x, -np.exp(x)) > 1 - 30 / n**1.5


def test_a_finer_master_never_lowers_micr(rng):
    x, y = rng.random((2, 300))
    y = (y + np.sin(6 * x)) / 2
    scores = [micr(x, y, bounds=((0, 1), (-1, 1)), B=25, c=c) for c in (1, 2, 4, 8)]
    assert all(fine >= coarse for coarse, fine in itertools.pairwise(scores))


def test_constant_columns_tell_nothing(rng):
    assert mice(np.ones(50), rng.random(50)) == 0
    assert micr(np.ones(50), rng.random(50), bounds=UNIT_SQUARE, B=20) == 0
    assert mice(np.ones(50), np.ones(50)) == 0


def test_random_ties_make_constant_columns_look_independent(key):
    statistic = MICe(ties=RandomTies(key))
    found = characteristic(np.zeros(1000), np.arange(1000.0), statistic=statistic).mic
    assert 0 < found < 0.15


def test_a_ladder_is_at_most_all_sizes(rng):
    X = rng.random((400, 6))
    X[:, 1] = X[:, 0] ** 2
    bounds = [(0, 1)] * 6
    every = pairwise(X, statistic=MICr(B=60), bounds=bounds, gains=exact_gains).matrix
    some = pairwise(
        X, statistic=MICr(B=60, sizes=ladder(1.25)), bounds=bounds, gains=exact_gains
    ).matrix
    assert np.all(some <= every)
    assert np.all(some >= 0.8 * every)


def test_frames_come_back_as_they_came(rng):
    data = {"a": rng.random(60), "b": rng.integers(0, 3, 60), "c": rng.random(60) > 0.5}
    data["d"] = data["a"] * 2
    for frame in (pd.DataFrame(data), pl.DataFrame(data)):
        found = pairwise(frame, statistic=MICe())
        tidy = found.to_frame()
        assert type(tidy) is type(frame)
        assert list(tidy.columns) == ["x", "y", "mic", "records"]
        assert len(tidy) == 6
        assert (tidy["x"][0], tidy["y"][0]) == ("a", "d")
        np.testing.assert_array_equal(found.matrix, found.matrix.T)
    tidy = pairwise(np.column_stack(list(data.values())), statistic=MICe()).to_frame()
    assert tidy.loc[0, ["x", "y"]].tolist() == ["x0", "x3"]


def test_cross_pairs_are_the_block_of_all_pairs(rng):
    X = rng.random((80, 5))
    X[:, 4] = X[:, 0] + 0.1 * X[:, 4]
    everything = pairwise(X, statistic=MICe(), measure=tic)
    across = pairwise(X[:, :2], Y=X[:, 2:], statistic=MICe(), measure=tic)
    np.testing.assert_array_equal(across.matrix, everything.matrix[:2, 2:])
    assert [row[:2] for row in across.ranked()[:1]] == [("x0", "y2")]
    against = pairwise(X[:, 4:], Y=X[:, :4], statistic=MICe())
    assert against.matrix.shape == (1, 4)
    bounded = pairwise(
        X[:, :2],
        Y=X[:, 2:4],
        statistic=MICr(B=16),
        bounds=[(0, 1)] * 2,
        y_bounds={"y0": (0, 1), "y1": (0, 1)},
    )
    assert bounded.measure == "mic"


def test_columns_keep_their_own_dtype():
    ids = 2**60 + np.arange(40)
    frame = pd.DataFrame({"id": ids, "same": np.arange(40.0), "near": 1e9 + np.arange(40) / 64})
    assert np.all(pairwise(frame, statistic=MICe()).matrix > 0.999)


def test_jax_arrays_are_taken(rng):
    x = rng.random(50).astype(np.float32)
    assert mice(jax.numpy.asarray(x), jax.numpy.asarray(x * 2)) == mice(x, x * 2)


GOOD = np.random.default_rng(0).random((20, 3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: mice([1, 2, np.nan, 4], [1, 2, 3, 4]), ValueError, "x has NaN or infinite"),
        (lambda: mice([1, 2, 3, 4], [1, np.inf, 3, 4]), ValueError, "y has NaN or infinite"),
        (lambda: mice([1, 2, 3, 4, 5], [1, 2, 3, 4]), ValueError, "x and y to have the same"),
        (lambda: mice([1, 2, 3], [1, 2, 3]), ValueError, "at least 4 records"),
        (lambda: mice(list("abcd"), [1, 2, 3, 4]), TypeError, "expected numbers in x"),
        (lambda: mice(np.ones(4, complex), np.ones(4)), TypeError, "got complex numbers"),
        (lambda: mice(np.ones((4, 2)), np.ones(4)), ValueError, "x to have one dimension"),
        (lambda: mice(GOOD[:, 0], GOOD[:, 1], B=3), ValueError, "B >= 4"),
        (lambda: mice(GOOD[:, 0], GOOD[:, 1], c=0), ValueError, "c > 0"),
        (lambda: pairwise(GOOD[:, :1], statistic=MICe()), ValueError, "at least 2 columns"),
        (lambda: pairwise(GOOD[:, 0], statistic=MICe()), ValueError, "records by columns"),
        (lambda: pairwise(GOOD[:3], statistic=MICe()), ValueError, "at least 4 records"),
        (lambda: pairwise(GOOD[:, :0], statistic=MICe()), ValueError, "columns, got none"),
        (lambda: pairwise(GOOD, statistic=MICr(B=9)), ValueError, "needs public bounds"),
        (
            lambda: pairwise(GOOD, statistic=MICr(B=9), bounds=[(0, 1)]),
            ValueError,
            "each of 3 columns, got 1",
        ),
        (
            lambda: pairwise(GOOD, statistic=MICr(B=9), bounds={"x0": (0, 1)}),
            ValueError,
            "no .low, high. for columns 'x1', 'x2'",
        ),
        (
            lambda: pairwise(GOOD, statistic=MICr(B=9), bounds=[(0, 1), (1, 1), (0, 1)]),
            ValueError,
            "low < high as bounds of 'x1'",
        ),
        (
            lambda: pairwise(GOOD, statistic=MICr(B=9), bounds=[(0, 1), (0, np.inf), (0, 1)]),
            ValueError,
            "finite numbers as bounds of 'x1'",
        ),
        (
            lambda: pairwise(GOOD, statistic=MICr(B=9), bounds=[(0, 1), 7, (0, 1)]),
            ValueError,
            r"to be \(low, high\)",
        ),
        (
            lambda: pairwise(GOOD, statistic=MICe(), bounds=[(0, 1)] * 3),
            ValueError,
            "takes no bounds",
        ),
        (
            lambda: pairwise(GOOD, Y=GOOD[:9], statistic=MICe()),
            ValueError,
            "X and Y to have the same",
        ),
        (
            lambda: pairwise(GOOD, statistic=MICe(), y_bounds=[(0, 1)]),
            ValueError,
            "y_bounds are the bounds of Y",
        ),
        (
            lambda: pairwise(pd.DataFrame(GOOD, columns=["a", "b", "b"]), statistic=MICe()),
            ValueError,
            "'b'",
        ),
    ],
)
def test_bad_input_says_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_error_texts_do_not_show_values():
    secret = np.array([123456.75, np.nan, 1.0, 2.0])
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is looked at
        mice(secret, secret)
    assert "123456" not in str(caught.value)
