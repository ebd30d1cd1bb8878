"""Test the pairs that a private screen selected on the very records that it selected them on.

A pair that was chosen because it looks dependent is likely to pass a test of dependence, dependent
or not. Privacy bounds how much: if what the analyst has seen has beta-approximate max-information
k with the records, whatever happens with chance q when the pairs are chosen from other records of
the same kind happens with chance at most 2^k q + beta here (Rogers, Roth, Smith and Thakkar 2016).
Chosen from other records, a control at level (alpha - beta) / 2^k errs at most so often; so on the
same records it errs with at most alpha. A share of false discoveries, which is in [0, 1], is an
average of such chances over its thresholds, so the same holds of its expectation.

Records have to be drawn independently from one law.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from dpmic_jax.data.limits import Column
from dpmic_jax.data.source import Source, open_source
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.inference.independence import IndependenceTest
from dpmic_jax.inference.multiple_testing import Control, FamilyWise
from dpmic_jax.inference.selection import Correction, Guard, MaxInformationCorrection
from dpmic_jax.results import ScreenResult

NOT_PRIVATE = "not private: for the analyst, not for release"
FAMILY_WISE, BY_PRIVACY = FamilyWise(), MaxInformationCorrection()
_ROWS = 2**18
_MOST_DRAWS = 10**8  # that are worth proposing
_USUAL = 1e-4


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PostSelection:
    """P-values of selected pairs, and which hypotheses of independence may be rejected.

    All of it is computed from the records without noise: it is not private.

    Attributes:
      names: of x and y of each pair, in the order of the screen's result.
      p_values: of each pair, as if it had not been selected.
      adjusted: for all pairs together; rejected where at most `correction.level`.
      alpha: the error that is kept.
      error: what kind of error, in words.
      correction: what the selection costs.
      advice: why nothing can be rejected and what would help; empty if something can.
    """

    names: tuple[tuple[str, str], ...]
    p_values: Float[np.ndarray, " pairs"]
    adjusted: Float[np.ndarray, " pairs"]
    alpha: float
    error: str
    correction: Correction
    advice: str

    @property
    def rejected(self) -> Bool[np.ndarray, " pairs"]:
        """Which pairs are called dependent."""
        # A level of 0.0 is one below all floats: a p-value that is 0.0 too may be above it.
        return (self.adjusted <= self.correction.level) & (self.correction.level > 0)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it, marked as not private."""
        rows = zip(self.names, self.p_values, self.adjusted, self.rejected, strict=True)
        return {
            "privacy": NOT_PRIVATE,
            "alpha": self.alpha,
            "error": self.error,
            **self.correction._asdict(),
            "advice": self.advice,
            "pairs": [
                {"x": x, "y": y, "p": float(p), "adjusted": float(q), "rejected": bool(rejected)}
                for (x, y), p, q, rejected in rows
            ],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), allow_nan=False)

    def __repr__(self) -> str:
        left, right = (max(map(len, side), default=1) for side in zip(*self.names, strict=True))
        lines = [NOT_PRIVATE, f"{'x':<{left}}  {'y':<{right}}  p         adjusted  dependent"]
        for (x, y), p, q, rejected in zip(
            self.names, self.p_values, self.adjusted, self.rejected, strict=True
        ):
            verdict = "yes" if rejected else ""
            lines.append(f"{x:<{left}}  {y:<{right}}  {p:<8.3g}  {q:<8.3g}  {verdict}".rstrip())
        lines.append(
            f"{self.rejected.sum()} of {len(self.names)} pairs dependent; {self.error} at most "
            f"{self.alpha:g}. Adjusted p-values are compared with {self.correction.level:.3g}: "
            f"{self.correction.reason}."
        )
        return "\n".join((*lines, self.advice) if self.advice else lines)


def post_selection(
    result: ScreenResult,
    table: Any,
    *,
    bounds: Any,
    test: IndependenceTest,
    key: AnyKey,
    alpha: float = 0.05,
    control: Control = FAMILY_WISE,
    guard: Guard = BY_PRIVACY,
    prior_events: Sequence[Event] = (),
) -> PostSelection:
    """Which of the released pairs are dependent in the population, at a level that stays valid.

    The p-values are not private: for the analyst, not for release.

    Args:
      result: of `screen`; its pairs are tested. Of a result with many pairs take the
        strongest, `result.top(20)`: what is made of it alone is covered.
      table: the very table that was screened.
      bounds: as for the screen.
      test: `NullTable()` for columns without ties, `Permutation(...)` for any, or
        `CustomTest(function)` with a function of your own (x, y, key) -> p.
      key: of the test's random draws, any JAX key; another than the screen's.
      alpha: the error that is allowed.
      control: `FamilyWise()`, no false discovery at all, or `FalseDiscovery()`, few of them.
      guard: `MaxInformationCorrection()`, or `Bonferroni()`, which is better for few candidates.
      prior_events: other private releases from these records that had a say in what is tested,
        such as `book.events` of a ledger; the screen's own event may be among them.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"expected 0 < alpha < 1 (Theorem 1.3), got {alpha}")
    if not len(result.pairs):
        raise ValueError("the screen released no pair, so there is nothing to test")
    event = Event.from_json(result.statement.event)
    events = tuple(dict.fromkeys((event, *prior_events)))
    selected = len(result.pairs)
    correction = guard.correction(events, alpha, selected=selected, candidates=result.candidates)
    source = open_source(table, bounds)
    _check_columns(source, result)
    if (n := source.validate()) != event.n:
        raise ValueError(
            f"table has {n} records, the screened one had {event.n}: pass the one that was screened"
        )
    columns, limits, pairs = _tested(source, result)
    p_values = np.asarray(test.p_values(columns, pairs, limits, key=key), np.float64)
    return PostSelection(
        names=tuple((x, y) for x, y, _ in result.ranked()),
        p_values=p_values,
        adjusted=_adjusted(control, p_values, correction),
        alpha=alpha,
        error=control.error,
        correction=correction,
        advice=_advice(test, control, guard, correction, selected, event.n, alpha),
    )


def _adjusted(
    control: Control, p_values: Float[np.ndarray, " pairs"], correction: Correction
) -> Float[np.ndarray, " pairs"]:
    untested = np.ones(correction.hypotheses - len(p_values))
    return control.adjusted(np.concatenate([p_values, untested]))[: len(p_values)]


def _check_columns(source: Source, result: ScreenResult) -> None:
    if source.names != result.names:
        raise ValueError(
            "table and bounds give other columns than those that were screened: pass the same "
            "table and bounds as to screen"
        )


def _tested(
    source: Source, result: ScreenResult
) -> tuple[list[Column], list[Any], Int[np.ndarray, "pairs 2"]]:
    """The columns that are in a selected pair, and the pairs by their places among them."""
    used, places = np.unique(result.pairs, return_inverse=True)
    parts = [[batch[i] for i in used] for batch in source.batches(_ROWS)]
    columns = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
    return columns, [source.bounds[i] for i in used], places.reshape(result.pairs.shape)


def _advice(
    test: IndependenceTest,
    control: Control,
    guard: Guard,
    correction: Correction,
    selected: int,
    n: int,
    alpha: float,
) -> str:
    """Empty if the smallest p-values that the test can have would be rejected."""
    level, smallest = correction.level, test.smallest_p
    needed = float(_adjusted(control, np.full(selected, smallest), correction).min())
    if needed <= level and level > 0:
        return ""
    draws = math.ceil(needed / (smallest * level)) if smallest * level > 0 else math.inf
    ways = [f"{draws} draws or more"] if draws <= _MOST_DRAWS else []
    # A level that 10 000 draws reach, for tests that could have any p-value.
    ways.append(guard.remedy(max(needed, _USUAL * selected), n, alpha))
    ways.append(
        "screening one half of the records and testing on the other, which needs no correction"
    )
    return (
        f"No data can be called dependent here: the smallest adjusted p-value of this test is "
        f"{needed:.3g}, above {level:.3g}. What would do: {'; or '.join(ways)}."
    )
