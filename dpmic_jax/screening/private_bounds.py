"""Bounds and breakpoints for the columns of a table, learned privately within wide public ones.

Released are noisy counts of the records of all columns in fine public cells, once and for one
charge (`mechanisms.cell_trees`, with the proof). Bounds and breakpoints are read off them.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int64

from dpmic_jax.data.schema import Number, Schema, Times
from dpmic_jax.data.schema.rules import kind_of
from dpmic_jax.data.source import Source, open_source
from dpmic_jax.dp.accounting.events import ApproximateDP, Event, GaussianDP
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.ledger.file import Receipt
from dpmic_jax.dp.rng.keys import AnyKey, event_key, is_secret
from dpmic_jax.mechanisms.cell_trees import CellTrees, best_trees
from dpmic_jax.runs.charged import AnyLedger, bounds_digest, charged_run, open_ledger
from dpmic_jax.runs.persons import drawn
from dpmic_jax.runs.relation import relation_of
from dpmic_jax.screening.breakpoints import (
    INTERVALS,
    Cells,
    Numeric,
    intervals_for,
    with_missing_bin,
)

_ROWS = 2**18  # read at a time
_LARGEST_ERROR = 1 / (2 * INTERVALS[-1])
# What buying takes of epsilon, and up to which error it found more than a log scale on wide bounds,
# and lost little on columns that are not skewed (docs/skewed.md).
_SHARE, _PAYING_ERROR = 0.3, 1 / 8


class LearnedBounds(NamedTuple):
    """A schema with privately learned bounds and breakpoints of its numbers, and their cost.

    Attributes:
      schema: the wide schema, with learned columns of numbers and times.
      error: the predicted error of the share of records below a breakpoint, by public numbers.
      event: what was charged.
      receipt: of the charge, if a ledger was given.
      key_is_secret: whether the noise came from a secret key.
    """

    schema: Schema
    error: float
    event: Event
    receipt: Receipt | None
    key_is_secret: bool


def learn_bounds(
    table: Any,
    *,
    within: Any,
    epsilon: float,
    delta: float = 0.0,
    key: AnyKey,
    ledger: AnyLedger = None,
    records_per_person: int = 1,
) -> LearnedBounds:
    """Learn bounds and breakpoints for all columns of numbers, for one charge.

    Breakpoints are near the quantiles i/16 (or i/8, i/4, 1/2 where there is more noise), so that
    the bins of a screen hold similar numbers of records, however skewed the column is. Categories
    keep their description, and so do whole numbers of at most 16 values. Missing values do not
    count, unless they count as a public value.

    Args:
      table: as for `screen`.
      within: wide public bounds that contain the learned ones, in a form of `bounds` of `screen`.
        A narrower scale, such as `"log"`, makes better use of the noisy counts.
      epsilon, delta: of all columns together. With a delta, Gaussian noise is used where it is
        smaller. A ledger admits deltas up to 1/64 of its own.
      key: `secret_key()`, or a seeded key for research.
      ledger: a ledger to charge before anything is computed.
      records_per_person: as for `screen`.
    """
    secret = is_secret(key)
    ledger_file = open_ledger(ledger)
    source = open_source(table, within)
    schema = source.schema
    budget = Budget(epsilon, delta, relation_of(schema, records_per_person))
    numbers = _learnable(schema)
    if not numbers:
        raise ValueError("expected at least one column of numbers to learn bounds for, got none")
    told = {**dict(schema.columns), **{n: with_missing_bin(rule) for n, rule in numbers.items()}}
    source = open_source(table, replace(schema, columns=tuple(told.items())))
    n = source.validate()
    trees = plan_bounds(columns=len(numbers), n=n, budget=budget)
    error = trees.error(n)
    public = f"bounds {bounds_digest(schema)}"
    with charged_run(
        lambda run: _event(trees, n, budget, label=f"run {run}, {public}"),
        key=key,
        ledger=ledger_file,
        schema=schema,
    ) as run:
        cells = {name: Cells(rule, trees.tree.leaves) for name, rule in numbers.items()}
        noisy = trees.release(
            _tallies(drawn(source, run.key), cells), event_key(run.key, run.event)
        )
        found = dict(schema.columns)
        for (name, own), mass in zip(cells.items(), trees.estimated(noisy, n), strict=True):
            found[name] = own.learned(mass, intervals_for(error))
        learned = replace(schema, columns=tuple(found.items()))
        return LearnedBounds(learned, error, run.event, run.receipt, secret)


def plan_bounds(*, columns: int, n: int, budget: Budget) -> CellTrees:
    """How bounds would be learned: noise and cells of the smallest predicted error.

    Args:
      columns: how many columns of numbers there are.
      n: number of records.
      budget: what may be spent.

    Raises:
      ValueError: noise would hide the median.
    """
    trees = best_trees(columns=columns, n=n, budget=budget)
    if trees.error(n) > _LARGEST_ERROR:
        raise ValueError(
            f"{n} records are too few to learn bounds of {columns} columns at "
            f"epsilon={budget.epsilon:g}: quantiles would be off by {trees.error(n):.2g} of the "
            "records; use a larger epsilon, a delta, fewer columns, or public bounds"
        )
    return trees


def buying(schema: Schema, *, n: int, budget: Budget) -> str | None:
    """Advice on columns that may have a scale and have none, by public numbers; None without any.

    Args:
      schema: the public description of the table.
      n: number of records.
      budget: of the screen and of learning bounds together.
    """
    numbers = _learnable(schema)
    linear = sum(_may_have_a_scale(rule) for rule in numbers.values())
    if not linear:
        return None
    share = Budget(_SHARE * budget.epsilon, budget.delta * budget.failure_share, budget.relation)
    try:
        error = best_trees(columns=len(numbers), n=n, budget=share).error(n)
    except ValueError:
        error = 1.0
    pays = "pays" if error <= _PAYING_ERROR else "does not pay"
    return (
        f'scale = "log" is free for the {linear} on linear bounds; dpmic bounds learn {pays}: '
        f"breakpoints {min(error, 1):.1%} of the records off, for {_SHARE} of epsilon"
    )


def _learnable(schema: Schema) -> dict[str, Numeric]:
    """The columns that are cut: of whole numbers from 1 to 7 each has bins of its own as it is."""
    rules = {name: rule for name, rule in schema.columns if isinstance(rule, Number | Times)}
    return {name: rule for name, rule in rules.items() if not _is_short(rule)}


def _is_short(rule: Numeric) -> bool:
    return rule.number.whole and rule.number.high - rule.number.low < INTERVALS[0]


def _may_have_a_scale(rule: Numeric) -> bool:
    return kind_of(rule) in ("number", "duration") and rule.number.cut_scale == "linear"


def _event(trees: CellTrees, n: int, budget: Budget, *, label: str) -> Event:
    guarantee = trees.guarantee
    if isinstance(guarantee, GaussianDP):
        # What mu was chosen for. Its epsilon adds up with that of a screen, which is epsilon-DP.
        guarantee = ApproximateDP(budget.epsilon, budget.delta)
    return Event(
        mechanism="learn bounds",
        guarantee=guarantee,
        relation=trees.relation,
        n=n,
        sensitivity=trees.sensitivity,
        settings=(
            ("columns", str(trees.columns)),
            ("noise", type(trees).__name__),
            ("tree", f"{trees.tree.branching}^{trees.tree.levels}"),
        ),
        label=label,
    )


def _tallies(source: Source, cells: dict[str, Cells]) -> Int64[np.ndarray, "columns leaves"]:
    """The records in every cell of every column, in one pass over the table."""
    found = np.array([np.zeros(own.number, np.int64) for own in cells.values()])
    for batch in source.batches(_ROWS):
        for total, (name, own) in zip(found, cells.items(), strict=True):
            total += own.tally(batch[source.names.index(name)])
    return found
