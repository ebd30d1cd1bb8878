"""Preview of a private search for a graph: its cost and its noise, before any data is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

from dpmic_jax.causal.queries import Query
from dpmic_jax.causal.search import Make, Search, empty_codes
from dpmic_jax.dp.accounting.events import PureDP


class Level(NamedTuple):
    """The queries of one order.

    Attributes:
      order: number of columns that are conditioned on.
      queries: the most queries, those of a graph from which no edge has been removed.
      sensitivity: the most that one record moves a score, conditioning on the columns with the
        most categories.
      noise: scale of the noise: sensitivity / epsilon of one release.
    """

    order: int
    queries: int
    sensitivity: float
    noise: float


@dataclass(frozen=True, kw_only=True)
class SearchPreview:
    """Cost and noise of a search on data of a given shape."""

    search: Search
    columns: int
    n: int
    test: str
    levels: tuple[Level, ...]

    @property
    def releases(self) -> int:
        """The number of equal releases that the budget is split into."""
        return self.search.releases(self.columns)

    def lines(self) -> list[tuple[str, str]]:
        """The preview as (label, text) rows."""
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
            ("independent at a score of", f"at most {float(search.exact_threshold):g}"),
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
        width = max(len(label) for label, _ in self.lines())
        return "\n".join(f"{label:<{width}}  {text}" for label, text in self.lines())


def preview_search(
    make: Make, search: Search, *, categories: Sequence[int], n: int
) -> SearchPreview:
    """Preview the cost and the noise of `discover` with the same arguments. No data is read.

    Args:
      make: makes the test of the data, such as `Kendall`.
      search: `EMPC`, `SVTPC` or `PrivPC`.
      categories: number of categories, or of bins, of each column.
      n: number of records.
    """
    data = empty_codes(n, categories)
    search.check(data, make)  # the same refusals as of `discover`
    test, columns = make(data), len(categories)
    each = search.each(columns, search.releases(columns))
    # The sensitivity grows with the number of blocks: the largest columns give the worst case.
    largest_first = sorted(range(columns), key=lambda column: -categories[column])
    levels = []
    for order in range(min(search.max_order, columns - 2) + 1):
        given = tuple(sorted(largest_first[:order]))
        x, y = sorted(largest_first[order : order + 2])
        sensitivity = test.sensitivity([Query(x, y, given)])
        queries = comb(columns, 2) * comb(columns - 2, order)
        levels.append(Level(order, queries, float(sensitivity), float(sensitivity / each)))
    return SearchPreview(
        search=search, columns=columns, n=n, test=type(test).__name__, levels=tuple(levels)
    )
