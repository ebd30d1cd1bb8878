"""How far one replaced record can move a MIC statistic: proven bounds, the published beside them.

Neighbours differ in one of n records; n is public. Everything is a rational number that is
no smaller than the real one, and larger by a share of 1e-12 at most. The proofs are in
docs/sensitivity.md. Throughout phi(a) = a log2 a and delta(a) = phi(a) - phi(a - 1), which
grows and is concave.
"""

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dpmic_jax.mic.grids import Grid
from dpmic_jax.mic.statistics import MICe, MICr, Statistic
from dpmic_jax.mic.ties import RandomTies
from dpmic_jax.mic.xlogx import UNIT

_FINE = 2**96  # bounds are rounded up to multiples of 1 / _FINE, so that they stay short
_PROOF_RECORDS = {MICr: 4, MICe: 6}  # the fewest that Theorems 4.3 and 3.1 speak of


def published(statistic: Statistic, n: int) -> Fraction:
    """The bounds of the MIC paper: (4 log2 n + 6) / n for MICr, B (2 log2 n + 4.8) / n for MICe.

    Theorems 4.3 and 3.1, for n >= 4 and n >= 6; B is the budget itself, not rounded to cells.
    """
    fewest = _PROOF_RECORDS[_kind(statistic)]
    if n < fewest:
        raise ValueError(f"the published bound holds for n >= {fewest}, got n={n}; use exact")
    bits = _log2(n)[1]
    if isinstance(statistic, MICr):
        return _round_up((4 * bits + 6) / n)
    B = statistic.B(n) if callable(statistic.B) else statistic.B
    return _round_up(Fraction(B) * (2 * bits + Fraction("4.8")) / n)


def exact(statistic: Statistic, n: int) -> Fraction:
    """The most that one record moves the statistic, in exact arithmetic.

    MICr: delta(n) / n for every plan, attained (Theorem 3). MICe, with ranks made unique by
    random ties: the largest bound of an entry of the plan (Theorem 4), at most 1.
    """
    _check_records(n)
    if _kind(statistic) is MICr:
        return _round_up(_phi_increment(n) / n)
    return min(Fraction(1), _mice(_unique_ranks(statistic).grids(n), n))


def allowance(statistic: Statistic, n: int) -> Fraction:
    """What rounding on the integer path adds to `exact` (Theorem 5).

    The path looks phi(a) / n up in a table of integers in units of 2^-26, and multiplies
    entries of k parts by `characteristic.weight(k)`, which is at most 1 / log2 k. MICr: 6 units
    for all but extreme plans. MICe: 2 (k + l - 1) units over log2 k, at its largest.
    """
    _check_records(n)
    grids = statistic.grids(n)
    if _kind(statistic) is MICr:
        return _micr_allowance(grids, n)
    _unique_ranks(statistic)
    return _mice_allowance(grids)


def integer_path(statistic: Statistic, n: int) -> Fraction:
    """The most that one record moves the number that is released: `exact` + `allowance`.

    That number is `characteristic.integer_mic`, before it is rounded down to a lattice.
    """
    return exact(statistic, n) + allowance(statistic, n)


def entry_bound(k: int, l: int, n: int) -> Fraction:  # noqa: E741 - the papers' name
    """The most that one record moves entry (k, l) of MICr's characteristic matrix, exactly.

    With q = min(k, l): delta(n) / n for q = 2, else
    [delta(floor((n+1)/2)) + delta(ceil((n+1)/2))] / (n log2 q) (Theorems 1 and 2). The integer
    path adds 6 units of 2^-26, over log2 q. MICr itself moves less than its 3 x l entries may,
    so it needs `exact` only; sums such as tic need this.
    """
    _check_records(n)
    if min(k, l) < 2:
        raise ValueError(f"expected k >= 2 and l >= 2 parts, got {k} and {l}")
    if min(k, l) == 2:
        return _round_up(_phi_increment(n) / n)
    information = _phi_increment((n + 1) // 2) + _phi_increment((n + 2) // 2)
    return _round_up(information / (n * _log2(min(k, l))[0]))


def variation(n: int) -> Fraction:
    """The most that one record moves `mic.variation` over n^2: 4 (n-1) / n^2, attained (Theorem 6).

    Exact on the integer path too, which rounds nothing.
    """
    _check_records(n)
    return Fraction(4 * (n - 1), n * n)


def group(bound: Fraction, records: int) -> Fraction:
    """Sensitivity to a person with `records` records, each of which moves the value by `bound`."""
    return bound * _count(records, "records")


def whole_table(categories: int, n: int) -> Fraction:
    """The most that one record moves MICr of two nominal columns, rounding included.

    It is the information of the whole table over the logarithm of `categories`, the smaller number
    of declared ones: `entry_bound`, and six entries of the table of phi that change.
    """
    return entry_bound(categories, categories, n) + Fraction(6, UNIT)


def of_person(statistic: Statistic, n: int, records: int, *, categories: int = 0) -> Fraction:
    """`integer_path` for a person with `records` records; at most 1, the range of values.

    Args:
      statistic: the settings.
      n: number of records.
      records: of the person.
      categories: of two nominal columns of a pair the smaller number, at least; 0 if there is no
        such pair.
    """
    bound = integer_path(statistic, n)
    if categories:
        bound = max(bound, whole_table(categories, n))
    return min(Fraction(1), group(bound, records))


def l1(bound: Fraction, pairs: int) -> Fraction:
    """L1 sensitivity of `pairs` values, each of which one record moves by at most `bound`."""
    return bound * _count(pairs, "pairs")


def l2(bound: Fraction, pairs: int) -> Fraction:
    """L2 sensitivity of the same values: sqrt(pairs) * bound."""
    square = _count(pairs, "pairs") * _FINE**2
    root = math.isqrt(square)
    return bound * Fraction(root + (root * root < square), _FINE)


@lru_cache(maxsize=64)
def _mice(grids: tuple[Grid, ...], n: int) -> Fraction:
    """Theorem 4: the fixed parts gain a record each, and k - 1 more records cross a cut.

    With part sizes c_t and m the largest: [sum_t delta(c_t) + max(0, delta(m-1) - 2)] / n for
    k = 2, and [sum_t delta(c_t) + (k-1) delta(m-1)] / (n log2 k) for k > 2.
    """
    return _round_up(max(_mice_entries(grids, n)))


def _mice_entries(grids: tuple[Grid, ...], n: int) -> Iterable[Fraction]:
    for rows, _, parts, _ in grids:
        # Ranks are cut into n mod l parts of one record more than the others have.
        less, longer = divmod(n, rows)
        shift = longer * _phi_increment(less + 1) + (rows - longer) * _phi_increment(less)
        cross = _phi_increment(less + (longer > 0) - 1)
        yield (shift + max(Fraction(0), cross - 2)) / n
        for k in range(3, parts + 1):
            yield (shift + (k - 1) * cross) / (n * _log2(k)[0])


@lru_cache(maxsize=64)
def _mice_allowance(grids: tuple[Grid, ...]) -> Fraction:
    """k + l - 1 records leave one cell for another, and the sums of rows and columns stay.

    Where `exact` is capped at 1, the table may still carry the statistic above 1, by half a
    unit for each of the (k+1)(l+1) terms of an entry.
    """
    units = (
        max(2 * (k + rows - 1), Fraction((k + 1) * (rows + 1), 2)) / _log2(k)[0]
        for rows, _, parts, _ in grids
        for k in range(2, parts + 1)
    )
    return _round_up(max(units) / UNIT)


@lru_cache(maxsize=64)
def _micr_allowance(grids: tuple[Grid, ...], n: int) -> Fraction:
    """Six table entries change on a fixed grid: two cells, two rows, two columns.

    The proof for three parts also compares with a grid of two parts, where 3 (l+1) units may
    differ; but then delta(n) is missed by sqrt(n)/3 at least (Lemma 3). Bounding entries one
    by one needs no such comparison: the smaller of both is taken.
    """
    same_grid = Fraction(6, UNIT)
    rows = max((grid.rows for grid in grids if grid.parts >= 3), default=0)
    if not rows:
        return same_grid
    missed = Fraction(math.isqrt(n * UNIT**2), 3 * UNIT * n)
    across = max(same_grid, Fraction(3 * (rows + 1), UNIT) - missed)
    by_entry = max(Fraction(0), entry_bound(3, rows, n) - entry_bound(2, rows, n)) + same_grid
    return _round_up(min(across, by_entry))


def _kind(statistic: Statistic) -> type:
    for kind in (MICr, MICe):
        if isinstance(statistic, kind):
            return kind
    raise TypeError(f"expected MICr(...) or MICe(...), got {type(statistic).__name__}")


def _unique_ranks(statistic: Statistic) -> MICe:
    """MICe, if its ranks are unique whatever the data."""
    if not isinstance(statistic, MICe) or not isinstance(statistic.ties, RandomTies):
        raise ValueError(
            "the sensitivity of MICe is proven for unique ranks only, and tied values that are "
            "grouped have none: pass MICe(ties=RandomTies(key))"
        )
    return statistic


def _check_records(n: int) -> None:
    if n < 2:
        raise ValueError(f"expected n >= 2 records, got n={n}")


def _count(value: int, argument: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"expected {argument} to be a whole number from 1 up, got {value!r}")
    return value


def _phi_increment(a: int) -> Fraction:
    """phi(a) - phi(a - 1) or a little more; 0 for an empty part."""
    return a * _log2(a)[1] - (a - 1) * _log2(a - 1)[0] if a > 1 else Fraction(0)


@lru_cache(maxsize=4096)
def _log2(a: int) -> tuple[Fraction, Fraction]:
    """A rational below and one above log2 a, which are equal for a power of two."""
    if a & (a - 1) == 0:
        power = Fraction(a.bit_length() - 1)
        return power, power
    with localcontext(Context(prec=60, rounding=ROUND_HALF_EVEN)):
        ratio = Fraction(Decimal(a).ln() / Decimal(2).ln())
    # Decimal.ln is correctly rounded: three roundings are off by a share of 2e-59 at most.
    margin = ratio / 10**50
    return ratio - margin, ratio + margin


def _round_up(value: Fraction) -> Fraction:
    return Fraction(math.ceil(value * _FINE), _FINE)
