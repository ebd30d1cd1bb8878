"""Algorithm 6: a test of any sensitivity, made private on parts of the data.

The records are split into m parts, a test is done on each, and the median of its m scores is
released (`median`). One record lies in one part, so that it moves one score, by whatever amount;
this asks nothing of the test. Scores are brought to a public range first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import jax
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
from dpmic_jax.runs.charged import AnyLedger, Payment, charged_release

_PARTS, _NOISE = 0, 1  # what a key is for


class Subsampled(NamedTuple):
    """Noisy medians of scores; each cost the event's guarantee."""

    values: Float64[np.ndarray, " queries"]
    event: Event
    secret: bool  # whether the key was
    receipt: Receipt | None = None  # of the charge, if `ledger=` was given


@dataclass(frozen=True, kw_only=True)
class SubsampledTest:
    """Release scores of dependence, (epsilon, delta)-DP for each query.

    Attributes:
      test: makes the test of a part of the data, as `GTest` does.
      median: epsilon, delta and how fine the range is.
      parts: m, into how many parts the records are split; odd is better.
      low, high: the range of scores.
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
        """What so many queries cost, before any data is seen."""
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
        """Noisy scores.

        Args:
          data: the columns.
          queries: each of them once; the noise of a query depends on it, the key and the event.
          key: for the parts and the noise.
          label: what tells this release from others with the same key. Under a secret key a random
            number is added to it.
          event: what was charged by hand, `event(n, count=len(queries))`.
          ledger: a ledger's file to charge, before anything is computed.
        """
        if data.n < self.parts:
            raise ValueError(f"expected at least {self.parts} records, one a part, got {data.n}")
        if len(set(queries)) < len(queries):
            raise ValueError("expected every query once; two are the same")
        payment = Payment(key, label, event, ledger)
        with charged_release(self.event, data.n, len(queries), payment) as run:
            own = event_key(run.key, self.event(data.n, label=run.event.label))
            steps = self.steps(data, queries, _split(_folded(own, [_PARTS]), data.n, self.parts))
            noisy = [
                self.median.release(values, key=_folded(own, [_NOISE, x, y, len(given), *given]))
                for values, (x, y, given) in zip(steps.T, queries, strict=True)
            ]
            width = (self.high - self.low) / self.median.top
            values = self.low + width * np.array(noisy, float)
            return Subsampled(values, run.event, is_secret(key), run.receipt)

    def steps(
        self, data: Coded, queries: Sequence[Query], parts: Sequence[Int64[np.ndarray, " some"]]
    ) -> Int64[np.ndarray, "parts queries"]:
        """The score of each part, as a point of the range: exact, so not private."""
        scores = np.stack([self.test(data.take(part)).scores(queries) for part in parts])
        share = (np.clip(scores, self.low, self.high) - self.low) / (self.high - self.low)
        return np.floor(share * self.median.top).astype(np.int64)


def _folded(key: Key[Array, ""], words: Sequence[int]) -> Key[Array, ""]:
    return fold(key, jnp.asarray(np.array(words, np.uint32)))


def _split(key: Key[Array, ""], n: int, parts: int) -> list[Int64[np.ndarray, " some"]]:
    """Records at random, in parts of nearly equal sizes; privacy does not depend on how."""
    order = np.asarray(jax.random.permutation(key, n)).astype(np.int64)
    return np.array_split(order, parts)
