"""What one record can do: the bounds against every table, and each step of their proofs."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpmic_jax import MICe, MICr
from dpmic_jax.mechanisms import sensitivity as bounds
from dpmic_jax.mic import binning
from dpmic_jax.mic.characteristic import WEIGHT_BITS, weight
from dpmic_jax.mic.grids import power
from dpmic_jax.mic.ties import RandomTies, grouped_ties
from dpmic_jax.mic.xlogx import UNIT, exact_gains

LOG3 = math.log2(3)


def phi(a):
    a = np.asarray(a, float)
    return a * np.log2(np.maximum(a, 1))


def delta(a):
    return phi(a) - phi(np.asarray(a) - 1)


def bits(tables):
    """n I of a stack of tables of counts."""
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    n = rows.sum(axis=-1)
    return phi(n) + phi(tables).sum(axis=(-1, -2)) - phi(rows).sum(axis=-1) - phi(columns).sum(-1)


def all_tables(rows, columns, n):
    """Every table of n records: stars and bars."""
    cells = rows * columns
    bars = np.array(list(itertools.combinations(range(n + cells - 1), cells - 1)), np.int8)
    ends = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, n + cells - 1)))
    return (np.diff(ends.astype(int), axis=1) - 1).reshape(-1, rows, columns)


def moved(tables, source, target):
    """Those tables that have a record in `source`, before and after it moves to `target`."""
    before = tables[tables[:, *source] > 0]
    after = before.copy()
    after[:, *source] -= 1
    after[:, *target] += 1
    return before, after


# --- information on a fixed grid


@pytest.mark.parametrize("n", range(4, 9))
@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (2, 4), (3, 3), (3, 4)])
def test_every_move_on_every_table_stays_within_the_entry_bound_and_one_attains_it(shape, n):
    tables = all_tables(*shape, n)
    # Rows and columns may be renamed, so one source and three targets stand for all moves.
    largest = max(
        np.abs(bits(after) - bits(before)).max()
        for target in [(0, 1), (1, 0), (1, 1)]
        for before, after in [moved(tables, (0, 0), target)]
    )
    bound = bounds.entry_bound(*shape, n) * n * Fraction(math.log2(min(shape)))
    assert largest == pytest.approx(float(bound), rel=1e-12)


# --- MICr: three parts against two, from the definition


@pytest.mark.parametrize(("columns", "n"), [(3, 6), (3, 9), (4, 7)])
def test_three_parts_gain_at_most_delta_over_what_three_or_two_had(columns, n):
    """All tables, with merges of neighbouring rows only."""
    tables, most = all_tables(3, columns, n), 0
    # Rows may be numbered from the last, so the first and the middle one stand for all sources.
    for source, target in itertools.product(range(2), range(6)):
        before, after = moved(tables, (source, 0), divmod(target, 2))
        merged = [np.add.reduceat(before, cut, axis=1) for cut in ([0, 1], [0, 2])]
        had = np.maximum.reduce([bits(before) / LOG3, *map(bits, merged)])
        most = max(most, (bits(after) / LOG3 - had).max())
    assert 0.7 * delta(n) < most <= delta(n)


def missed_by(n):
    """Lemma 3 by enumeration: the least of delta(n) - min(E, M) wherever A > delta(n)."""
    limit, d = delta(n), delta(np.arange(1, n + 2))
    d = np.insert(d, 0, 0)
    least = math.inf
    for a in range(1, n + 1):
        if d[(n + a) // 2] + d[(n + a + 1) // 2] - d[a] <= LOG3 * limit - 1e-9:
            break  # falls in a
        for rho in range(n):
            r, c = np.mgrid[a : n + 1 - rho, a : n + 1]
            left = d[r] + d[c] - d[a] - d[rho + 1]
            r, c = (x[(left > LOG3 * limit - 1e-9) & (r + c - a <= n)] for x in (r, c))
            if not len(r):
                break  # falls in rho
            N = n - r + 1
            edge = d[r] + d[c] - d[a] - d[N] + phi(N) - phi(rho + 1) - phi(N - rho - 1)
            edge = edge / LOG3 - (1 - 1 / LOG3) * _two_by_two(n, r, c, a)
            least = min(least, (limit - edge).min())
            for b in range(a, a + rho + 1):
                R, C = (x[(b <= c) & (c - b <= n - r - rho)] for x in (r + rho, c))
                middle = d[C] - d[b] + phi(R) - phi(rho + 1) - phi(R - rho - 1)
                middle = middle / LOG3 - (1 - 1 / LOG3) * _two_by_two(n, R, C, b)
                least = min(least, (limit - middle).min(initial=math.inf))
    return least


def _two_by_two(n, r, c, a):
    """n I of the table with row r, column c and cell a of n records."""
    return bits(np.moveaxis(np.array([[a + 0 * r, r - a], [c - a, n - r - c + a]]), 2, 0))


def test_three_parts_cannot_be_the_worst_with_eight_records_or_fewer():
    assert all(missed_by(n) == math.inf for n in range(2, 9))
    assert missed_by(9) < math.inf


def test_lemma_3_for_all_tables_up_to_400_records():
    assert all(missed_by(n) >= math.sqrt(n) / 3 for n in range(9, 401))


def test_lemma_3_for_more_records_by_its_closed_form():
    """At n = 400 both inequalities hold, and from there on the derivatives keep them."""
    gamma = (1 - 1 / LOG3) * math.log2(math.e)

    def spread(n):
        return math.exp(LOG3 - 2) * n ** (LOG3 / 2 - 1) * (n - 1) ** (LOG3 / 2)

    def least(n, share):
        return gamma * (spread(n) - 1 - math.log(spread(n))) - delta(n) * share

    n = 400
    assert least(n, 1 / LOG3) > 0
    assert least(n, 2 / LOG3 - 1) > math.sqrt(n) / 3
    # n d/dn, with spread >= spread(400)/20 sqrt(n) and delta' <= log2(e) / (n - 1).
    slope, loss = gamma * (LOG3 - 1), math.log2(math.e) * n / (n - 1)
    assert slope * (spread(n) - 1) > loss / LOG3
    assert (slope * spread(n) / 20 - 1 / 6) * math.sqrt(n) > slope + loss * (2 / LOG3 - 1)
    # The closed form is below what enumeration finds.
    assert least(150, 2 / LOG3 - 1) < missed_by(150)


@pytest.mark.parametrize("n", [4, 5, 7, 23, 30, 337, 1000])
def test_ranks_are_cut_into_parts_as_the_bound_of_mice_takes_them(n, key):
    sizes = range(2, 2 * n)
    cut = binning.by_rank([np.arange(n, dtype=float)], sizes, RandomTies(key))
    for size, part_of in zip(sizes, binning.codes(cut)[:, 0], strict=True):
        less, longer = divmod(n, size)
        expected = sorted([less + 1] * longer + [less] * (size - longer))
        assert sorted(np.bincount(part_of, minlength=size)) == expected


# --- the integer path


def test_rounding_moves_a_fixed_grid_by_six_units_at_most_and_by_more_than_four():
    n = 100_003
    table, counts = np.asarray(exact_gains(n).table, float)[: n + 1], np.arange(n + 1)
    error = table - UNIT * phi(counts) / n
    jump = np.insert(np.diff(error), 0, 0)  # of x - 1 -> x
    assert np.abs(error).max() <= 0.5 + 1e-5
    # Leaving cell a of row r, column c for cell b of row R, column C.
    small, large = counts[:3_000], counts[20_000:30_000]
    a, b = small[jump[small].argmin()], small[jump[small].argmax()]
    (r, c), (R, C) = large[np.argsort(-jump[large])[:2]], large[np.argsort(jump[large])[:2]]
    extra = (jump[r] + jump[c] - jump[a]) - (jump[R] + jump[C] - jump[b])
    assert 4 < extra <= 6
    assert bounds.allowance(MICr(B=150), n) == Fraction(6, UNIT)


@pytest.mark.parametrize("n", [100, 5000, 10**6])
def test_usual_plans_need_six_units_and_extreme_ones_no_more_than_their_entries(n):
    assert bounds.allowance(MICr(B=8), n) == Fraction(6, UNIT)
    assert bounds.allowance(MICr(B=600), n) == Fraction(6, UNIT)
    extreme = bounds.integer_path(MICr(B=60_000), n)
    by_entry = max(bounds.entry_bound(2, 2, n), bounds.entry_bound(3, 3, n))
    assert bounds.integer_path(MICr(B=8), n) <= extreme <= by_entry + Fraction(7, UNIT)


def test_weights_never_exceed_inverse_logarithms_and_two_parts_weigh_one():
    assert weight(2) == 2**WEIGHT_BITS
    with localcontext(prec=80):
        shares = [weight(k) * Decimal(k).ln() / Decimal(2).ln() / 2**30 for k in range(3, 257)]
    # A power of two has a whole logarithm, which 80 digits of ln cannot tell from its neighbours.
    assert all(1 - Decimal(2) ** -26 < share <= 1 + Decimal(10) ** -70 for share in shares)


# --- numbers


@pytest.mark.parametrize("n", [2, 4, 5, 337, 1024, 10**6 + 1, 2**31 - 1])
def test_bounds_are_rational_and_above_the_truth_by_almost_nothing(n):
    with localcontext(prec=120):
        truth = (n * Decimal(n).ln() - (n - 1) * Decimal(n - 1).ln()) / (n * Decimal(2).ln())
        excess = Fraction(bounds.exact(MICr(B=9), n)) / Fraction(truth) - 1
    assert 0 <= excess < Fraction(1, 10**12)


def test_the_bounds_have_the_documented_values(key):
    micr, mice = MICr(B=47), MICe(ties=RandomTies(key))
    for n, printed, proven, sharper in [
        (337, 0.1175, 0.0331, 0.0292),
        (5000, 0.01103, 0.00321, 0.00275),
    ]:
        assert bounds.published(micr, n) == pytest.approx(printed, rel=2e-3)
        assert bounds.entry_bound(3, 4, n) == pytest.approx(proven, rel=2e-3)
        assert bounds.exact(micr, n) == pytest.approx(sharper, rel=2e-3)
    assert bounds.published(mice, 337) == pytest.approx(2.10, abs=6e-3)
    assert bounds.exact(mice, 337) == pytest.approx(0.287, abs=6e-4)
    assert bounds.published(mice, 5000) == pytest.approx(0.974, abs=6e-4)
    assert bounds.exact(mice, 5000) == pytest.approx(0.122, abs=6e-4)


@pytest.mark.parametrize("n", [4, 25, 250, 337, 1000, 5000, 10**4])
def test_the_published_bound_of_micr_is_about_four_times_too_large(n):
    assert 4 < bounds.published(MICr(B=9), n) / bounds.exact(MICr(B=9), n) < 4.35
    by_entry = max(bounds.entry_bound(2, 2, n), bounds.entry_bound(3, 3, n))
    assert 3.4 < bounds.published(MICr(B=9), n) / by_entry < 4.35


def test_people_and_vectors_scale_the_bound():
    bound = Fraction(1, 100)
    assert bounds.group(bound, 3) == Fraction(3, 100)
    assert bounds.l1(bound, 8256) == Fraction(8256, 100)
    assert bounds.l2(bound, 16) == Fraction(4, 100)
    assert 0 < bounds.l2(bound, 8256) ** 2 - bound**2 * 8256 < Fraction(1, 10**12)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="whole number"):
            bounds.group(bound, wrong)


def test_what_is_not_proven_is_refused(key):
    for bound in (bounds.exact, bounds.allowance, bounds.integer_path):
        with pytest.raises(ValueError, match=r"MICe\(ties=RandomTies\(key\)\)"):
            bound(MICe(ties=grouped_ties), 100)
        with pytest.raises(ValueError, match="n >= 2"):
            bound(MICr(B=9), 1)
    with pytest.raises(ValueError, match="n >= 6"):
        bounds.published(MICe(), 5)
    with pytest.raises(TypeError, match="MICr"):
        bounds.exact(power(0.6), 100)
    with pytest.raises(ValueError, match="k >= 2"):
        bounds.entry_bound(1, 5, 100)
    assert bounds.exact(MICe(B=60, ties=RandomTies(key)), 8) <= 1


# --- total variation across a cut


def apart(tables):
    """2 sum_j |n a_j - a c_j|, the first row on the near side of the cut."""
    n = tables.sum(axis=(1, 2))[:, None]
    near, parts = tables[:, 0], tables.sum(axis=1)
    return 2 * np.abs(n * near - near.sum(axis=1, keepdims=True) * parts).sum(axis=1)


@pytest.mark.parametrize("n", range(2, 11))
@pytest.mark.parametrize("columns", [2, 3, 4])
def test_every_move_stays_within_the_bound_of_variation_and_one_attains_it(columns, n):
    tables = all_tables(2, columns, n)
    # Columns may be renamed, and every move away from the first row has its reverse.
    moves = [((0, 0), (0, 1)), ((1, 0), (1, 1)), ((0, 0), (1, 0)), ((0, 0), (1, 1))]
    largest = 0
    for source, target in moves:
        before, after = moved(tables, source, target)
        largest = max(largest, np.abs(apart(after) - apart(before)).max())
    assert Fraction(int(largest), n**2) == bounds.variation(n)


@pytest.mark.parametrize("n", [20, 101, 1000])
def test_no_move_on_random_tables_exceeds_the_bound_of_variation(rng, n):
    """Sparse and dense ones, few records in the first row or the moved columns, or many."""
    weights = rng.dirichlet(np.full(10, 0.2), size=20_000)
    tables = rng.multinomial(n, weights).reshape(-1, 2, 5)
    for source, target in [((0, 0), (0, 1)), ((1, 0), (1, 1)), ((0, 0), (1, 0)), ((0, 0), (1, 1))]:
        before, after = moved(tables, source, target)
        assert np.abs(apart(after) - apart(before)).max() <= bounds.variation(n) * n**2


def test_the_sum_of_moves_in_the_proof_of_variation_is_largest_at_its_ends():
    """For a record that changes row and column, over every R, c_i and c_j of n = 30 records."""
    n = 30
    R, c_i, c_j = np.meshgrid(np.arange(1, n + 1), np.arange(1, n + 1), np.arange(n), indexing="ij")
    total = (n - c_i - c_j) + np.abs(n + 1 - R - c_i) + np.abs(c_j + 1 - R)
    assert total[c_i + c_j <= n].max() == 2 * (n - 1)


def test_variation_needs_two_records():
    assert bounds.variation(2) == 1
    with pytest.raises(ValueError, match="n >= 2"):
        bounds.variation(1)
