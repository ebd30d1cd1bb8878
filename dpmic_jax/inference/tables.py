"""Tests of all pairs of columns of any kinds, by random tables with the margins of each pair.

A number is cut by rank into up to 16 parts, with tied values in one part; a nominal column has its
categories. The statistic is a total information coefficient of few cells: numbers are merged to 2,
4, 8, 16 parts, and with I_kl the mutual information of k by l parts and d = (k - 1)(l - 1),

    T = sum over all k, l of n I_kl / sqrt(d).

**Null distribution.** If y is independent of x and its records are exchangeable, then given x and
the multiset of values of y, all orders of y are equally likely. Parts are functions of a value and
of the multiset of values, so the table of counts is that of a uniform shuffle: given its margins it
has the (multivariate) hypergeometric distribution, whatever the distributions of x and y. It is
drawn directly, row by row, which takes as long for any n. Pairs with the same margins have the same
distribution and share its draws: all pairs of columns without ties do. T is a sum of integers, and
what is fixed by the margins is left out.

**Stopping.** Draws end at the h-th one that is at least as large as the observed T_0 (Besag and
Clifford 1991), or after D. If the l-th was the h-th, p = h / l; if there were g < h, p = (1 + g) /
(D + 1). Then P(p <= a) <= a for every a. Proof: T_0 and the draws are exchangeable. For h / D <= a
< 1 let l be the smallest number with h / l <= a. Then p <= a iff fewer than h of the first l - 1
draws are at least T_0, that is if at most h of these l values, T_0 among them, are. At most h
indices have this property, each index is equally likely to be the observed one, and h / l <= a.
For a < h / D, p <= a iff (1 + g) / (D + 1) <= a (`monte_carlo`).

Draws are shared, so p-values of pairs depend on each other. Each is valid by itself.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int64

from dpmic_jax.data.limits import Column
from dpmic_jax.inference import monte_carlo
from dpmic_jax.mic.binning import by_rank
from dpmic_jax.mic.ties import grouped_ties

PARTS = 16  # the most parts of a number
_FIRST, _BLOCK = 128, 2048  # draws at a time
_UNIT = 2**16  # of phi
_WEIGHT = 2**8  # of 1 / sqrt(d)

Counts = Int64[np.ndarray, "draws x_parts y_parts"]
Rng = int | np.random.Generator


class Axis(NamedTuple):
    """What the null distribution depends on, of one column.

    Attributes:
      margin: records in each part.
      levels: the parts at which merged ones begin, for every number of parts that is tried.
    """

    margin: tuple[int, ...]
    levels: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class TableTest:
    """Tests of pairs by tables of few cells. Not private.

    Attributes:
      draws: the most random tables for a pair: no p-value is below 1 / (draws + 1).
      stop: the number of draws as large as observed after which a pair needs no more.
    """

    draws: int = 9999
    stop: int = 20

    def __post_init__(self):
        monte_carlo.checked_draws(self.draws)
        if not isinstance(self.stop, Integral) or isinstance(self.stop, bool) or self.stop < 1:
            raise ValueError(f"expected stop to be a whole number from 1 on, got {self.stop!r}")

    @property
    def smallest_p(self) -> float:
        """The smallest p-value that the test can give."""
        return monte_carlo.smallest_p(self.draws)

    def p_values(
        self,
        columns: Sequence[Column],
        bins: Int[np.ndarray, " columns"],
        pairs: Int[np.ndarray, "pairs 2"],
        *,
        rng: Rng,
    ) -> Float[np.ndarray, " pairs"]:
        """P-values of pairs. Each is valid by itself: P(p <= a) <= a for independent columns.

        Args:
          columns: numbers, or codes 0 .. b - 1 of nominal columns, each of which occurs.
          bins: how many categories each nominal column has, and 0 for numbers.
          pairs: positions of x and y.
          rng: a seed, or the generator of the random tables.
        """
        coded = {i: _coded(columns[i], int(bins[i])) for i in np.unique(pairs).tolist()}
        classes: dict[tuple[Axis, Axis], list[tuple[int, int, int]]] = {}
        for at, pair in enumerate(pairs.tolist()):
            # The table and its transpose have the same T.
            x, y = sorted(pair, key=lambda column: coded[column][1])
            classes.setdefault((coded[x][1], coded[y][1]), []).append((at, x, y))
        found = np.empty(len(pairs))

        def test(axes: tuple[Axis, Axis], rng: np.random.Generator) -> None:
            x, y = axes
            statistic, shape = _Statistic(x, y), (len(x.margin), len(y.margin))
            places = [at for at, *_ in classes[axes]]
            tables = [_table(coded[i][0], coded[j][0], shape) for _, i, j in classes[axes]]
            drawn = (
                statistic(random_tables(x.margin, y.margin, some, rng))
                for some in _blocks(self.draws)
            )
            observed = statistic(np.stack(tables))
            found[places] = sequential_p_values(observed, drawn, self.draws, self.stop)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(test, classes, np.random.default_rng(rng).spawn(len(classes))))
        return found


def sequential_p_values(
    observed: Int64[np.ndarray, " pairs"],
    drawn: Iterator[Int64[np.ndarray, " some"]],
    draws: int,
    stop: int,
) -> Float[np.ndarray, " pairs"]:
    """P-values of Besag and Clifford, from draws that all pairs share.

    Args:
      observed: of each pair.
      drawn: draws of the null distribution, in blocks; no more of them are taken than needed.
      draws: how many there are in all.
      stop: draws at least as large as observed after which a pair needs no more.
    """
    found = np.full(len(observed), np.nan)
    as_large, done = np.zeros(len(observed), np.int64), 0
    for block in drawn:
        left = np.flatnonzero(np.isnan(found))
        reached = as_large[left] + np.cumsum(block[:, None] >= observed[left], axis=0)
        ends = reached[-1] >= stop
        first = np.argmax(reached >= stop, axis=0)  # the draw that was the last one needed
        found[left[ends]] = stop / (done + 1 + first[ends])
        as_large[left] = reached[-1]
        done += len(block)
        if not np.isnan(found).any():
            return found
    return np.where(np.isnan(found), monte_carlo.p_values(as_large, draws), found)


def random_tables(
    x: Sequence[int], y: Sequence[int], draws: int, rng: np.random.Generator
) -> Counts:
    """Independent tables with these margins, distributed as those of a random shuffle."""
    left = np.tile(np.asarray(y, np.int64), (draws, 1))
    tables = np.zeros((draws, len(x), len(y)), np.int64)
    for row, records in enumerate(x[:-1]):
        wanted, others = np.full(draws, records), left.sum(axis=1)
        for column in range(len(y) - 1):
            others -= left[:, column]
            some = rng.hypergeometric(left[:, column], others, wanted)
            tables[:, row, column] = some
            wanted -= some
        tables[:, row, -1] = wanted
        left -= tables[:, row]
    tables[:, -1] = left
    return tables


class _Statistic:
    """T of tables with the same margins, without what is the same for all of them."""

    def __init__(self, x: Axis, y: Axis):
        n = sum(x.margin)
        counts = np.arange(n + 1.0)
        self._phi = np.rint(_UNIT * counts * np.log2(np.maximum(counts, 1))).astype(np.int64)
        self._x, self._y = x, y

    def __call__(self, tables: Counts) -> Int64[np.ndarray, " draws"]:
        total = np.zeros(len(tables), np.int64)
        for rows in self._x.levels:
            some = np.add.reduceat(tables, rows, axis=1)
            for columns in self._y.levels:
                merged = np.add.reduceat(some, columns, axis=2)
                freedom = (len(rows) - 1) * (len(columns) - 1)
                weight = round(_WEIGHT / max(freedom, 1) ** 0.5)
                total += weight * self._phi[merged].sum(axis=(1, 2))
        return total


def _coded(values: Column, bins: int) -> tuple[Int[np.ndarray, " n"], Axis]:
    """A column in parts, and what its null distributions depend on."""
    n = len(values)
    if bins:
        margin = np.bincount(values.astype(np.int64), minlength=bins)
        return values.astype(np.int64), Axis(tuple(margin.tolist()), (tuple(range(bins)),))
    most = PARTS
    while most > 2 and n < most**2:
        most //= 2
    sizes = [2**k for k in range(1, most.bit_length())]
    cut = by_rank([values], sizes, grouped_ties)
    codes = cut.fine[0].astype(np.int64)
    margin = np.bincount(codes, minlength=1 + len(cut.cuts[0]))
    past = len(margin)
    levels = {tuple(np.unique(edges[edges < past]).tolist()) for edges in cut.edges[0]}
    return codes, Axis(tuple(margin.tolist()), tuple(sorted(levels, key=len)))


def _table(
    x: Int[np.ndarray, " n"], y: Int[np.ndarray, " n"], shape: tuple[int, int]
) -> Int64[np.ndarray, "x_parts y_parts"]:
    return np.bincount(x * shape[1] + y, minlength=shape[0] * shape[1]).reshape(shape)


def _blocks(draws: int) -> Iterator[int]:
    """How many draws to take at a time: few at first, as most pairs need no more."""
    size = _FIRST
    while draws:
        yield min(size, draws)
        draws -= min(size, draws)
        size = min(2 * size, _BLOCK)
