"""`independence_test`: a test of independence of a few pairs of columns that may be published."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from dpmic_jax.data.source import Source, open_source
from dpmic_jax.data.table import Pairs, positions
from dpmic_jax.dp.accounting.events import Event, PureDP, canonical
from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.arithmetic.exact_decimal import check_positive, check_probability
from dpmic_jax.dp.rng.keys import AnyKey, event_key, is_secret
from dpmic_jax.inference.private_decisions import PrivateDecisions
from dpmic_jax.inference.private_noise import DistanceNoise
from dpmic_jax.inference.private_p_values import PrivatePValues
from dpmic_jax.inference.private_result import IndependenceResult, IndependenceStatement
from dpmic_jax.mic import streaming
from dpmic_jax.mic.distance import MOST_RECORDS
from dpmic_jax.mic.statistics import BinnedTable, MICrAndDistance
from dpmic_jax.runs.charged import AnyLedger, bounds_digest, charged_run, open_ledger
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.persons import drawn
from dpmic_jax.runs.relation import check_one_record, persons_of, relation_of
from dpmic_jax.screening.kinds import Kinds, kinds_of
from dpmic_jax.screening.power import LARGEST, SURE
from dpmic_jax.version import __version__

MOST_PAIRS = 100
_ROWS = 2**16  # records that are read at a time

Method = PrivateDecisions | PrivatePValues
DECISIONS = PrivateDecisions()  # the default; frozen
Positions = Int[np.ndarray, "pairs 2"]


def independence_test(
    table: Any,
    *,
    bounds: Any,
    pairs: Pairs,
    epsilon: float,
    key: AnyKey,
    alpha: float = 0.05,
    method: Method = DECISIONS,
    ledger: AnyLedger = None,
    out: str | os.PathLike[str] | None = None,
    records_per_person: int = 1,
    force: bool = False,
) -> IndependenceResult:
    """Test whether pairs of columns are independent, epsilon-DP for every person in the table.

    The result may be published. The ledger is charged, durably, before anything is computed from
    values (`runs.charged`). The same call with the same `out` resumes a run that was interrupted,
    bit for bit, and is charged once; when the run is finished, the call returns its result again.

    Args:
      table: an array, a data frame, the path of a CSV or Parquet file or of a folder of Parquet
        files, a `Query`, or another table that `data.source.open_source` takes.
      bounds: public bounds: {name: (low, high)}, a `Schema`, or the path of a bounds file.
      pairs: the columns of each pair (x, y), by name or by position; at most 100. They have to
        be chosen without these records.
      epsilon: privacy cost of the whole test.
      key: `secret_key()`; or `seeded_key(seed)` for research, which marks every output as seeded.
      alpha: the error to allow over all pairs, fixed beforehand.
      method: `PrivateDecisions()`, whose level is exact at any n if records are independent and
        from one distribution; or `PrivatePValues()`, which releases noisy distances and p-values,
        and holds if persons are independent, and all records from one distribution.
      ledger: a ledger to charge. Without one, account for the cost yourself.
      out: the folder of the run, from which it can be resumed.
      records_per_person: as for `screen`.
      force: test even if noise will hide every dependence; else that is refused, uncharged.
    """
    secret = is_secret(key)  # refuses what is no key, before any work
    if not isinstance(method, Method):
        raise TypeError(
            f"expected method to be PrivateDecisions() or PrivatePValues(), got {method!r}"
        )
    epsilon = check_positive("epsilon", epsilon)
    if not check_probability("alpha", alpha):
        raise ValueError("expected 0 < alpha < 1, got 0")
    ledger_file = open_ledger(ledger)
    folder = None if out is None else Folder(Path(out).absolute())
    source = open_source(table, bounds)
    relation = relation_of(source.schema, records_per_person)
    if isinstance(method, PrivateDecisions):
        remedy = "use method=PrivatePValues() (--method p-values), or one record a person"
        check_one_record(source.schema, remedy)
    chosen = _checked_pairs(source.names, pairs)
    names = tuple((source.names[x], source.names[y]) for x, y in chosen.tolist())
    # The file of a finished run is not read again.
    done = folder.records if folder and source.path else None
    n = source.validate() if done is None else done
    if n > MOST_RECORDS:
        raise ValueError(f"expected at most {MOST_RECORDS} records, got {n}")
    kinds = kinds_of(source.names, source.bounds, chosen)  # which may be a refusal
    moved = method.moved * relation.records
    noise = DistanceNoise(epsilon=epsilon, n=n, pairs=len(chosen), moved=moved)
    settings = {
        "alpha": repr(float(alpha)),
        "pairs": canonical(names),
        **method.settings(alpha, len(chosen)),
        **noise.settings(),
    }

    def event(run: str) -> Event:
        # Noise depends on the event, so runs with other bounds draw other noise.
        return Event(
            mechanism=f"independence test: {method.name}",
            guarantee=PureDP(epsilon),
            relation=relation,
            n=n,
            sensitivity=noise.sensitivity,
            settings=tuple(settings.items()),
            label=f"run {run}, bounds {bounds_digest(source.schema)}",
        )

    with charged_run(
        event,
        key=key,
        ledger=ledger_file,
        schema=source.schema,
        folder=folder,
        public={"columns": list(source.names), "table": source.identity()},
        records=lambda key: drawn(source, key).batches(_ROWS),
        check=lambda: force or check_not_lost(method, noise, alpha),
    ) as run:
        if run.result is not None:
            return IndependenceResult.from_json(run.result)
        binned, places = _binned(drawn(source, run.key), chosen, kinds, n)
        found = method.found(binned, places, noise, alpha, event_key(run.key, run.event))
        result = IndependenceResult(
            pairs=names,
            found=found,
            alpha=float(alpha),
            error=method.error,
            statement=IndependenceStatement(
                event=run.event,
                key_is_secret=secret,
                ledger=run.entry,
                version=__version__,
                run=run.name,
                persons=persons_of(source.schema, n),
            ),
        )
        run.finish(result.to_json())
        return result


def check_not_lost(method: Method, noise: DistanceNoise, alpha: float) -> None:
    """Refuse a test that would hardly reject for any data, by public numbers only.

    The most that could be hoped for: one column decides the other, and of decisions that all
    permuted copies have a distance of 0.
    """

    def lost(number: float, name: str) -> bool:
        value = round(number) if name == "n" else number
        return _finds_nothing(method, replace(noise, **{name: value}), alpha)

    if not lost(noise.n, "n"):
        return
    remedies = []
    if isinstance(method, PrivateDecisions):
        own = replace(noise, moved=noise.moved // method.moved)
        if not _finds_nothing(PrivatePValues(), own, alpha):
            remedies.append("method=PrivatePValues() (--method p-values)")
    for name, most, text in (
        ("epsilon", 1e4, "epsilon = {:.2g} or more"),
        ("n", MOST_RECORDS / 2, "about {:.2g} records"),
    ):
        condition = partial(lost, name=name)
        bracket = doubled(condition, 2 * getattr(noise, name), most=most)
        if bracket is not None:
            remedies.append(text.format(bisect(condition, *bracket, steps=8).fails))
    if noise.pairs > 1 and not lost(1, "pairs"):
        remedies.append("fewer pairs")
    advice = f"Use {', or '.join(remedies)}. " if remedies else ""
    raise ValueError(
        "noise would hide every dependence: even if one column decided the other, a pair would not "
        f"be called dependent with 95 % probability. {advice}Pass force=True (--force) to spend "
        "epsilon all the same"
    )


def _finds_nothing(method: Method, noise: DistanceNoise, alpha: float) -> bool:
    return method.smallest_found(noise, alpha, SURE) > LARGEST


def _checked_pairs(names: tuple[str, ...], pairs: Pairs) -> Positions:
    found = positions(names, pairs)
    if len(found) > MOST_PAIRS:
        raise ValueError(
            f"expected at most {MOST_PAIRS} pairs, got {len(found)}: use screen (dpmic screen), "
            "which is made for many"
        )
    if (found[:, 0] == found[:, 1]).any():
        raise ValueError("expected pairs of two different columns: none is independent of itself")
    if len(np.unique(np.sort(found, axis=1), axis=0)) < len(found):
        raise ValueError("expected every pair once; pairs names one of them again")
    return found


def _binned(
    source: Source, pairs: Positions, kinds: Kinds, n: int
) -> tuple[BinnedTable, Positions]:
    """The bins of the columns that are in a pair, and the pairs as positions among these."""
    used, places = np.unique(pairs, return_inverse=True)
    statistic = MICrAndDistance(micr=None, bins=kinds.most)
    bounds = [source.bounds[column] for column in used]
    cuts = (
        statistic.cut([batch[column] for column in used], bounds) for batch in source.batches(_ROWS)
    )
    return _ordered(streaming.joined(cuts, n)), places.reshape(pairs.shape)


def _ordered(binned: BinnedTable) -> BinnedTable:
    """The records ordered by their bins, so that the order of the table changes no decision.

    This changes no law. Let s be the order, which the records determine. Record i's x meets the y
    of record s p s^-1 (i) after a permutation p of ordered records, and s p s^-1 is uniform and
    independent of the records, as p is (`shuffling.shuffles`: exactly).
    """
    order = np.lexsort((*binned.masters.fine, *binned.rows.fine))
    masters, rows = (
        part._replace(fine=np.ascontiguousarray(part.fine[:, order]))
        for part in (binned.masters, binned.rows)
    )
    return binned._replace(masters=masters, rows=rows)
