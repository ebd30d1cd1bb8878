"""Preview of a private search for a graph: its cost and its noise, before any data is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

from dpmic_jax.causal.search import Make, Search, empty_codes
from dpmic_jax.dp.accounting.events import PureDP


class Level(NamedTuple):
    """The queries of one order.

    Attributes:
      order: number of columns that are conditioned on.
      queries: the most queries, those of a graph from which no edge has been removed.
      sensitivity: the most that one record moves a score, conditioning on the columns with the
        most categories.
      noise: scale of the noise on a score.
      smallest: the smallest score whose edge is kept with 95 % probability in one test.
      kept: probability that one test keeps an edge whose score is 0.
    """

    order: int
    queries: int
    sensitivity: float
    noise: float
    smallest: float
    kept: float


@dataclass(frozen=True, kw_only=True)
class SearchPreview:
    """Cost and noise of a search on data of a given shape."""

    search: Search
    columns: int
    n: int
    test: str
    levels: tuple[Level, ...]
    largest: float

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
            ("largest score", f"{self.largest:.4g}"),
            *(line for level in self.levels for line in self._level_lines(level)),
            *self._refused(),
        ]

    def _level_lines(self, level: Level) -> list[tuple[str, str]]:
        known = f"{level.smallest / (self.largest or 1):.2g} of the largest"
        reach = known if level.smallest <= self.largest else "which no pair of columns has"
        return [
            (
                f"order {level.order}",
                f"at most {level.queries} queries, a record moves a score by "
                f"{level.sensitivity:.4g}, noise scale {level.noise:.4g}",
            ),
            (
                f"kept at order {level.order}",
                f"from a score of {level.smallest:.3g} on with 95 % probability, {reach}; "
                f"a score of 0 with a probability of {level.kept:.2g}",
            ),
        ]

    def _refused(self) -> list[tuple[str, str]]:
        order = len(self.levels)
        if order > min(self.search.max_order, self.columns - 2):
            return []
        return [(f"order {order}", "cannot be asked: the search ends before it, and keeps edges")]

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
    levels = tuple(
        Level(
            order,
            comb(columns, 2) * comb(columns - 2, order),
            float(test.sensitivity([query])),
            decision.noise,
            decision.smallest_kept,
            1 - decision.removed(0.0),
        )
        for order, (query, decision) in enumerate(search.decisions(data, make))
    )
    return SearchPreview(
        search=search,
        columns=columns,
        n=n,
        test=type(test).__name__,
        levels=levels,
        largest=test.largest,
    )
