"""`screen`: which columns of a sensitive table depend on each other, for one budget."""

import hashlib
import os
import secrets
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dpmic_jax.dp.events import ReplaceOne
from dpmic_jax.dp.keys import AnyKey, is_secret, noise_key
from dpmic_jax.dp.ledger import BudgetExceeded, LedgerFile, Receipt
from dpmic_jax.mic.grids import cells
from dpmic_jax.mic.settings import MICr
from dpmic_jax.mic.sweep import Device
from dpmic_jax.results import ScreenResult, Statement, flavour_of
from dpmic_jax.screening import distributed, planning
from dpmic_jax.screening.asks import Ask, Positions
from dpmic_jax.screening.books import check_data_set
from dpmic_jax.screening.distributed import Cluster
from dpmic_jax.screening.folder import Folder
from dpmic_jax.screening.independence import dependence_level
from dpmic_jax.screening.job import Here, Task, released
from dpmic_jax.screening.planning import Plan, Rule, bulk
from dpmic_jax.screening.work import (
    DEFAULT,
    Resources,
    table_identity,
    tiling,
)
from dpmic_jax.source import open_source

_SEEDED = "seeded-"  # what the names of such runs begin with


def screen(
    table: Any,
    *,
    bounds: Any,
    epsilon: float,
    delta: float = 0.0,
    ask: Ask,
    key: AnyKey,
    ledger: LedgerFile | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    records_per_person: int = 1,
    statistic: MICr | Rule = bulk,
    resources: Resources = DEFAULT,
    devices: Sequence[Device] = (),
    client: Any = None,
) -> ScreenResult:
    """Screen a table: (epsilon, delta)-DP for everyone in it.

    The table is checked in a first pass, of which only n and the verdict are kept. Then the
    ledger is charged, durably. Only then is anything computed. The same call with the same `out`
    goes on with a run that was interrupted, to the same bits, and is charged once; when the run
    is done it gives the result again.

    Args:
      table: an array, a data frame, or the path of a CSV or Parquet file.
      bounds: public bounds: {name: (low, high)}, a `Schema`, or the path of a bounds file.
      epsilon, delta: what all that is released costs at most.
      ask: `AllPairs()`, `Against(column)`, `Between(columns_a, columns_b)`, `TopK(k)` or
        `Above(threshold, at_most)`.
      key: `secret_key()`; or `seeded_key(seed)` for research, which every output then says.
      ledger: a ledger's file to charge. Without one, keep the books yourself.
      out: the run's folder, which lets it go on after an interruption.
      records_per_person: how many records one person may own.
      statistic: a `MICr`, or a rule (n, epsilon for each pair) -> MICr.
      resources: memory, rows read at a time, pairs stored together.
      devices: of this machine; pairs are split over them.
      client: a `dask.distributed.Client` whose workers do the work. They have to see the table's
        file and the run's folder under the same paths.
    """
    relation = ReplaceOne(records_per_person)
    secret = is_secret(key)  # refuses what is no key, before any work
    book = ledger if isinstance(ledger, LedgerFile | None) else LedgerFile.open(ledger)
    folder = None if out is None else Folder(Path(out).absolute())
    source = open_source(table, bounds)
    if book is not None:
        check_data_set(book, source.schema)
    if client is not None:
        distributed.check(source, folder)

    def planned(run: str) -> Plan:
        return planning.plan(
            names=source.names,
            n=n,
            ask=ask,
            epsilon=epsilon,
            delta=delta,
            statistic=statistic,
            relation=relation,
            label=f"run {run}, bounds {bounds_digest}",
        )

    bounds_digest = hashlib.sha256(source.schema.canonical().encode()).hexdigest()[:16]
    # The file of a run that is done is not read again.
    done = folder.records if folder and source.path else None
    n = source.validate() if done is None else done
    new_run = _run_id(planned(""), key)  # before a folder is made: it may refuse the question
    with folder.locked() if folder else nullcontext():
        begun = folder.begun if folder else None
        run = begun["run"] if begun else new_run
        plan = planned(run)
        identity = {
            "run": run,
            "event": plan.event.to_json(),
            "columns": list(source.names),
            "ledger": book.identity if book else None,
            "table": table_identity(source),
        }
        size = tiling(plan, source.bounds, resources).size
        if folder and begun:
            _same_run(folder, begun, identity, new_run)
            finished = folder.result
            if finished is not None:
                folder.clear()
                return replace(ScreenResult.from_json(finished), flavour=flavour_of(table))
            folder.check_key(key)
            key, size = folder.key, begun["tile"]
        elif folder:
            folder.begin({**identity, "tile": size}, key)
        receipt = _charged(book, plan, folder, resumed=bool(begun))
        task = Task(source, plan, resources, size)
        crew = Here(task, key, devices)
        if client is not None and folder:
            crew = Cluster(task, folder, client)
        pairs, values = released(task, key, folder, crew)
        result = _result(plan, pairs, values, secret, receipt, run, flavour_of(table))
        if folder:
            folder.finish(result.to_json())
        return result


def _run_id(plan: Plan, key: AnyKey) -> str:
    """Random, but for a seeded run, which has to come out the same each time."""
    if is_secret(key):
        return secrets.token_hex(16)
    words = np.asarray(jax.random.key_data(noise_key(key))).tobytes()
    return _SEEDED + hashlib.sha256(words + plan.event.digest).hexdigest()[:25]


def _same_run(
    folder: Folder, begun: dict[str, Any], identity: dict[str, Any], new_run: str
) -> None:
    different = [name for name, value in identity.items() if begun.get(name) != value]
    # Runs of secret keys have random names; that of a seeded one tells its seed.
    runs = {begun["run"], new_run}
    if len(runs) > 1 and any(run.startswith(_SEEDED) for run in runs):
        different.append("seed")
    if different:
        what = {
            "event": "other settings (table, bounds, ask, epsilon, delta or statistic)",
            "columns": "the columns in another order",
            "ledger": "another ledger",
            "table": "another table, or the table's file has changed since",
            "seed": "another key",
        }
        raise ValueError(
            f"out={folder.path} holds a run with {what[different[0]]}; use a new folder, or "
            "repeat the call that began it"
        )


def _charged(
    book: LedgerFile | None, plan: Plan, folder: Folder | None, *, resumed: bool
) -> Receipt | None:
    """Charge the run's event, unless it was before the run was interrupted.

    The event of a secret run is its own: the label has a random number. That of a seeded run may
    be there from a run in another folder, maybe of another table: a new run is always charged.
    """
    if book is None:
        return None
    try:
        return book.charge_once(plan.event) if resumed else book.charge(plan.event)
    except (BudgetExceeded, ValueError):
        if folder:  # nothing was charged, so nothing is left to go on with
            folder.abandon()
        raise


def _result(
    plan: Plan,
    pairs: Positions,
    values: np.ndarray,
    secret: bool,
    receipt: Receipt | None,
    run: str,
    flavour: str | None,
) -> ScreenResult:
    return ScreenResult(
        names=plan.names,
        pairs=pairs,
        mic=values,
        noise_sd=plan.noise_sd,
        half_width=plan.noise_quantile(0.025),
        independence=dependence_level(plan),
        candidates=len(plan.pairs),
        ask=str(plan.ask),
        statement=_statement(plan, secret, receipt, run),
        flavour=flavour,
    )


def _statement(plan: Plan, secret: bool, receipt: Receipt | None, run: str) -> Statement:
    from dpmic_jax import __version__

    return Statement(
        relation=plan.event.relation,
        epsilon=plan.epsilon,
        delta=plan.spent_delta,
        mechanism=plan.mechanism,
        guarantee=plan.guarantee_text,
        sensitivity=float(plan.event.sensitivity),
        n=plan.n,
        B=cells(plan.statistic.B, plan.n),
        c=float(plan.statistic.c),
        sizes=dict(plan.event.settings)["sizes"],
        secret=secret,
        version=__version__,
        ledger=None if receipt is None else f"{receipt.ledger}#{receipt.serial}",
        run=run,
        event=plan.event.to_json(),
    )
