"""Nominal columns: what is scored is that of the definition, and no order of categories matters."""

import itertools
import math

import jax
import numpy as np
import oracles
import pytest

from dpmic_jax.data.limits import CategoryLimits, NominalLimits
from dpmic_jax.mic import distance, streaming
from dpmic_jax.mic.batch import score_pairs
from dpmic_jax.mic.binning import by_range, codes
from dpmic_jax.mic.characteristic import VALUE_BITS, integer_mic, table_weights
from dpmic_jax.mic.statistics import MICr, MICrAndDistance
from dpmic_jax.mic.xlogx import UNIT, exact_gains

N = 500
# Categories, and whether missing values have a bin: few, many, and a long list.
KINDS = [(4, True), (3, False), (12, True), (40, True)]
BOUNDS = [(0.0, 1.0), *(NominalLimits(*kind) for kind in KINDS), (0.0, 1.0)]
PAIRS = np.array(list(itertools.combinations(range(len(BOUNDS)), 2)))
SMALL = MICr(B=12, c=2)


def columns(rng, n=N):
    """Numbers at both ends, and categories that go with the first, some of them rare."""
    x = rng.random(n)
    made = [x]
    for count, missing in KINDS:
        code = np.where(rng.random(n) < 0.6, (count * x**2).astype(int), rng.integers(0, count, n))
        order = rng.permutation(count)
        made.append(np.where(missing & (rng.random(n) < 0.1), -1, order[code]).astype(np.int8))
    return [*made, np.where(made[1] > 1, 1 - x, rng.random(n))]


def scored(values, bounds, pairs, micr=SMALL, devices=(), bins=None):
    most = max(limits.bins for limits in bounds if isinstance(limits, NominalLimits))
    statistic = MICrAndDistance(micr=micr, bins=bins or most, tables=micr is not None)
    cut = statistic.cut(values, bounds)
    gains = exact_gains(cut.n) if micr else None
    return cut.grids, np.concatenate(list(score_pairs(cut, pairs, gains, devices=devices)), axis=2)


def told(values, bounds, pairs):
    """MIC and D of every pair, as integers."""
    grids, found = scored(values, bounds, pairs)
    return integer_mic(grids, found, table_weights(bounds, pairs)), found[-1].max(axis=0)


def bins_of(values, limits):
    """A record's bin, or its sixteenth of the range."""
    if isinstance(limits, NominalLimits):
        return values.astype(int) + limits.missing, limits.bins
    return np.minimum((16 * values).astype(int), 15), 16


def counts_of(values, bounds, pair):
    (a, height), (b, width) = (bins_of(values[i], bounds[i]) for i in pair)
    table = np.zeros((height, width), int)
    np.add.at(table, (a, b), 1)
    return table


def test_bins_are_categories_after_one_for_missing_values():
    values = np.array([-1, 2, 0, 1, 2], np.int8)
    for size, expected in ((4, [0, 3, 1, 2, 3]), (6, [0, 3, 1, 2, 3]), (3, [0] * 5)):
        parts = codes(by_range([values], [NominalLimits(3, True)], [size]))
        assert parts[0, 0].tolist() == expected
    parts = codes(by_range([values[1:].astype(np.uint8)], [NominalLimits(3, False)], [3]))
    assert parts[0, 0].tolist() == [2, 0, 1, 2]


def test_the_distance_is_that_of_the_definition(rng):
    values = columns(rng, 60)
    _, found = scored(values, BOUNDS, PAIRS, None)
    unit = 2 * distance.steps_of(60) * 60
    for pair, value in zip(PAIRS, found[-1].max(axis=0).tolist(), strict=True):
        expected = 0
        for both in (pair, pair[::-1]):
            split, other = (BOUNDS[i] for i in both)
            nominal = isinstance(split, NominalLimits)
            across = oracles.nominal_distance if nominal else oracles.split_distance
            price = oracles.length_price(getattr(other, "bins", 0), 60)
            expected = max(expected, across(counts_of(values, BOUNDS, both)) - price)
        assert value == expected * unit


def test_micr_of_a_nominal_column_and_a_number_tries_all_merges_of_the_number(rng):
    """On grids with a row for every bin, or else two parts against all bins."""
    values, n = columns(rng), N
    for column, grids in ((1, [(5, 4, 2), (6, 4, 2)]), (2, None), (4, [(64, 4, 2)])):
        limits = BOUNDS[column]
        rows, _ = bins_of(values[column], limits)
        best = 0
        for height, master, parts in grids or oracles.plan(12, 2):
            if limits.bins > height:
                continue
            merged = np.minimum((master * values[0]).astype(int), master - 1)
            for k in range(2, parts + 1):
                bits = oracles.merge_by_enumeration(merged, rows, master, k)
                best = max(best, bits / math.log2(k))
        pair = np.array([[0, column]])
        assert told(values, BOUNDS, pair)[0] / 2**VALUE_BITS == pytest.approx(best, abs=1e-5)
        assert n == len(rows)


def test_micr_of_two_nominal_columns_is_the_information_of_their_table(rng):
    values = columns(rng)
    for x, y in itertools.combinations(range(1, 5), 2):
        table = counts_of(values, BOUNDS, (x, y))
        smaller = min(BOUNDS[x].categories, BOUNDS[y].categories)
        expected = oracles.information(table) / math.log2(smaller)
        found, _ = told(values, BOUNDS, np.array([[x, y]]))
        assert found / 2**VALUE_BITS == pytest.approx(expected, abs=5000 / UNIT)


def test_missing_values_that_tell_more_than_the_categories_count_as_one():
    both = np.repeat(np.arange(-1, 3, dtype=np.int8), 10)
    bounds = [NominalLimits(3, True)] * 2
    value, _ = told([both, both], bounds, np.array([[0, 1]]))
    assert value.tolist() == [2**VALUE_BITS]


def test_numpy_programs_batches_and_larger_grids_give_the_same_integers(rng):
    values = columns(rng)
    _, found = scored(values, BOUNDS, PAIRS)
    np.testing.assert_array_equal(
        found, scored(values, BOUNDS, PAIRS, devices=jax.devices()[:1])[1]
    )
    statistic = MICrAndDistance(micr=SMALL, bins=41, tables=True)

    def batches():
        for start in range(0, N, 128):
            yield statistic.cut([each[start : start + 128] for each in values], BOUNDS)

    streamed = streaming.score_batches(batches, PAIRS, exact_gains(N), n=N, rows=128, group=8)
    np.testing.assert_array_equal(found, np.concatenate(list(streamed), axis=2))
    # Pairs of short lists do not depend on how much room others need.
    short = [place for place, pair in enumerate(PAIRS) if 4 not in pair]
    others = [each for place, each in enumerate(BOUNDS) if place != 4]
    kept = [each for place, each in enumerate(values) if place != 4]
    pairs = np.where(PAIRS[short] > 4, PAIRS[short] - 1, PAIRS[short])
    np.testing.assert_array_equal(scored(kept, others, pairs, None)[1][-1], found[-1][:, short])


def test_permuted_categories_have_the_same_integers(rng):
    values = columns(rng)
    expected = told(values, BOUNDS, PAIRS)
    other = list(values)
    for column, (count, _) in enumerate(KINDS, start=1):
        order = rng.permutation(count).astype(np.int8)
        other[column] = np.where(values[column] < 0, -1, order[values[column]])
    for found, before in zip(told(other, BOUNDS, PAIRS), expected, strict=True):
        np.testing.assert_array_equal(found, before)
    # The control: as ordered categories they have others.
    ordered = [
        CategoryLimits(each.categories) if isinstance(each, NominalLimits) else each
        for each in BOUNDS
    ]
    cuts = [MICrAndDistance(micr=None).cut(each, ordered) for each in (values, other)]
    one, two = (np.concatenate(list(score_pairs(cut, PAIRS, None)), axis=2) for cut in cuts)
    assert (one != two).any(axis=(0, 1)).sum() > len(PAIRS) / 2


def test_splits_of_nominal_columns_are_all_that_are_counted():
    for parts in (16, 32, 64):
        sides, unions = distance.splits_of_kinds(parts)
        for bins in range(3, parts + 1):
            kind = int(distance.kind_of(np.array(bins)))
            distinct = {}
            for side, union in zip(sides[kind, :, :bins], unions[kind], strict=True):
                one = min(tuple(side), tuple(~side))
                if any(one) or not all(side):
                    distinct[one] = min(union, distinct.get(one, True))
            distinct.pop((False,) * bins, None)
            free = sum(not union for union in distinct.values())
            assert (free, len(distinct) - free) == distance.number_of_splits(bins)
