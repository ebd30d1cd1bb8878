"""Characteristic matrices, and the statistics that are read off them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int64

from dpmic_jax.data.limits import Limits
from dpmic_jax.mic import numpy_scorer
from dpmic_jax.mic.binning import Cuts
from dpmic_jax.mic.grids import Grid, masters
from dpmic_jax.mic.statistics import BinnedTable, categories_of
from dpmic_jax.mic.xlogx import UNIT


class Entries(NamedTuple):
    """The entries (k, l) of a characteristic matrix that a plan scores, each once."""

    x_parts: Int[np.ndarray, " entries"]
    y_parts: Int[np.ndarray, " entries"]
    transposed: Int[np.ndarray, " entries"]  # where entry (l, k) is


@dataclass(frozen=True)
class Characteristic:
    """Characteristic matrices of one pair (x, y), or of many.

    Every statistic is read off them: a number for one pair, an array for many.

    Attributes:
      values: the most information that a grid of each size tells, divided by the logarithm
        of its smaller side; one row a pair.
      entries: the number of parts on the x and y axis that each column of `values` is for.
    """

    values: Float[np.ndarray, "*pairs entries"]
    entries: Entries

    @property
    def matrix(self) -> Float[np.ndarray, "*pairs x_parts y_parts"]:
        """Dense, with entry [k - 2, l - 2] for k parts on x, l on y; NaN where none is scored."""
        side = int(self.entries.x_parts.max()) - 1
        dense = np.full((*self.values.shape[:-1], side, side), np.nan)
        dense[..., self.entries.x_parts - 2, self.entries.y_parts - 2] = self.values
        return dense

    @property
    def mic(self) -> "Values":
        """The maximal information coefficient: the largest entry."""
        return mic(self)

    @property
    def tic(self) -> "Values":
        """The total information coefficient: the sum of all entries."""
        return tic(self)

    @property
    def tic_normalised(self) -> "Values":
        """The mean of all entries."""
        return tic_normalised(self)

    @property
    def mas(self) -> "Values":
        """The maximal asymmetry score, max |M(k, l) - M(l, k)|."""
        return mas(self)

    @property
    def mev(self) -> "Values":
        """The maximal edge value, max M(k, l) with k = 2 or l = 2."""
        return mev(self)

    def mcn(self, eps: float = 0.0) -> "Values":
        """The minimal cell number, min log2(k l) with M(k, l) >= (1 - eps) MIC."""
        return mcn(self, eps)

    def gmic(self, p: float = -1.0) -> "Values":
        """The generalised mean information coefficient, a power mean of order p (`gmic`)."""
        return gmic(self, p)


@dataclass(frozen=True)
class PairCharacteristic(Characteristic):
    """The characteristic matrix of one pair, and the grid that attains its maximum.

    Attributes:
      x_cuts, y_cuts: the cuts of that grid. A value is in the part whose number is the
        number of cuts at or below it.
    """

    x_cuts: Cuts
    y_cuts: Cuts


# What is released is in units of 2^-VALUE_BITS: 26 bits of information times 30 of the weight.
WEIGHT_BITS = 30
VALUE_BITS = UNIT.bit_length() - 1 + WEIGHT_BITS

Values = Float[np.ndarray, "*pairs"] | np.float64
Measure = Callable[[Characteristic], Values]


@lru_cache(maxsize=64)
def _entries(grids: tuple[Grid, ...]) -> tuple[Entries, Int[np.ndarray, " scored"]]:
    """The distinct entries of a plan, and which one each scored grid belongs to."""
    merged = [parts for grid in grids for parts in range(2, grid.parts + 1)]
    fixed = [grid.rows for grid in grids for _ in range(2, grid.parts + 1)]
    scored = list(zip(merged, fixed, strict=True)) + list(zip(fixed, merged, strict=True))
    distinct = sorted(set(scored))
    place = {entry: index for index, entry in enumerate(distinct)}
    x_parts, y_parts = np.array(distinct).T
    entries = Entries(x_parts, y_parts, np.array([place[y, x] for x, y in distinct]))
    return entries, np.array([place[entry] for entry in scored])


def characteristic(
    grids: tuple[Grid, ...], information: Int[np.ndarray, "entries 2 pairs"]
) -> Characteristic:
    """Normalise what the tile program found. Square grids keep the better orientation."""
    entries, place = _entries(grids)
    bits = np.concatenate([information[:, 0], information[:, 1]]).T / UNIT
    best = np.zeros((len(bits), len(entries.x_parts)))
    # Every entry is scored once, but square ones twice: two assignments, not a slow loop.
    half = len(place) // 2
    best[:, place[:half]] = bits[:, :half]
    best[:, place[half:]] = np.maximum(best[:, place[half:]], bits[:, half:])
    smaller = np.minimum(entries.x_parts, entries.y_parts)
    # The truth is within [0, 1]; what is outside is rounding.
    return Characteristic(np.clip(best / np.log2(smaller), 0, 1), entries)


@lru_cache(maxsize=1024)
def weight(parts: int) -> int:
    """1 / log2 k rounded down, in units of 2^-30: how integers are normalised."""
    with localcontext(prec=50):
        return math.floor(2**WEIGHT_BITS * Decimal(2).ln() / Decimal(parts).ln())


def integer_mic(
    grids: tuple[Grid, ...],
    information: Int[np.ndarray, "entries 2 pairs"],
    of_tables: Int64[np.ndarray, " pairs"] | None = None,
) -> Int64[np.ndarray, " pairs"]:
    """MIC in units of 2^-56, by integers alone: what private releases start from.

    Every entry of a plan has at least as many fixed rows as parts, so k is its smaller side.

    Args:
      grids: the plan.
      information: what was found on each grid.
      of_tables: the weight of the whole table of each pair (`table_weights`), if it is scored.
    """
    parts = [k for grid in grids for k in range(2, grid.parts + 1)]
    weights = np.array([weight(k) for k in parts], np.int64)[:, None, None]
    # A last grid of one part is no entry of the characteristic matrix.
    found = (information[: len(parts)].astype(np.int64) * weights).max(axis=(0, 1))
    if of_tables is None:
        return found
    # Missing values may tell more than all declared categories.
    whole = np.minimum(information[len(parts), 0] * of_tables, 2**VALUE_BITS)
    return np.maximum(found, whole)


def table_weights(
    bounds: Sequence[Limits], pairs: Int[np.ndarray, "pairs 2"]
) -> Int64[np.ndarray, " pairs"]:
    """1 / log2 of the smaller number of categories of two nominal columns; 0 for other pairs."""
    fewest = np.array(list(map(categories_of, bounds)))[pairs].min(axis=1)
    weights = [weight(k) if k > 1 else 0 for k in range(1 + fewest.max(initial=0))]
    return np.array(weights, np.int64)[fewest]


def mic(matrix: Characteristic) -> Values:
    """The maximal information coefficient: the largest entry."""
    return matrix.values.max(axis=-1)


def tic(matrix: Characteristic) -> Values:
    """The total information coefficient: the sum of all entries."""
    return matrix.values.sum(axis=-1)


def tic_normalised(matrix: Characteristic) -> Values:
    """The mean of all entries."""
    return matrix.values.mean(axis=-1)


def mas(matrix: Characteristic) -> Values:
    """The maximal asymmetry score, max |M(k, l) - M(l, k)|: large if not monotonic."""
    return np.abs(matrix.values - matrix.values[..., matrix.entries.transposed]).max(axis=-1)


def mev(matrix: Characteristic) -> Values:
    """The maximal edge value, max M(k, l) with k = 2 or l = 2: large if a function."""
    edge = np.minimum(matrix.entries.x_parts, matrix.entries.y_parts) == 2
    return matrix.values[..., edge].max(axis=-1)


def mcn(matrix: Characteristic, eps: float = 0.0) -> Values:
    """The minimal cell number, min log2(k l) with M(k, l) >= (1 - eps) MIC: complexity."""
    if not 0 <= eps <= 1:
        raise ValueError(f"expected 0 <= eps <= 1, got {eps}")
    size = np.log2(matrix.entries.x_parts * matrix.entries.y_parts)
    good = matrix.values >= (1 - eps) * np.asarray(mic(matrix))[..., None]
    return np.where(good, size, np.inf).min(axis=-1)


def gmic(matrix: Characteristic, p: float = -1.0) -> Values:
    """The generalised mean, of exponent p, of the largest entries with up to k l cells.

    Luedtke and Tran (2013): each entry is replaced by the largest one whose grid has no
    more cells, and the power mean of these is taken; p = 0 is the geometric mean, and MIC
    the limit p -> inf.
    """
    size = matrix.entries.x_parts * matrix.entries.y_parts
    order = np.argsort(size, kind="stable")
    # All entries of one size count together: take the running maximum at its last one.
    last = np.searchsorted(size[order], size[order], side="right") - 1
    largest = np.maximum.accumulate(matrix.values[..., order], axis=-1)[..., last]
    with np.errstate(divide="ignore"):
        if p == 0:
            return np.exp(np.log(largest).mean(axis=-1))
        return (largest**p).mean(axis=-1) ** (1 / p)


def attaining_grid(
    cut: BinnedTable, pair: tuple[int, int], information: Int[np.ndarray, "entries 2"]
) -> tuple[Cuts, Cuts]:
    """The cuts on both columns of the grid that attains the MIC of a pair.

    A value is in the part whose number is the number of cuts at or below it.
    """
    entries = [(g, parts) for g, grid in enumerate(cut.grids) for parts in range(2, grid.parts + 1)]
    scores = information / np.log2([[parts] for _, parts in entries])
    entry, flipped = np.unravel_index(scores.argmax(), scores.shape)
    (index, parts), (merged, fixed) = entries[entry], pair[::-1] if flipped else pair
    size = masters(cut.grids).index(cut.grids[index].columns)
    columns, rows = cut.masters.edges[merged, size], cut.rows.edges[fixed, index]
    counts = numpy_scorer.edge_counts(cut, merged, fixed, index)
    chosen = numpy_scorer.best_edges(counts, parts)
    of_merged = _values(cut.masters.cuts[merged], columns[chosen])
    of_fixed = _values(cut.rows.cuts[fixed], rows)
    return (of_fixed, of_merged) if flipped else (of_merged, of_fixed)


def _values(cuts: Cuts, edges: Int[np.ndarray, " edges"]) -> Cuts:
    """The values at which fine bins begin, without those that begin nowhere."""
    inner = np.unique(edges[(edges > 0) & (edges <= len(cuts))])
    return cuts[inner - 1]
