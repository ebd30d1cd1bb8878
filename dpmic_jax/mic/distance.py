"""Distance from independence: how far a table is from the nearest one whose two sides are alike.

Split the parts of one axis into two sides, and let j be the parts of the other axis. With a_j
records of part j on the near side, c_j in all, R and n their sums, the tables in which part j has
the share t of its records on the near side, for every j, are at a total variation distance of

    [sum_j |a_j - t c_j| + (2 M - 1) |t n - R|] / (2 M n),   M = max(t, 1 - t),

at least: records of a part that has too many on one side go to other parts or to the other side.
The distance from independence across a split is the smallest of these over t, and that of a pair of
columns the largest over `splits` of either axis: all cuts, and unions of eighths of the range. Of
the latter, which are many, 1 / (4 sqrt(n)) is taken off, so that they do not hide by chance what
cuts show. It is near 0 if the columns are independent, and up to sqrt(2) - 1 if a side of one
decides the side of the other.

**One record moves it by at most 1 / n**, as it moves the table by 1 / n in total variation, and
the distance from any set of tables is 1-Lipschitz; so are minima, maxima and what differs by a
constant. This holds for any public splits, parts and t.

In integers: t = 1 / u for u = 1 + k / G, k = 0 .. G, and t = 1 - 1 / u, which is the same with the
sides exchanged. With M = 1 / u the distance for one t is D / 2 G n,

    D = sum_j |(G + k) a_j - G c_j| + w_k |G n - (G + k) R| / 2^8 <= 2 G n,

where w_k / 2^8 is (2 / u - 1) rounded down. For k = 0 it is 2 G (n - R). One record moves the first
sum and the second term by at most 2 G in all for every weight up to 2 / u - 1. D is rounded down,
which commutes with minima and maxima, so that D, an integer, moves by at most 2 G.

A nominal column is split by its categories: each bin against the others, every union of up to 8
bins, and of two of up to 16, which are unions too; no order is used (docs/nominal.md).
"""

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, Int64, Integer

PARTS = 16  # of an axis
MOST_RECORDS = 2**30 - 1  # 2 G n has to fit an int32
_USUAL_STEPS, _MOST_STEPS = 32, 256  # G
_BLOCK = 32  # values of t that are tried at a time
_TOGETHER = 32  # parts that are added up in one expression
_WEIGHT_BITS = 8
_MOST = np.int32(2**31 - 1)


class Steps(NamedTuple):
    """The values of t, as data: programs do not depend on how many there are.

    Attributes:
      number: G.
      weights: w_k for k = 1, 2, ..., filled with zeros; that for k = 0 is not needed.
      price: what is taken off D of splits that are no cuts.
    """

    number: Int[Array, ""] | Int[np.ndarray, ""]
    weights: Int[Array, " most"] | Int[np.ndarray, " most"]
    price: Int[Array, ""] | Int[np.ndarray, ""]


def steps_of(n: int) -> int:
    """G for n records: a power of two above 5/4 sqrt(n), so that it hides little of what n shows.

    At most 256, as it costs time, and for millions of records less.
    """
    if not 0 < n <= MOST_RECORDS:
        raise ValueError(f"expected 1 to {MOST_RECORDS} records, got {n}")
    number = _MOST_STEPS
    while number > _USUAL_STEPS and 4 * number**2 >= 25 * n:
        number //= 2
    while 2 * number * n >= 2**31:
        number //= 2
    return number


def steps(n: int) -> Steps:
    """The values of t for n records."""
    number = steps_of(n)
    weights = np.zeros(_MOST_STEPS, np.int32)
    k = np.arange(1, number + 1)
    weights[:number] = ((number - k) << _WEIGHT_BITS) // (number + k)
    return Steps(np.array(number, np.int32), weights, np.array(price(n), np.int32))


def price(n: int) -> int:
    """1 / (4 sqrt(n)) in units of D, which are 1 / 2 G n, rounded up."""
    return (steps_of(n) * (math.isqrt(n - 1) + 1) + 1) // 2


@lru_cache(maxsize=1)
def splits() -> Bool[np.ndarray, "splits parts"]:
    """The near sides: the 15 cuts, then 120 more unions of eighths of the range.

    A side and its complement are one split, of which the side without the last part is kept.
    """
    cuts = [np.arange(PARTS) < cut for cut in range(1, PARTS)]
    eighths = itertools.product([False, True], repeat=PARTS // 2 - 1)
    unions = [np.repeat((*chosen, False), 2) for chosen in eighths]
    known = {tuple(cut) for cut in cuts}
    return np.array([*cuts, *(side for side in unions if side.any() and tuple(side) not in known)])


CUTS = PARTS - 1  # the first of the splits
FEW, MANY = 8, 16  # bins of which all unions are tried, and unions of two
# How an axis is split: as numbers, or by up to 8, up to 16, or more bins.
NUMBER, FEW_BINS, MANY_BINS, LONG_LIST = range(4)


class Splits(NamedTuple):
    """The splits of an axis of each kind.

    Attributes:
      sides: the near sides, filled up with empty ones, at a distance of 0.
      unions: from which of them the price is taken off.
    """

    sides: Bool[np.ndarray, "kinds splits parts"]
    unions: Bool[np.ndarray, "kinds splits"]


@lru_cache(maxsize=8)
def splits_of_kinds(parts: int) -> Splits:
    """The splits of axes of `parts` parts, of which numbers have the first 16.

    Those of a nominal column are each bin against the others, all unions of up to 8 bins, and the
    unions of two of up to 16. No permutation of the bins changes them as a set. Unions that only
    differ in bins that are not there are the same split, at the price of unions or without it.
    """
    every = [
        side
        for side in itertools.product([False, True], repeat=FEW - 1)
        if 2 <= sum(side) <= FEW - 2
    ]
    single = np.eye(parts, dtype=bool)
    two = [one | other for one, other in itertools.combinations(single[:MANY, :MANY], 2)]
    few = np.vstack([single[:FEW, :FEW], np.pad(every, ((0, 0), (0, 1)))])
    of_kind = [splits(), few, np.vstack([single[:MANY, :MANY], two]), single]
    sides = np.zeros((len(of_kind), max(map(len, of_kind)), parts), bool)
    for to, some in zip(sides, of_kind, strict=True):
        to[: len(some), : some.shape[1]] = some
    free = np.array([CUTS, FEW, MANY, parts])
    return Splits(sides, np.arange(sides.shape[1]) >= free[:, None])


def kind_of(bins: Integer[np.ndarray, "*columns"]) -> Integer[np.ndarray, "*columns"]:
    """How columns are split: nominal ones by how many bins they have, numbers have 0."""
    return np.searchsorted([0, FEW, MANY], bins)


def number_of_splits(bins: int) -> tuple[int, int]:
    """How many splits of a column are tried without a price, and how many unions.

    Args:
      bins: how many it has if it is nominal, else 0.
    """
    if bins == 0:
        return CUTS, len(splits()) - CUTS
    if bins <= FEW:
        return bins, 2 ** (bins - 1) - 1 - bins
    return bins, math.comb(bins, 2) if bins <= MANY else 0


def length_price(bins: int, n: int) -> int:
    """What is taken off D across splits of a column, if the other one has so many bins.

    (sqrt(bins) - 4) / (2 sqrt(n)), rounded up, in units of D: many bins show by chance what 16 do
    not. Nothing up to 16 bins, which is as many parts as numbers have.
    """
    if bins <= PARTS:
        return 0
    return steps_of(n) * (math.isqrt(bins * n) + 1 - math.isqrt(PARTS * n))


def split_distance(
    counts: Integer[Array, "parts others lanes"], steps: Steps
) -> Integer[Array, " lanes"]:
    """The largest D over all splits of the first axis, of two columns of numbers.

    Args:
      counts: records in each cell, of as many records in every lane.
      steps: the values of t.
    """
    sides = jnp.asarray(splits())
    return _largest(
        counts,
        steps,
        len(sides),
        lambda index: sides[index][:, None, None],
        lambda index: jnp.where(index < CUTS, 0, steps.price),
    )


def nominal_distance(
    counts: Integer[Array, "parts others lanes"],
    steps: Steps,
    kinds: Integer[Array, " lanes"],
    prices: Integer[Array, " lanes"],
) -> Integer[Array, " lanes"]:
    """The largest D over all splits of the first axis, whatever the columns are.

    Args:
      counts: records in each cell, of as many records in every lane.
      steps: the values of t.
      kinds: how the first axis of each lane is split.
      prices: what is taken off D of each lane.
    """
    sides, unions = map(jnp.asarray, splits_of_kinds(len(counts)))
    found = _largest(
        counts,
        steps,
        sides.shape[1],
        lambda index: _by_kind(kinds, sides[:, index])[:, None],
        lambda index: jnp.where(_by_kind(kinds, unions[:, index, None])[0], steps.price, 0),
    )
    return jnp.maximum(found - prices, 0)


def _by_kind(
    kinds: Integer[Array, " lanes"], values: Bool[Array, "kinds parts"]
) -> Bool[Array, "parts lanes"]:
    """What each lane has, by a choice, which a CPU does for many lanes at a time."""
    found = values[LONG_LIST][:, None]
    for kind in (NUMBER, FEW_BINS, MANY_BINS):
        found = jnp.where((kinds == kind)[None], values[kind][:, None], found)
    return found


def _largest(
    counts: Integer[Array, "parts others lanes"],
    steps: Steps,
    splits: int,
    side: Callable[[Array], Bool[Array, "parts 1 _"]],
    price: Callable[[Array], Integer[Array, "*lanes"]],
) -> Integer[Array, " lanes"]:
    """The largest D, each less its price, over splits with a side of their own or one a lane."""
    of_part = counts.sum(axis=0, dtype=jnp.int32)
    n = of_part.sum(axis=0, keepdims=True, dtype=jnp.int32)
    block = np.arange(_BLOCK, dtype=np.int32)[:, None]
    number = steps.number

    def of_split(index, largest):
        near = jnp.where(side(index), counts, 0).sum(axis=0, dtype=jnp.int32)
        total = near.sum(axis=0, keepdims=True, dtype=jnp.int32)

        def of_block(i, smallest):
            first = i * _BLOCK
            k = block + (first + 1)
            weight = lax.dynamic_slice_in_dim(steps.weights, first, _BLOCK)[:, None]

            def add(parts, one, other):
                # As sums of terms, not a reduction: XLA turns that into scalar arithmetic on CPU.
                # Exchanging the sides turns a_j into c_j - a_j, and R into n - R.
                every, near = parts
                for j in range(len(every)):
                    c, scaled = every[j : j + 1], (number + k) * near[j : j + 1]
                    one += jnp.abs(scaled - number * c)
                    other += jnp.abs(scaled - k * c)
                return one, other

            one, other = _over_parts(add, (of_part, near), (_BLOCK, n.shape[1]))
            scaled = (number + k) * total
            one += weighted(weight, jnp.abs(scaled - number * n))
            other += weighted(weight, jnp.abs(scaled - k * n))
            found = jnp.where(k <= number, jnp.minimum(one, other), _MOST)
            return jnp.minimum(smallest, found.min(axis=0))

        # k = 0: the nearest table that has no record on one of the sides.
        one_sided = 2 * number * jnp.minimum(total, n - total)[0]
        smallest = lax.fori_loop(0, -(-number // _BLOCK), of_block, one_sided)
        return jnp.maximum(largest, smallest - price(index))

    return lax.fori_loop(0, splits, of_split, jnp.zeros_like(n[0]))


def _over_parts(
    add: Callable[..., tuple[Array, Array]],
    parts: tuple[Array, Array],
    shape: tuple[int, int],
) -> tuple[Array, Array]:
    """Two sums over parts, as one expression of 32, which takes long to compile for more."""
    if len(parts[0]) <= _TOGETHER:
        return add(parts, 0, 0)

    def some(i, sums):
        return add(
            [lax.dynamic_slice_in_dim(each, i * _TOGETHER, _TOGETHER) for each in parts], *sums
        )

    zeros = jnp.zeros(shape, jnp.int32)
    return lax.fori_loop(0, len(parts[0]) // _TOGETHER, some, (zeros, zeros))


def weighted(
    weight: Integer[Array, "steps 1"], value: Integer[Array, "steps lanes"]
) -> Integer[Array, "steps lanes"]:
    """weight * value / 2^8, rounded down, in 32 bits."""
    low = value & (2**_WEIGHT_BITS - 1)
    return weight * (value >> _WEIGHT_BITS) + ((weight * low) >> _WEIGHT_BITS)


def split_distance_numpy(counts: Integer[np.ndarray, "parts others"]) -> int:
    """`split_distance` of one table, by numpy."""
    return _largest_numpy(counts, splits(), np.arange(len(splits())) >= CUTS)


def nominal_distance_numpy(
    counts: Integer[np.ndarray, "parts others"], kind: int, price: int
) -> int:
    """`nominal_distance` of one table, by numpy."""
    sides, unions = splits_of_kinds(len(counts))
    return max(_largest_numpy(counts, sides[kind], unions[kind]) - price, 0)


def _largest_numpy(
    counts: Integer[np.ndarray, "parts others"],
    sides: Bool[np.ndarray, "splits parts"],
    unions: Bool[np.ndarray, " splits"],
) -> int:
    counts = counts.astype(np.int64)
    found = steps(int(counts.sum()))
    number, k = int(found.number), np.arange(1, int(found.number) + 1)[:, None, None]
    near, part = sides @ counts, counts.sum(axis=0)
    weight = found.weights[:number, None].astype(np.int64)

    def distance(near: Int64[np.ndarray, "splits others"]) -> Int64[np.ndarray, " splits"]:
        apart = np.abs((number + k) * near - number * part).sum(axis=2)
        beyond = np.abs(number * part.sum() - (number + k[..., 0]) * near.sum(axis=1))
        return (apart + (weight * beyond >> _WEIGHT_BITS)).min(axis=0)

    total = near.sum(axis=1)
    one_sided = 2 * number * np.minimum(total, part.sum() - total)  # k = 0
    smallest = np.minimum.reduce([distance(near), distance(part - near), one_sided])
    smallest[unions] -= int(found.price)
    return int(smallest.max())
