"""What a private search for a graph will cost and can tell, before any data is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

from dpmic_jax.causal.queries import Query
from dpmic_jax.causal.search import Make, Search, empty_codes
from dpmic_jax.dp.accounting.events import PureDP


class Level(NamedTuple):
    """One order of conditioning.

    Attributes:
      order: how many columns are given.
      queries: how many there are at most, if no edge was removed before.
      sensitivity: the most that one record moves a score, given the columns of most categories.
      noise: sensitivity over the epsilon of one release, for one record: the scale of noise.
    """

    order: int
    queries: int
    sensitivity: float
    noise: float


@dataclass(frozen=True, kw_only=True)
class SearchPreview:
    """What is to be expected of a search."""

    search: Search
    columns: int
    n: int
    test: str
    levels: tuple[Level, ...]

    @property
    def releases(self) -> int:
        """Into how many equal parts the budget is cut."""
        return self.search.releases(self.columns)

    def lines(self) -> list[tuple[str, str]]:
        """What to show, as (what, how much)."""
        search, each = self.search, self.search.each(self.columns, self.releases)
        guarantee = search.allowance(self.columns).guarantee
        pure = isinstance(guarantee, PureDP)
        return [
            ("search, test", f"{search.mechanism}, {self.test}"),
            ("columns, records", f"{self.columns}, {self.n}"),
            ("epsilon, delta", f"{search.epsilon:g}, {0.0 if pure else search.delta:g}"),
            ("charged as", f"{guarantee}"),
            ("releases", str(self.releases)),
            ("epsilon for each release", f"{float(each):.4g}"),
            ("independent at a score of", f"at most {float(search.level):g}"),
            *(
                (
                    f"order {level.order}",
                    f"at most {level.queries} queries, a record moves a score by "
                    f"{level.sensitivity:.4g}, noise scale {level.noise:.4g}",
                )
                for level in self.levels
            ),
        ]

    def __str__(self) -> str:
        width = max(len(what) for what, _ in self.lines())
        return "\n".join(f"{what:<{width}}  {text}" for what, text in self.lines())


def preview_search(
    make: Make, search: Search, *, categories: Sequence[int], n: int
) -> SearchPreview:
    """Say what `discover` with the same arguments will cost and can tell. No data is read.

    Args:
      make: data -> a test of them.
      search: `EMPC`, `SVTPC` or `PrivPC`.
      categories: how many each column has, or bins.
      n: number of records.
    """
    data = empty_codes(n, categories)
    search.check(data, make)
    test, columns = make(data), len(categories)
    each = search.each(columns, search.releases(columns))
    most = sorted(range(columns), key=lambda column: -categories[column])
    levels = []
    for order in range(min(search.max_order, columns - 2) + 1):
        given, (x, y) = tuple(sorted(most[:order])), sorted(most[order : order + 2])
        moved = test.sensitivity([Query(x, y, given)])
        queries = comb(columns, 2) * comb(columns - 2, order)
        levels.append(Level(order, queries, float(moved), float(moved / each)))
    return SearchPreview(
        search=search, columns=columns, n=n, test=type(test).__name__, levels=tuple(levels)
    )
