"""What one record really does to the rank tests: theorems 6-9 and what holds in their place."""

import itertools
import math
from fractions import Fraction
from functools import cache

import neighbours
import numpy as np
import pytest
import ranks_by_hand as hand

from dpmic_jax.causal import sensitivity as bounds
from dpmic_jax.causal.contingency import GTest
from dpmic_jax.causal.kendall import Kendall, SignedKendall, concordance
from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.causal.spearman import SignedSpearman, Spearman, by_distance, rank_products

FORMS = {
    Kendall: bounds.kendall,
    SignedKendall: bounds.signed_kendall,
    Spearman: bounds.spearman,
    SignedSpearman: bounds.signed_spearman,
}
INSERTED = {Kendall: bounds.kendall_inserted, Spearman: bounds.spearman_inserted}
SLIP = 1 + 1e-12  # of floats


def tau(counts):
    n = counts[0].sum()
    return np.abs(concordance(counts)) / (n * (n - 1) / 2)


def rho(counts):
    n = counts[0].sum()
    return 3 * np.abs(rank_products(counts)) / (n**3 - n)


# --- one block: the theorems are exact ---------------------------------------------------


@pytest.mark.parametrize("statistic", [tau, rho])
@pytest.mark.parametrize(("n", "values"), [(4, (4, 5)), (5, (5, 5))])
def test_no_replacement_in_one_block_exceeds_the_bound(n, values, statistic):
    """Every two neighbours of n records, tied or not, on so many values of x and y."""
    bound = {tau: bounds.tau, rho: bounds.rho}[statistic](n)
    moved, _ = neighbours.moves(statistic, *neighbours.completed(values, n - 1))
    assert 0.75 * bound < moved <= bound * SLIP
    if statistic is tau:
        assert moved == pytest.approx(float(bound), rel=1e-12)


@pytest.mark.parametrize(("statistic", "least"), [(tau, 3), (rho, 4)])
@pytest.mark.parametrize("n", [3, 4])
def test_insertion_in_one_block_attains_the_bound(n, least, statistic):
    bound = {tau: bounds.tau_inserted, rho: bounds.rho_inserted}[statistic](n)
    _, moved = neighbours.moves(statistic, *neighbours.completed((n + 1, n + 1), n))
    assert moved <= bound * SLIP
    if n >= least:
        assert moved == pytest.approx(float(bound), rel=1e-12)


@pytest.mark.parametrize("n", [4, 5])
def test_definition_7_with_ties_stays_within_the_bound(n):
    moved, _ = neighbours.moves(by_distance, *neighbours.completed((n, n), n - 1))
    assert moved <= bounds.rho(n) * SLIP


def test_kernels_of_rho_are_within_two():
    """What the proof needs of three records: 6 ordered products of signs, ties or not."""
    found, distances = set(), set()
    for x, y in itertools.product(itertools.product(range(3), repeat=3), repeat=2):
        triples = list(itertools.permutations(range(3)))
        found.add(sum(hand.sign(x[i], x[j]) * hand.sign(y[i], y[k]) for i, j, k in triples))
        apart = [
            [hand.sign(x[i], x[j]) - hand.sign(y[i], y[j]) for j in range(3)] for i in range(3)
        ]
        distances.add(sum(apart[i][j] * apart[i][k] for i, j, k in triples))
    assert (min(found), max(found)) == (-2, 2)
    assert (min(distances), max(distances)) == (0, 8)


@pytest.mark.parametrize("n", [5, 10, 100, 1000])
def test_extremes_attain_the_bounds_of_one_block_for_any_n(n):
    """n - 1 records in order, and one that goes from one end to the other."""
    line = np.arange(n)
    ordered = Coded(np.stack([line, line]), (n, n))
    turned = Coded(np.stack([line, np.append(line[1:], 0)]), (n, n))
    for test, of_one, weight in (
        (Kendall, bounds.tau, bounds.weight_tau),
        (Spearman, bounds.rho, bounds.weight_rho),
    ):
        moved = abs(test(ordered).scores([Query(0, 1)]) - test(turned).scores([Query(0, 1)]))[0]
        assert moved == pytest.approx(float(of_one(n)) * math.sqrt(weight(n)), rel=1e-9)
        assert moved == pytest.approx(float(FORMS[test](n, 1)), rel=1e-9)


# --- several blocks ----------------------------------------------------------------------


@pytest.mark.parametrize("test", FORMS)
@pytest.mark.parametrize(
    ("shape", "n"), [((1, 3, 3), 6), ((2, 2, 2), 7), ((2, 3, 3), 5), ((3, 2, 2), 6), ((4, 2, 2), 4)]
)
def test_no_neighbours_of_few_records_exceed_the_bound(test, shape, n):
    """In all blocks at once: records that stay in theirs, change it, empty it or open one."""
    before, after = neighbours.completed(shape, n - 1)
    replaced, inserted = neighbours.moves(test.of_counts, before, after)
    assert 0 < replaced <= FORMS[test](n, shape[0]) * SLIP
    if test in INSERTED:
        assert 0 < inserted <= INSERTED[test](n - 1, shape[0]) * SLIP


def with_one_added(m, weight, spans, signed):
    """(w, w theta) of a block of m records, before and after one more: at all extremes.

    theta = K / spans(m), |K| <= spans(m), and a record moves K by spans(m + 1) - spans(m) or less;
    whether some data have these numbers is not asked.
    """
    most, step = spans(m), spans(m + 1) - spans(m)
    held = {0, min(step, most), most}
    for k in held | {-one for one in held} if signed else held:
        for t in {-step, step, max(-step, -abs(k))}:
            theta, after = k / most if most else 0.0, (k + t) / spans(m + 1) if m else 0.0
            if not signed:
                theta, after = abs(theta), abs(after)
            yield weight(m), weight(m) * theta, weight(m + 1), weight(m + 1) * after


@pytest.mark.parametrize("test", FORMS)
@pytest.mark.parametrize("n", [5, 14, 41])
def test_extreme_states_of_blocks_of_all_sizes_stay_within_the_bound(test, n):
    """A record leaves one block for another, beside a third that is full of order or empty."""
    signed = test in (SignedKendall, SignedSpearman)
    if test in (Kendall, SignedKendall):
        weight, spans = hand.tau_weight, lambda m: m * (m - 1) // 2
    else:
        weight, spans = hand.rho_weight, lambda m: (m**3 - m) // 3

    @cache
    def weigh(m):
        return float(weight(m))

    def score(top, whole):
        return abs(top) / math.sqrt(whole) if whole > 0 else 0.0

    moved = 0.0
    for a in range(n):
        for b in range(n - a):
            rest = n - 1 - a - b
            for one in with_one_added(a, weigh, spans, signed):
                for other in with_one_added(b, weigh, spans, signed):
                    for order in (0, 1):
                        whole = one[0] + other[0] + weigh(rest)
                        top = one[1] + other[1] + order * weigh(rest)
                        left = score(top - one[1] + one[3], whole - one[0] + one[2])
                        right = score(top - other[1] + other[3], whole - other[0] + other[2])
                        moved = max(moved, abs(left - right))
    assert moved <= FORMS[test](n, 3) * SLIP
    if n == 41:
        assert moved > 0.6 * FORMS[test](n, 3)


def structured(rng, sets, n, shape):
    """Sets of n records: runs along a diagonal, lumps, noise, in blocks of any sizes."""
    blocks, rows, columns = shape
    block = np.where(
        rng.random((sets, n)) < rng.random((sets, 1)), 0, rng.integers(0, blocks, (sets, n))
    )
    x = rng.integers(0, rows, (sets, n))
    straight = np.minimum(x * columns // rows, columns - 1)
    kind = rng.integers(0, 4, (sets, blocks))[np.arange(sets)[:, None], block]
    y = np.select(
        [kind == 0, kind == 1, kind == 2],
        [straight, columns - 1 - straight, 0 * x],
        rng.integers(0, columns, (sets, n)),
    )
    counts = np.zeros((sets, *shape), np.int64)
    np.add.at(counts, (np.arange(sets)[:, None], block, x, y), 1)
    return counts


@pytest.mark.parametrize("test", FORMS)
@pytest.mark.parametrize(("shape", "n"), [((2, 4, 4), 30), ((3, 5, 5), 60), ((8, 3, 3), 40)])
def test_no_neighbours_found_by_search_exceed_the_bound(rng, test, shape, n):
    sets = structured(rng, 400, n - 1, shape)
    replaced, inserted = neighbours.moves(test.of_counts, *neighbours.with_one_more(sets))
    assert replaced <= FORMS[test](n, shape[0]) * SLIP
    if test in INSERTED:
        assert inserted <= INSERTED[test](n - 1, shape[0]) * SLIP


def two_blocks(m, start):
    """One block of m records in order and one where the start's are; then two ways to add one.

    The first one turns the first block's order; the second one agrees with all of the second.
    """
    line = np.arange(1, m + 1)
    x, y = np.append(line, start[0]), np.append(line, start[1])
    z = np.repeat([0, 1], [m, len(start[0])])
    first = np.stack([np.append(x, m + 1), np.append(y, 0), np.append(z, 0)])
    second = np.stack([np.append(x, m + 1), np.append(y, m + 1), np.append(z, 1)])
    return [Coded(codes, (m + 2, m + 2, 2)) for codes in (first, second)]


@pytest.mark.parametrize("test", FORMS)
@pytest.mark.parametrize("m", [50, 300])
def test_a_record_that_changes_its_block_comes_near_the_bound(test, m):
    """So 2/3 of the bound does not hold: a constant that is off would show."""
    lump = np.full((2, m), m // 2)  # theta = 0
    falling = np.stack([np.arange(1, m + 1), np.arange(m, 0, -1)])  # theta = -1
    away = falling if test in (SignedKendall, SignedSpearman) else lump
    moved = 0.0
    for start in (lump, away):
        scores = [test(data).scores([Query(0, 1, (2,))])[0] for data in two_blocks(m, start)]
        moved = max(moved, abs(scores[1] - scores[0]))
    n, least = 2 * m + 1, m
    bound = float(FORMS[test](n, 2))
    if test in (Kendall, Spearman):
        assert bound * (0.9 if m == 50 else 0.98) < moved <= bound
    else:
        # Both blocks cannot be at their ends and the score far from 0 at once.
        assert moved <= bound
    if test is Kendall:
        assert moved > bounds.published_kendall(n, 2, least)
    if test is Spearman:
        assert moved < bounds.published_spearman(n, 2, least)


@pytest.mark.parametrize("test", [SignedKendall, SignedSpearman])
def test_the_signed_forms_come_near_their_bound_in_three_blocks(test):
    """A third block keeps the score away from 0, where its absolute value would turn."""
    m, far = 40, 200
    line = np.arange(1, m + 1)
    base = {
        0: np.stack([line, line]),
        1: np.stack([line, line[::-1]]),
        2: np.stack([np.arange(far)] * 2),
    }
    scores = []
    for block, record in ((0, (m + 1, 0)), (1, (m + 1, m + 1))):
        columns = [np.concatenate([base[b][axis] for b in base]) for axis in (0, 1)]
        z = np.repeat([0, 1, 2], [m, m, far])
        codes = np.stack(
            [
                np.append(columns[0], record[0]),
                np.append(columns[1], record[1]),
                np.append(z, block),
            ]
        )
        scores.append(test(Coded(codes, (far, far, 3))).scores([Query(0, 1, (2,))])[0])
    sizes = (m + 1, m, far)
    weight = {SignedKendall: hand.tau_weight, SignedSpearman: hand.rho_weight}[test]
    limit = {SignedKendall: 13.5, SignedSpearman: 10}[test]
    root = math.sqrt(sum(map(weight, sizes)))
    assert 0.85 * limit / root < scores[1] - scores[0] <= limit / root


@pytest.mark.parametrize("n", [4, 20, 200])
def test_published_bound_of_tau_is_exceeded(n):
    assert bounds.tau(n) > bounds.published_tau(n)
    line = np.arange(n)
    ordered, turned = (
        concordance(np.eye(n, dtype=np.int64)[:, np.roll(line, shift)]) for shift in (0, 1)
    )
    moved = Fraction(abs(int(ordered)) - abs(int(turned)), n * (n - 1) // 2)
    assert moved > bounds.published_tau(n)
    assert moved == bounds.tau(n)


def test_published_bounds_of_rho_hold_but_are_five_times_too_large():
    for n in (5, 50, 500):
        assert 4 < bounds.published_rho(n) / bounds.rho(n) <= 6
        assert bounds.published_spearman(n, 2, 2) > 3 * bounds.spearman(n, 2)


def test_constants_tend_to_those_of_the_proofs():
    n = 10**8
    for bound, limit in (
        (bounds.kendall(n, 1), 6),
        (bounds.kendall(n, 2), 7.5),
        (bounds.signed_kendall(n, 2), 9),
        (bounds.kendall_inserted(n, 2), 5.25),
        (bounds.spearman(n, 1), 6),
        (bounds.spearman(n, 2), 8),
        (bounds.signed_spearman(n, 2), 10),
        (bounds.spearman_inserted(n, 2), 5.5),
    ):
        assert float(bound) * math.sqrt(n) == pytest.approx(limit, rel=1e-6)


@pytest.mark.parametrize("bound", [*FORMS.values(), *INSERTED.values()])
def test_bounds_grow_with_blocks_up_to_a_limit(bound):
    found = [bound(1000, k) for k in (1, 2, 8, 64, 512, 1000, 10**6)]
    assert found == sorted(found)
    assert found[-1] < 4  # small blocks have no more than their weights


@pytest.mark.parametrize(("n", "blocks"), [(7, 3), (9, 4), (5, 5), (4, 6)])
@pytest.mark.parametrize("weight", [bounds.weight_tau, bounds.weight_rho])
def test_least_weight_is_that_of_even_blocks(n, blocks, weight):
    sizes = itertools.product(range(n + 1), repeat=blocks)
    tried = min(sum(map(weight, size)) for size in sizes if sum(size) == n)
    assert bounds.least_weight(n, blocks, weight) == tried


@pytest.mark.parametrize("test", FORMS)
def test_sensitivity_is_that_of_the_query_with_the_most_blocks(test):
    data = Coded(np.zeros((4, 100), int), (2, 2, 3, 4))
    queries = [Query(0, 1), Query(0, 1, (2,)), Query(0, 1, (2, 3))]
    assert test(data).sensitivity(queries) == FORMS[test](100, 12)
    assert test(data).sensitivity(queries[:1]) == FORMS[test](100, 1)


@pytest.mark.parametrize(("shape", "n"), [((1, 2, 2), 8), ((2, 2, 2), 6), ((1, 3, 3), 6)])
def test_the_g_statistic_moves_by_no_more_than_its_bound(shape, n):
    def g(counts):
        found = []
        for blocks in counts:
            total = 0.0
            for table in blocks[blocks.sum(axis=(1, 2)) > 0]:
                expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
                here = table > 0
                total += 2 * (table[here] * np.log(table[here] / expected[here])).sum()
            found.append(total)
        return np.array(found)

    sets = structured(np.random.default_rng(3), 60, n - 1, shape)
    moved, _ = neighbours.moves(g, *neighbours.with_one_more(sets))
    assert moved <= float(bounds.g_statistic(n))


def test_the_g_statistic_is_within_its_bound_on_extremes():
    for n in (10, 1000):
        apart = Coded(np.stack([np.append(np.zeros(n - 1, int), 1)] * 2), (2, 2))
        (value,), _ = GTest(apart).statistics([Query(0, 1)])
        assert 0.4 * float(bounds.g_statistic(n)) < value <= float(bounds.g_statistic(n))
