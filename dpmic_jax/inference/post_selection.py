"""Test the pairs that a private screen selected, on the same records that it selected them on.

A pair that was selected because it looks dependent is likely to pass a test of dependence, whether
it is dependent or not. Privacy bounds this effect. If the analyst's releases have beta-approximate
max-information k with the records, an event of probability q for pairs selected on independent
records has probability at most 2^k q + beta for pairs selected on the same records (Rogers, Roth,
Smith and Thakkar 2016). On independent records, error control at level (alpha - beta) / 2^k errs
with at most that probability; so on the same records it errs with probability at most alpha. The
proportion of false discoveries, which is in [0, 1], is an average of such probabilities over
thresholds, so the same bound holds for its expectation.

Records have to be drawn independently from one distribution.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from dpmic_jax.data.limits import Column, NominalLimits
from dpmic_jax.data.schema import schema_of
from dpmic_jax.data.source import Source, open_source
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.inference.independence import IndependenceTest, renumbered
from dpmic_jax.inference.multiple_testing import Control, FamilyWise
from dpmic_jax.inference.selection import Correction, Guard, MaxInformationCorrection
from dpmic_jax.mic.statistics import MICe
from dpmic_jax.results import ScreenResult
from dpmic_jax.runs.persons import drawn
from dpmic_jax.runs.relation import check_one_record

NOT_PRIVATE = "not private: for the analyst, not for release"
FAMILY_WISE, MAX_INFORMATION = FamilyWise(), MaxInformationCorrection()
_ROWS = 2**18  # rows that are read at a time
_MOST_DRAWS = 10**8  # more draws than this are not suggested
_USUAL_P = 1e-4  # smallest p-value of the usual 10 000 draws


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PostSelection:
    """P-values of selected pairs, and which hypotheses of independence are rejected.

    All of it is computed from the records without noise, and is not private.

    Attributes:
      names: names of x and y of each pair, in the order of the screen's result.
      p_values: p-value of each pair, not corrected for the selection.
      adjusted: adjusted p-values; rejected where at most `correction.level`.
      alpha: bound on the error.
      error: the error that is controlled, in words.
      correction: the correction for the selection.
      advice: why nothing can be rejected, and what would help; empty if something can.
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
        # A level of 0.0 has underflowed: a p-value that has underflowed too may be above it.
        return (self.adjusted <= self.correction.level) & (self.correction.level > 0)

    def to_dict(self) -> dict[str, Any]:
        """The result as a dictionary of JSON values, marked as not private."""
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
        """The result as JSON, marked as not private."""
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
    guard: Guard = MAX_INFORMATION,
    prior_events: Sequence[Event] = (),
    force: bool = False,
) -> PostSelection:
    """Test which of the released pairs are dependent in the population, at a valid level.

    The p-values are not private: they are for the analyst, not for release. If no p-value of the
    test could be small enough, that is known before any data is read, and refused.

    Args:
      result: result of `screen`, whose pairs are tested. Of a result with many pairs take the
        strongest, `result.top(20)`: any selection by the result alone is covered.
      table: the table that was screened.
      bounds: the bounds of the screen.
      test: `NullTable()` for columns without ties, `Permutation(...)` for any columns, or
        `CustomTest(function)` for a function (x, y, *, key) -> p of your own. Pairs
        with a nominal column are tested by their distance from independence in `Permutation` of
        MICr; a function of your own gets the codes.
      key: key of the test's random draws, any JAX key; not the screen's.
      alpha: the error that is allowed.
      control: `FamilyWise()` for the probability of any false discovery, or `FalseDiscovery()` for
        their expected proportion.
      guard: `MaxInformationCorrection()`, or `Bonferroni()`, which is better for few candidates.
      prior_events: events of other private releases from these records that influenced what is
        tested, such as `ledger.events`; the screen's own event may be among them.
      force: compute the p-values even if no data could be called dependent.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"expected 0 < alpha < 1 (Theorem 1.3), got {alpha}")
    if not len(result.pairs):
        raise ValueError("the screen released no pair, so there is nothing to test")
    if not isinstance(bounds, list | tuple):  # which know of no persons
        check_one_record(schema_of(bounds), "screen and test with records_per_person = 1")
    event = Event.from_json(result.statement.event)
    # Equal events are one release: the screen's own may come from the ledger as well.
    events = tuple(dict.fromkeys((event, *prior_events)))
    selected = len(result.pairs)
    correction = guard.correction(events, alpha, selected=selected, candidates=result.candidates)
    advice = _advice(test, control, guard, correction, selected, event.n, alpha)
    if advice and not force:
        raise ValueError(f"{advice} Pass force=True (--force) for the p-values all the same")
    source = drawn(open_source(table, bounds), key)
    _check_columns(source, result)
    _check_order(source, result, test)
    if (n := source.validate()) != event.n:
        raise ValueError(
            f"table has {n} records, the screened table had {event.n}: pass the table that was "
            "screened"
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
        advice=advice,
    )


def _adjusted(
    control: Control, p_values: Float[np.ndarray, " pairs"], correction: Correction
) -> Float[np.ndarray, " pairs"]:
    """Adjusted p-values of the tested pairs; hypotheses that were not tested have p = 1."""
    untested = np.ones(correction.hypotheses - len(p_values))
    return control.adjusted(np.concatenate([p_values, untested]))[: len(p_values)]


def _check_columns(source: Source, result: ScreenResult) -> None:
    if source.names != result.names:
        raise ValueError(
            "table and bounds have other columns than those that were screened: pass the same "
            "table and bounds as to screen"
        )


def _check_order(source: Source, result: ScreenResult, test: IndependenceTest) -> None:
    """Refuse exact MIC of nominal columns, which would depend on the order of their categories."""
    used, _ = renumbered(result.pairs)
    nominal = [source.names[i] for i in used if isinstance(source.bounds[i], NominalLimits)]
    if nominal and isinstance(getattr(test, "statistic", None), MICe):
        raise ValueError(
            f"column {nominal[0]!r} is nominal, and MICe compares values: pass test=Permutation("
            "statistic=MICr(B=...)) (--test micr), or declare ordered = true if its categories "
            "have an order"
        )


def _tested(
    source: Source, result: ScreenResult
) -> tuple[list[Column], list[Any], Int[np.ndarray, "pairs 2"]]:
    """The columns of the selected pairs, their bounds, and the pairs as positions among them."""
    used, places = renumbered(result.pairs)
    batches = [[batch[i] for i in used] for batch in source.batches(_ROWS)]
    columns = [np.concatenate(pieces) for pieces in zip(*batches, strict=True)]
    return columns, [source.bounds[i] for i in used], places


def _advice(
    test: IndependenceTest,
    control: Control,
    guard: Guard,
    correction: Correction,
    selected: int,
    n: int,
    alpha: float,
) -> str:
    """Advice for more power; empty if the smallest p-values of the test would be rejected."""
    level, smallest = correction.level, test.smallest_p
    needed = float(_adjusted(control, np.full(selected, smallest), correction).min())
    if needed <= level and level > 0:
        return ""
    # Adjusted p-values are proportional to p-values, and the smallest p is about 1 / draws.
    draws = math.ceil(needed / (smallest * level)) if smallest * level > 0 else math.inf
    ways = [f"{draws} draws or more"] if draws <= _MOST_DRAWS else []
    # For tests that could give any p-value, a level that 10 000 draws reach.
    ways.append(guard.remedy(max(needed, _USUAL_P * selected), n, alpha))
    ways.append(
        "screening one half of the records and testing on the other, which needs no correction"
    )
    return (
        f"No data can be called dependent here: the smallest adjusted p-value of this test is "
        f"{needed:.3g}, above {level:.3g}. What would do: {'; or '.join(ways)}."
    )
