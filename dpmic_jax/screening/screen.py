"""`screen`: find dependent columns of a sensitive table, for one privacy budget."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpmic_jax.data.source import open_source
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.rng.keys import AnyKey, is_secret
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.results import ScreenResult, backend_of
from dpmic_jax.runs.charged import AnyLedger, bounds_digest, charged_run, open_ledger
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.persons import drawn
from dpmic_jax.runs.relation import persons_of, relation_of
from dpmic_jax.screening import distributed, planning
from dpmic_jax.screening.distributed import Cluster
from dpmic_jax.screening.execution import LocalExecutor, ScreenTask, released
from dpmic_jax.screening.outcome import result_of, statement_of
from dpmic_jax.screening.planning import Rule, check_not_lost, default_screen_statistic
from dpmic_jax.screening.queries import Ask
from dpmic_jax.screening.tiles import DEFAULT, Resources, tiling


def screen(
    table: Any,
    *,
    bounds: Any,
    epsilon: float,
    delta: float = 0.0,
    ask: Ask,
    key: AnyKey,
    ledger: AnyLedger = None,
    out: str | os.PathLike[str] | None = None,
    records_per_person: int = 1,
    relative: Sequence[str] = (),
    statistic: MICr | Rule = default_screen_statistic,
    resources: Resources = DEFAULT,
    devices: Sequence[Device] = (),
    client: Any = None,
    force: bool = False,
) -> ScreenResult:
    """Screen a table for dependent columns, (epsilon, delta)-DP for every person in it.

    A first pass checks the structure of the table and counts its records. Then the ledger is
    charged, durably. Only after that is anything computed from values (`runs.charged`). The same
    call with the same `out` resumes a run that was interrupted, bit for bit, and is charged once;
    when the run is finished, the call returns its result again.

    Args:
      table: an array, a data frame, the path of a CSV or Parquet file or of a folder of Parquet
        files, a `Query`, or another table that `data.source.open_source` takes.
      bounds: public bounds: {name: (low, high)}, a `Schema`, or the path of a bounds file.
      epsilon, delta: upper bounds of the privacy cost of the whole release.
      ask: `AllPairs()`, `Against(column)`, `Between(columns_a, columns_b)`, `TopK(k)` or
        `Above(threshold, at_most)`.
      key: `secret_key()`; or `seeded_key(seed)` for research, which marks every output as seeded.
      ledger: a ledger to charge. Without one, account for the cost yourself.
      out: the folder of the run, from which it can be resumed.
      records_per_person: largest number of records of one person, which is not checked. Bounds
        with `person`, a column of ids, have it themselves, and enforce it (`data.source.persons`).
      relative: columns with rare values, such as flags. Their distance from themselves is released
        too, with the same noise, and distances are shown relative to it (`results.relative`).
      statistic: a `MICr`, or a rule (n, epsilon for each pair) -> MICr.
      resources: memory, records read at a time, pairs stored together.
      devices: devices of this machine, over which pairs are split.
      client: a `dask.distributed.Client` whose workers compute the tiles. They have to see the
        file of the table and the folder of the run under the same paths.
      force: screen even if noise will hide every dependence; else that is refused, uncharged.
    """
    secret = is_secret(key)  # refuses what is no key, before any work
    ledger_file = open_ledger(ledger)
    folder = None if out is None else Folder(Path(out).absolute())
    source = open_source(table, bounds)
    relation = relation_of(source.schema, records_per_person)
    if client is not None:
        distributed.check(source, folder)
    # The file of a finished run is not read again.
    done = folder.records if folder and source.path else None
    n = source.validate() if done is None else done

    plan = planning.plan(
        names=source.names,
        n=n,
        ask=ask,
        epsilon=epsilon,
        delta=delta,
        statistic=statistic,
        relation=relation,
        relative=relative,
        bounds=source.bounds,
    )
    size = tiling(plan, source.bounds, resources).size

    def event(run: str) -> Event:
        # Noise depends on the event, so runs with other bounds draw other noise.
        return replace(plan.event, label=f"run {run}, bounds {bounds_digest(source.schema)}")

    with charged_run(
        event,
        key=key,
        ledger=ledger_file,
        schema=source.schema,
        folder=folder,
        public={"columns": list(source.names), "table": source.identity()},
        kept={"tile": size},
        records=lambda key: drawn(source, key).batches(resources.rows),
        check=lambda: force or check_not_lost(plan),
    ) as run:
        if run.result is not None:
            return replace(ScreenResult.from_json(run.result), backend=backend_of(table))
        plan = replace(plan, event=run.event)
        # A resumed run keeps the tile size with which it began, as its stored tiles have it.
        task = ScreenTask(source, plan, resources, run.kept["tile"] if run.kept else size)
        executor = LocalExecutor(task, run.key, devices)
        if client is not None and folder:
            executor = Cluster(task, folder, client)
        found = released(task, run.key, folder, executor)
        statement = statement_of(
            plan,
            persons=persons_of(source.schema, n),
            key_is_secret=secret,
            ledger=run.entry,
            run=run.name,
        )
        result = result_of(plan, found, statement, backend_of(table))
        run.finish(result.to_json())
        return result
