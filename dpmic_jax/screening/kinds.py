"""What is public of the nominal columns in the pairs of a screen or a test."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from dpmic_jax.data.limits import Limits, NominalLimits
from dpmic_jax.mic.statistics import ROOMS, BinnedTable, bins_of, categories_of
from dpmic_jax.screening.independence import NUMBERS, PairBins
from dpmic_jax.screening.queries import Names, Positions


class Kinds(NamedTuple):
    """The nominal columns of pairs; by default there are none.

    Attributes:
      most: the most bins of one that is in a pair.
      categories: the smaller number of categories of two that are a pair, at least; 0 if there is
        no such pair.
      bins: the numbers of bins of the columns of each pair, every combination once.
    """

    most: int = 0
    categories: int = 0
    bins: PairBins = NUMBERS


def kinds_of(names: Names, bounds: Sequence[Limits], pairs: Positions) -> Kinds:
    """The kinds of pairs, or a refusal of a nominal column that has too many categories.

    Args:
      names: names of the columns.
      bounds: their limits.
      pairs: positions of the columns of each pair.
    """
    bins, categories = (np.array(list(map(each, bounds))) for each in (bins_of, categories_of))
    if not bins.any():
        return Kinds()
    most, longest = max((int(bins[column]), column) for column in np.unique(pairs).tolist())
    if most > ROOMS[-1]:
        raise ValueError(
            f"column {names[longest]!r} has {most} categories, missing values included, and at "
            f'most {ROOMS[-1]} can be scored: declare the frequent ones and other = "rest", which '
            "counts all others as one; or group them, or ignore the column"
        )
    fewest = categories[pairs].min(axis=1)
    smallest = int(fewest.min(initial=most, where=fewest > 0)) if fewest.any() else 0
    return Kinds(most, smallest, _distinct(bins[pairs]))


def bins_of_pairs(binned: BinnedTable, pairs: Positions) -> PairBins:
    """The numbers of bins of the columns of each pair, every combination once."""
    return NUMBERS if binned.bins is None else _distinct(binned.bins[pairs])


def _distinct(bins: Int[np.ndarray, "pairs 2"]) -> PairBins:
    # As one number a pair: there may be half a million.
    found = np.unique(bins.min(axis=1) * (1 + bins.max()) + bins.max(axis=1))
    return tuple(divmod(each, 1 + int(bins.max())) for each in found.tolist())


NominalColumns = tuple[tuple[str, int, bool], ...]  # name, categories, whether missing has a bin


def nominal_columns(names: Names, bounds: Sequence[Limits], pairs: Positions) -> NominalColumns:
    """Of every nominal column of pairs its name and what its limits are, by name."""
    found = [(names[column], bounds[column]) for column in np.unique(pairs).tolist()]
    nominal = [
        (name, limits.categories, limits.missing)
        for name, limits in found
        if isinstance(limits, NominalLimits)
    ]
    return tuple(sorted(nominal))


def bounds_from(names: Names, columns: NominalColumns) -> tuple[Limits, ...]:
    """Limits with these nominal columns; those of others do not matter to a plan."""
    nominal = {name: NominalLimits(count, missing) for name, count, missing in columns}
    return tuple(nominal.get(name, (0.0, 1.0)) for name in names)
