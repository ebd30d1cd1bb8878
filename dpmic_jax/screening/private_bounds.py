"""Bounds for the columns of a table, bought privately inside wide public ones."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpmic_jax.data.limits import Column
from dpmic_jax.data.schema import Number, Schema
from dpmic_jax.data.source import Source, open_source
from dpmic_jax.dp.accounting.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, check_positive, floor_to_float
from dpmic_jax.dp.ledger.file import Receipt
from dpmic_jax.dp.rng.keys import AnyKey, is_secret
from dpmic_jax.mechanisms.bounds import EqualCells, OctaveCells, QuantileBounds
from dpmic_jax.runs.charged import AnyLedger, charged_run, opened

_ROWS = 2**18
_CELLS = EqualCells()


class LearnedBounds(NamedTuple):
    """A schema whose numbers have bounds that were bought, and what they cost."""

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
    """Buy bounds for every column of numbers: epsilon-DP for all of them together.

    Each column gets an equal part of epsilon, and the range between two private quantiles
    (`QuantileBounds`). Missing values that have a bin of their own count as the lowest ones.

    Args:
      table: as for `screen`.
      within: as `bounds` of `screen`, but wide: what the bounds surely lie within.
      epsilon: of all columns together.
      key: `secret_key()`, or a seeded key for research.
      ledger: a ledger's file to charge, before anything is computed.
      records_per_person: how many records one person may own.
      quantiles, cells: as for `QuantileBounds`.
    """
    secret = is_secret(key)
    check_positive("epsilon", epsilon)
    book = opened(ledger)
    source = open_source(table, within)
    rules = zip(source.names, source.rules, strict=True)
    numbers = {name: rule for name, rule in rules if isinstance(rule, Number)}
    if not numbers:
        raise ValueError("the bounds file has no column of numbers: there is nothing to learn")
    each = floor_to_float(as_fraction(epsilon) / len(numbers))
    laws = {
        name: QuantileBounds(
            epsilon=each,
            within=(rule.low, rule.high),
            quantiles=quantiles,
            cells=cells,
            relation=ReplaceOne(records_per_person),
        )
        for name, rule in numbers.items()
    }
    n = source.validate()
    for law in laws.values():
        law.ranks(n)  # refuses too few records
    event = Event(
        mechanism="learn bounds",
        guarantee=PureDP(each),
        relation=ReplaceOne(records_per_person),
        n=n,
        sensitivity=Fraction(records_per_person),
        count=len(numbers),
        settings=(("quantiles", repr(quantiles)),),
    )
    with charged_run(
        lambda run: replace(event, label=f"run {run}"),
        key=key,
        ledger=book,
        schema=source.schema,
    ) as run:
        found = dict(source.schema.columns)
        for name, values in zip(numbers, _columns(source, numbers), strict=True):
            label = f"{run.event.label}, column {name}"
            bought = laws[name].release(values, key=key, event=laws[name].event(n, label=label))
            found[name] = replace(numbers[name], low=bought.low, high=bought.high)
        schema = replace(source.schema, columns=tuple(found.items()))
        return LearnedBounds(schema, run.event, run.receipt, secret)


def _columns(source: Source, names: Iterable[str]) -> Iterator[Column]:
    """One whole column after the other, reading the table once for each."""
    for name in names:
        place = source.names.index(name)
        yield np.concatenate([batch[place] for batch in source.batches(_ROWS)])
