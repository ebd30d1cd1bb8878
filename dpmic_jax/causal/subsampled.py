"""Subsample and aggregate: make a test of any sensitivity private (Algorithm 6 of the supplement).

The records are split into m parts, each part is tested, and a noisy median of the m scores is
released (`median`). One record lies in one part and moves one score, by any amount, so the test may
have any sensitivity. Scores are clipped to a public range first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int64, Key

from dpmic_jax.causal.median import SmoothMedian
from dpmic_jax.causal.queries import Coded, DependenceTest, Query
from dpmic_jax.dp.accounting.callables import callable_name
from dpmic_jax.dp.accounting.events import Event, ReplaceOne
from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.ledger.file import Receipt
from dpmic_jax.dp.rng.keys import AnyKey, event_key, fold, is_secret
from dpmic_jax.dp.rng.orders import uniform_order
from dpmic_jax.runs.charged import AnyLedger, ReleaseCharge, charged_release

# The first word that is folded into the key: draws for the parts and for the noise differ.
_PARTS, _NOISE = 0, 1


class Subsampled(NamedTuple):
    """Noisy medians of scores.

    Attributes:
      values: noisy score of each query.
      event: the event that was charged; its guarantee is of one query, its count the queries.
      key_is_secret: whether the noise came from a secret key.
      receipt: receipt of the charge, if `ledger=` was given.
    """

    values: Float64[np.ndarray, " queries"]
    event: Event
    key_is_secret: bool
    receipt: Receipt | None = None


@dataclass(frozen=True, kw_only=True)
class SubsampledTest:
    """Release scores of dependence, (epsilon, delta)-DP for each query.

    Attributes:
      test: makes the test of a part of the data, such as `GTest`.
      median: noisy median: epsilon and delta of one query, and the steps of the range.
      parts: m, the number of parts that the records are split into; preferably odd.
      low, high: public range of scores.
    """

    test: Callable[[Coded], DependenceTest]
    median: SmoothMedian
    parts: int
    low: float
    high: float

    def __post_init__(self):
        integer("parts", self.parts, 1, 2**20)
        if not -np.inf < self.low < self.high < np.inf:
            raise ValueError(f"expected low < high, both finite, got {self.low} and {self.high}")

    def event(self, n: int, *, count: int = 1, label: str = "") -> Event:
        """The event of `count` queries on n records; no data is needed."""
        settings = {
            "test": callable_name(self.test),
            "parts": str(self.parts),
            "top": str(self.median.top),
            "low": repr(float(self.low)),
            "high": repr(float(self.high)),
        }
        return Event(
            mechanism=type(self).__name__,
            guarantee=self.median.guarantee,
            relation=ReplaceOne(1),
            n=n,
            sensitivity=Fraction(self.high) - Fraction(self.low),
            count=count,
            settings=tuple(settings.items()),
            label=label,
        )

    def release(
        self,
        data: Coded,
        queries: Sequence[Query],
        *,
        key: AnyKey,
        label: str = "",
        event: Event | None = None,
        ledger: AnyLedger = None,
    ) -> Subsampled:
        """Release noisy scores of the queries.

        Args:
          data: the columns.
          queries: different queries; the noise of a query depends on it, the key and the event.
          key: key of the parts and of the noise.
          label: distinguishes this release from others with the same key. Under a secret key a
            random number is added to it.
          event: the event, `event(n, count=len(queries))`, if the caller has charged it.
          ledger: ledger file to charge before anything is computed.
        """
        if data.n < self.parts:
            raise ValueError(
                f"expected at least {self.parts} records, one for each part, got {data.n}"
            )
        if len(set(queries)) < len(queries):
            raise ValueError("expected every query once; two are the same")
        charge = ReleaseCharge(key, label, event, ledger)
        with charged_release(self.event, data.n, len(queries), charge) as run:
            # With count = 1, so that the noise of a query does not depend on the other queries.
            own = event_key(run.key, self.event(data.n, label=run.event.label))
            steps = self.steps(data, queries, _split(_folded(own, [_PARTS]), data.n, self.parts))
            noisy = [
                # The number of given columns keeps the words of different queries different.
                self.median.release(values, key=_folded(own, [_NOISE, x, y, len(given), *given]))
                for values, (x, y, given) in zip(steps.T, queries, strict=True)
            ]
            width = (self.high - self.low) / self.median.top
            values = self.low + width * np.array(noisy, float)
            return Subsampled(values, run.event, is_secret(key), run.receipt)

    def steps(
        self, data: Coded, queries: Sequence[Query], parts: Sequence[Int64[np.ndarray, " some"]]
    ) -> Int64[np.ndarray, "parts queries"]:
        """Score of each part as a step 0 .. top of the range. Exact, so not private."""
        scores = np.stack([self.test(data.take(part)).scores(queries) for part in parts])
        fraction = (np.clip(scores, self.low, self.high) - self.low) / (self.high - self.low)
        return np.floor(fraction * self.median.top).astype(np.int64)


def _folded(key: Key[Array, ""], words: Sequence[int]) -> Key[Array, ""]:
    return fold(key, jnp.asarray(np.array(words, np.uint32)))


def _split(key: Key[Array, ""], n: int, parts: int) -> list[Int64[np.ndarray, " some"]]:
    """Split the records at random into parts of nearly equal sizes.

    Privacy does not depend on the split, as long as it does not depend on values. It is exactly
    uniform, so that it does not depend on the order of the records either: the places of persons'
    records depend on how many records others have.
    """
    return np.array_split(uniform_order(key, n).astype(np.int64), parts)
