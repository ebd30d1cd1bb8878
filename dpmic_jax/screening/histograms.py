"""Private histograms of some pairs of a screened table, as one event, for a report."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int32

from dpmic_jax.data.limits import in_declared_order
from dpmic_jax.data.schema import Categories, MissingBin, Number, Rule, SparePart, Times
from dpmic_jax.data.source import Source, open_source
from dpmic_jax.data.table import Table, positions
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, check_positive, floor_to_float
from dpmic_jax.dp.rng.keys import AnyKey, is_secret
from dpmic_jax.mechanisms import MICrHistogram
from dpmic_jax.mic.binning import by_range
from dpmic_jax.results import ScreenResult
from dpmic_jax.results.axes import (
    Axis,
    CategoryAxis,
    NumberAxis,
    SpareAxis,
    TimeAxis,
    WholeAxis,
)
from dpmic_jax.results.histograms import Histograms
from dpmic_jax.runs.charged import AnyLedger, bounds_digest, charged_run, open_ledger
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.persons import drawn

_ROWS = 2**18  # read at a time
Pairs = Sequence[tuple[str, str]]


def release_histograms(
    result: ScreenResult,
    table: Any,
    *,
    pairs: Pairs,
    bounds: Any,
    epsilon: float,
    key: AnyKey,
    ledger: AnyLedger = None,
    out: str | os.PathLike[str] | None = None,
) -> Histograms:
    """Release histograms of pairs of columns of a screened table, epsilon-DP as one event.

    Each histogram gets an equal part of epsilon. Where a column has more categories than an axis
    has cells, those that are declared next to each other share one. The same call with the same
    `out` resumes a run that was interrupted, or returns its histograms again, and is charged once.

    Args:
      result: the result of `screen` with which the histograms are shown.
      table: the table that was screened.
      pairs: names of two columns each.
      bounds: as for the screen.
      epsilon: epsilon of all histograms together.
      key: `secret_key()`, or a seeded key for research.
      ledger: a ledger to charge before anything is computed.
      out: the folder of the run, from which it can be resumed.
    """
    secret, statement = is_secret(key), result.statement
    ledger_file = open_ledger(ledger)
    folder = None if out is None else Folder(Path(out).absolute())
    if not pairs:
        raise ValueError("expected pairs to name at least one (x, y), got none")
    each = floor_to_float(as_fraction(check_positive("epsilon", epsilon)) / len(pairs))
    mechanism = MICrHistogram(epsilon=each, relation=statement.relation)
    source = open_source(table, bounds)
    enforced = None if statement.persons is None else statement.relation.records
    if source.schema.records_per_person != enforced:
        raise ValueError("expected bounds with the person of the screen; pass the screen's bounds")
    names = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    for name in names:
        if name not in source.names:
            raise ValueError(f"the table has no column {name!r} with bounds; use one that has")
    n = source.validate()
    if n != statement.n:
        raise ValueError(f"expected the table that was screened, of {statement.n} records, got {n}")
    mechanism.noise(n)  # refuses noise that cannot be drawn
    # The event names the pairs: equal noise on two releases would cancel in their difference.
    asked = hashlib.sha256(repr(tuple(pairs)).encode("utf-8", "backslashreplace")).hexdigest()

    def event(run: str) -> Event:
        public = f"bounds {bounds_digest(source.schema)}, pairs {asked[:16]}"
        label = f"run {run}, report of run {statement.run}, {public}"
        return mechanism.event(n, count=len(pairs), label=label)

    axes = tuple((axis_of(x, source.schema[x]), axis_of(y, source.schema[y])) for x, y in pairs)
    with charged_run(
        event,
        key=key,
        ledger=ledger_file,
        schema=source.schema,
        folder=folder,
        public={"columns": list(names), **_nominal(source, names)},
        records=lambda key: drawn(source, key).batches(_ROWS),
    ) as run:
        if run.result is not None:
            kept = json.loads(run.result)
            release = mechanism.estimated(np.array(kept["counts"]), run.event, secret)
            return Histograms(axes=axes, release=release, ledger=kept["ledger"])
        side = mechanism.resolve(n).side
        read = drawn(source, run.key)
        data = Table(names, tuple(_cells_of(read, name, side) for name in names))
        limits = [(-0.5, side - 0.5)] * len(names)
        release = mechanism.release_charged(data, limits, positions(names, pairs), run, ())
        run.finish(json.dumps({"counts": release.counts.tolist(), "ledger": run.entry}))
        return Histograms(axes=axes, release=release, ledger=run.entry)


def _nominal(source: Source, names: Sequence[str]) -> dict[str, Any]:
    """The order of nominal categories, which the digest of bounds omits, and counts are in."""
    rules = {name: source.schema[name] for name in names}
    found = {
        name: list(rule.values)
        for name, rule in rules.items()
        if isinstance(rule, Categories) and rule.nominal
    }
    return {"categories": found} if found else {}


def _cells_of(source: Source, name: str, bins: int) -> Int32[np.ndarray, " n"]:
    """The bin of each record in a column."""
    place = source.names.index(name)
    limits = in_declared_order(source.bounds[place])
    found = [by_range([batch[place]], [limits], [bins]).fine[0] for batch in source.batches(_ROWS)]
    return np.concatenate(found).astype(np.int32)


def axis_of(name: str, rule: Rule) -> Axis:
    """The axis of a column with this description."""
    own = isinstance(rule.missing, MissingBin)
    if isinstance(rule, Times):
        return TimeAxis(name, rule)
    if isinstance(rule, Number):
        kind = WholeAxis if rule.whole else NumberAxis
        return kind(name, rule.low, rule.high, own, rule.cut_scale)
    values = tuple(map(str, rule.values))
    if isinstance(rule.missing, SparePart) or (own and rule.nominal):
        return SpareAxis(name, values)
    return CategoryAxis(name, values, own)
