"""How much several columns together tell about one: the best product of partitions.

Column i of X is cut into p_i parts of equal mass, with tied values in one part; a nominal column is
left whole or cut into its categories. The cells of the product that hold records, k of them, are
one column of categories without an order, and are scored as `pairwise` scores one:

    S = max over l of I(cells; y in l parts) / log2 min(k, l),

with y merged into l = 2, 3, ..., max(2, min(floor(sqrt B), floor(B / k))) parts, which are optimal
among those of one master partition of c floor(sqrt B) parts. A nominal y is its b categories: l is
b only. The value is the largest S over all products of at most B / 2 cells, tried one by one.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from dpmic_jax.data.limits import Column
from dpmic_jax.mic import numpy_scorer
from dpmic_jax.mic.binning import by_rank
from dpmic_jax.mic.mixed import table_information
from dpmic_jax.mic.ties import grouped_ties

Codes = Int[np.ndarray, " n"]


class Product(NamedTuple):
    """The best product.

    Attributes:
      value: S.
      parts: how many parts each column of X is in; 1 if it is whole.
      y_parts: the l of the maximum.
    """

    value: float
    parts: tuple[int, ...]
    y_parts: int


def best_product(
    columns: Sequence[Column],
    bins: Sequence[int],
    y: Column,
    y_bins: int,
    *,
    B: int,
    c: float,
) -> Product:
    """The product with the largest S.

    Args:
      columns: numbers, or codes 0 .. b - 1 of nominal columns, each of which occurs.
      bins: how many categories each nominal column has, and 0 for numbers.
      y, y_bins: the column that they tell about.
      B: the most cells of X and parts of y together.
      c: how many times finer than floor(sqrt B) the master partition of y is.
    """
    told, best = _Told(y, y_bins, B, c), Product(0.0, (1,) * len(columns), 1)
    ways = [_ways(values, count, B // 2) for values, count in zip(columns, bins, strict=True)]
    for parts, cells in _products(ways, (), np.zeros(len(y), np.int64), B // 2):
        value, y_parts = told(cells)
        if value > best.value:
            best = Product(value, parts, y_parts)
    return best


class _Told:
    """S of a product, from the cell of each record."""

    def __init__(self, y: Column, bins: int, B: int, c: float):
        self._bins, self._B, self._side = bins, B, max(2, math.isqrt(B))
        self._y = y.astype(np.int64) if bins else _equal(y, max(2, math.floor(c * self._side)))

    def __call__(self, cells: Codes) -> tuple[float, int]:
        count, of_y = int(cells.max()) + 1, int(self._y.max()) + 1
        if min(count, of_y) < 2:
            return 0.0, 1
        if self._bins:
            told = table_information(cells, self._y, np.array([count, of_y]))
            return min(told / math.log2(min(count, of_y)), 1.0), of_y
        table = np.bincount(self._y * count + cells, minlength=of_y * count)
        edges = np.pad(np.cumsum(table.reshape(of_y, count), axis=0), ((1, 0), (0, 0)))
        parts = max(2, min(self._side, self._B // count))
        phi = numpy_scorer.float_phi(len(cells))
        values = numpy_scorer.merge(edges, parts, phi)
        values /= np.log2(np.minimum(np.arange(2, parts + 1), count))
        return min(float(values.max()), 1.0), 2 + int(values.argmax())


def _equal(values: Column, parts: int) -> Codes:
    """Parts of equal mass, numbered without gaps."""
    cut = by_rank([values], [parts], grouped_ties)
    return np.unique(cut.fine[0], return_inverse=True)[1].ravel()


def _ways(values: Column, bins: int, most: int) -> list[Codes]:
    """A column whole, and in more and more parts."""
    whole = np.zeros(len(values), np.int64)
    if bins:
        return [whole, values.astype(np.int64)]
    found = [whole]
    for parts in range(2, most + 1):
        codes = _equal(values, parts)
        # With few values, more parts may be the same ones.
        if codes.max() > 0 and not np.array_equal(codes, found[-1]):
            found.append(codes)
    return found


def _products(
    ways: Sequence[list[Codes]], parts: tuple[int, ...], cells: Codes, most: int
) -> Iterator[tuple[tuple[int, ...], Codes]]:
    """Every product of at most `most` cells, and the cell of each record, without gaps.

    `parts` and `cells` are those of the columns before: further columns only add cells.
    """
    if not ways:
        yield parts, cells
        return
    for codes in ways[0]:
        size = int(codes.max()) + 1
        finer = np.unique(cells * size + codes, return_inverse=True)[1].ravel()
        if finer.max() < most:
            yield from _products(ways[1:], (*parts, size), finer, most)
