"""Bounds for the columns of a table, learned privately within wide public ones."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpmic_jax.data.limits import Column
from dpmic_jax.data.schema import Number, Schema
from dpmic_jax.data.source import Source, open_source
from dpmic_jax.dp.accounting.events import Event, PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, check_positive, floor_to_float
from dpmic_jax.dp.ledger.file import Receipt
from dpmic_jax.dp.rng.keys import AnyKey, is_secret
from dpmic_jax.mechanisms.bounds import EqualCells, OctaveCells, QuantileBounds
from dpmic_jax.runs.charged import AnyLedger, charged_run, open_ledger
from dpmic_jax.runs.persons import drawn
from dpmic_jax.runs.relation import relation_of

_ROWS = 2**18  # read at a time
_CELLS = EqualCells()


class LearnedBounds(NamedTuple):
    """A schema with privately learned bounds of its numbers, and their cost."""

    schema: Schema
    event: Event
    receipt: Receipt | None
    key_is_secret: bool


def learn_bounds(
    table: Any,
    *,
    within: Any,
    epsilon: float,
    key: AnyKey,
    ledger: AnyLedger = None,
    records_per_person: int = 1,
    quantiles: tuple[float, float] = (0.005, 0.995),
    cells: EqualCells | OctaveCells = _CELLS,
) -> LearnedBounds:
    """Learn bounds for every column of numbers, epsilon-DP for all of them together.

    Each column gets an equal part of epsilon, and the range between two private quantiles
    (`QuantileBounds`). Missing values that have their own bin count as the smallest values.

    Args:
      table: as for `screen`.
      within: wide public bounds that contain the learned ones, in a form of `bounds` of `screen`.
      epsilon: epsilon of all columns together.
      key: `secret_key()`, or a seeded key for research.
      ledger: a ledger to charge before anything is computed.
      records_per_person: as for `screen`.
      quantiles, cells: as for `QuantileBounds`.
    """
    secret = is_secret(key)
    check_positive("epsilon", epsilon)
    ledger_file = open_ledger(ledger)
    source = open_source(table, within)
    rules = zip(source.names, source.rules, strict=True)
    relation = relation_of(source.schema, records_per_person)
    numbers = {name: rule for name, rule in rules if isinstance(rule, Number)}
    if not numbers:
        raise ValueError("expected at least one column of numbers to learn bounds for, got none")
    each = floor_to_float(as_fraction(epsilon) / len(numbers))
    mechanisms = {
        name: QuantileBounds(
            epsilon=each,
            within=(rule.low, rule.high),
            quantiles=quantiles,
            cells=cells,
            relation=relation,
        )
        for name, rule in numbers.items()
    }
    n = source.validate()
    for mechanism in mechanisms.values():
        mechanism.ranks(n)  # refuses too few records, before the charge
    event = Event(
        mechanism="learn bounds",
        guarantee=PureDP(each),
        relation=relation,
        n=n,
        sensitivity=Fraction(relation.records),
        count=len(numbers),
        settings=(("quantiles", repr(quantiles)),),
    )
    with charged_run(
        lambda run: replace(event, label=f"run {run}"),
        key=key,
        ledger=ledger_file,
        schema=source.schema,
    ) as run:
        found = dict(source.schema.columns)
        for name, values in zip(numbers, _columns(drawn(source, run.key), numbers), strict=True):
            # A label for each column, so that no two columns get the same noise.
            charged = mechanisms[name].event(n, label=f"{run.event.label}, column {name}")
            learned = mechanisms[name].release(values, key=key, event=charged)
            found[name] = replace(numbers[name], low=learned.low, high=learned.high)
        schema = replace(source.schema, columns=tuple(found.items()))
        return LearnedBounds(schema, run.event, run.receipt, secret)


def _columns(source: Source, names: Iterable[str]) -> Iterator[Column]:
    """One whole column after the other, reading the table once for each."""
    for name in names:
        place = source.names.index(name)
        yield np.concatenate([batch[place] for batch in source.batches(_ROWS)])
