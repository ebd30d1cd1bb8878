"""Recompute later what can be checked of a finished screen, without its table or its key.

The released values are compared with nothing but their lattice and their copies: whoever can write
all files of a run and its ledger can forge them. What follows from public numbers is recomputed:
the event gives the plan, and the plan with the released values gives every limit, threshold and
sentence of the result.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpmic_jax.dp.accounting.events import ZCDP, Event, GaussianDP
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.ledger.file import LedgerFile, LedgerRefused
from dpmic_jax.mic.grids import all_sizes, definition, ladder, reshef
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.results import ScreenResult, Statement
from dpmic_jax.results.export import csv_text, header, statement_path, statement_text
from dpmic_jax.screening.execution import Released
from dpmic_jax.screening.outcome import plan_of, result_of, statement_of
from dpmic_jax.screening.plan import Plan
from dpmic_jax.screening.planning import default_screen_statistic
from dpmic_jax.screening.queries import Above
from dpmic_jax.version import __version__


class Check(NamedTuple):
    """The outcome of one check.

    Attributes:
      what: what was compared.
      agrees: None if it could not be checked.
      detail: why it was not checked, or what differs; no value of the data.
    """

    what: str
    agrees: bool | None
    detail: str = ""


def verify(
    run: str | os.PathLike[str], *, ledger: str | os.PathLike[str] | None = None
) -> tuple[Check, ...]:
    """Check the result of a screen against its event, its folder and the ledger.

    Args:
      run: the folder of a finished screen, or its result.json.
      ledger: the ledger that was charged; without it, the charge is not checked.
    """
    source = Path(run) / "result.json" if Path(run).is_dir() else Path(run)
    if not source.is_file():
        raise FileNotFoundError(f"no result at {source}; a screen writes one when it finishes")
    ledger_file = None if ledger is None else LedgerFile(Path(ledger))
    if ledger_file is not None and not ledger_file.path.is_file():
        raise FileNotFoundError(f"there is no ledger at {ledger_file.path}")
    text = source.read_text("utf-8")
    _check_kind(source, text)
    try:
        result = ScreenResult.from_json(text)
    except ValueError as error:
        return (Check(source.name, agrees=False, detail=str(error)),)
    return (
        Check(source.name, agrees=True),
        _guarantee(result.statement),
        _recomputed(result),
        *_description(source.with_name("run.json"), result),
        *_copies(source, result),
        _charge(ledger_file, result.statement),
    )


def _check_kind(source: Path, text: str) -> None:
    """Refuse what is no result of a screen: that is another file, not a changed one."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{source} is not JSON") from error
    if not isinstance(content, dict) or not {"pairs", "privacy", "candidates"} <= content.keys():
        raise ValueError(f"{source} is not the result of a screen, which is all that is verified")


def _guarantee(statement: Statement) -> Check:
    """Epsilon and delta of the statement against the guarantee of its event."""
    what = "epsilon and delta of the statement, by its event"
    event = Event.from_json(statement.event)
    kind = event.guarantee
    if isinstance(kind, ZCDP | GaussianDP):
        if not statement.delta:
            return Check(what, agrees=False, detail="the event needs a delta, and there is none")
        budget = Budget(statement.epsilon, statement.delta, statement.relation)
        same = kind.rho == budget.rho if isinstance(kind, ZCDP) else kind.mu == budget.mu
    else:
        same = (event.epsilon, event.delta) == (statement.epsilon, statement.delta)
    differ = "" if same else f"the event has {kind}, the statement has {statement.cost}"
    return Check(what, agrees=same, detail=differ)


def _recomputed(result: ScreenResult) -> Check:
    what = "statement, threshold, noise and limits, recomputed from the event"
    planned = next(_plans(result), None)
    if planned is None:
        detail = "the event is not that of a plan of this version, with MICr as it is stated"
        return Check(what, agrees=None, detail=detail + _other_version(result.statement))
    expected = _rebuilt(planned, result)
    if expected is None:
        return Check(what, agrees=False, detail="pairs: the query has not asked for all of them")
    was, now = header(result), header(expected)
    fields = [name for name in was if name != "privacy" and was[name] != now[name]]
    privacy, other = result.statement.to_dict(), expected.statement.to_dict()
    fields += [f"privacy.{name}" for name in privacy if privacy[name] != other[name]]
    columns = {name: getattr(result, name) for name in ("mic", "lower", "upper", "distance")}
    fields += [
        f"pairs.{name}"
        for name, values in columns.items()
        if not np.array_equal(values, getattr(expected, name))
    ]
    if _off_lattice(planned, result):
        fields.append("pairs: not on the lattice of released values")
    detail = ", ".join(fields) + _other_version(result.statement) if fields else ""
    return Check(what, agrees=not fields, detail=detail)


def _plans(result: ScreenResult) -> Iterator[Plan]:
    """Plans that have the event of the result: with the default MICr, and with the stated one."""
    event = Event.from_json(result.statement.event)
    for statistic in (default_screen_statistic, _stated_micr(dict(event.settings))):
        if statistic is None:
            continue
        try:
            planned = plan_of(result, statistic)
        except (ValueError, KeyError, TypeError, SyntaxError):  # of an event that was changed
            continue
        # A different budget gives different noise; epsilon itself is compared by `_guarantee`.
        if planned.event == event:
            yield planned


def _stated_micr(settings: dict[str, str]) -> MICr | None:
    """MICr with the settings of an event; None if it has none, or rules of the caller's own."""
    step = re.fullmatch(r"ladder\(ratio=([0-9.e+-]+)\)", settings.get("sizes", ""))
    sizes = (
        ladder(float(step[1])) if step else {"all_sizes": all_sizes}.get(settings.get("sizes", ""))
    )
    master = {"reshef": reshef, "definition": definition}.get(settings.get("master", ""))
    if sizes is None or master is None:
        return None
    return MICr(B=int(settings["B"]), c=float(settings["c"]), sizes=sizes, master=master)


def _rebuilt(planned: Plan, result: ScreenResult) -> ScreenResult | None:
    """The result as the plan makes it of the released values; None if it never makes such pairs."""
    allowed = set(map(tuple, np.sort(planned.pairs, axis=1).tolist()))
    pairs = set(map(tuple, np.sort(result.pairs, axis=1).tolist()))
    most, fewest = planned.released, 0 if isinstance(planned.ask, Above) else planned.released
    if not pairs <= allowed or not fewest <= len(pairs) <= most:
        return None
    statement = result.statement
    released = Released(
        result.pairs,
        result.distance,
        None if planned.values is None else result.mic,
        np.array([result.own[name] for name in planned.relative]),
    )
    stated = statement_of(
        planned,
        persons=statement.persons,
        key_is_secret=statement.key_is_secret,
        ledger=statement.ledger,
        run=statement.run,
        version=statement.version,
    )
    return replace(result_of(planned, released, stated), backend=result.backend)


def _off_lattice(planned: Plan, result: ScreenResult) -> bool:
    """Whether a released value is none that noise gives."""
    columns = [(result.distance, planned.distances)]
    if planned.values is not None:
        columns.append((result.mic, planned.values))
    scaled = [values * 2.0**noise.lattice.bits for values, noise in columns]
    return any(bool(np.any(each != np.floor(each))) for each in scaled)


def _other_version(statement: Statement) -> str:
    if statement.version == __version__:
        return ""
    return f" (written by dpmic_jax {statement.version}; this is {__version__})"


def _description(path: Path, result: ScreenResult) -> Iterator[Check]:
    """The description that was written before the charge."""
    what = f"{path.name}, written before the charge"
    if not path.is_file():
        yield Check(what, agrees=None, detail="it is not there")
        return
    statement = result.statement
    try:
        begun: dict[str, Any] = json.loads(path.read_text())
        event = Event.from_json(statement.event)
        same = {
            "event": begun["event"] == statement.event,
            "run": begun["run"] == statement.run,
            "columns": begun["columns"] == list(result.names),
            "bounds": event.label == f"run {begun['run']}, bounds {begun['bounds']}",
            "ledger": begun["ledger"] == _ledger_entry(statement)[0],
        }
    except (KeyError, TypeError, ValueError):
        yield Check(what, agrees=False, detail="it is damaged")
        return
    different = [name for name, agrees in same.items() if not agrees]
    yield Check(what, agrees=not different, detail=", ".join(different))


def _copies(source: Path, result: ScreenResult) -> Iterator[Check]:
    """The files that `to_csv` wrote beside the result."""
    csv = source.with_name("result.csv")
    for path, text in (
        (csv, csv_text(result)),
        (statement_path(csv), statement_text(result)),
    ):
        if path.is_file():
            same = path.read_bytes() == text.encode()
            detail = "" if same else f"its values are not those of {source.name}"
            yield Check(path.name, agrees=same, detail=detail)
        else:
            yield Check(path.name, agrees=None, detail="it is not there")


def _ledger_entry(statement: Statement) -> tuple[str | None, int]:
    """The identity of the ledger and the number of the entry that a statement names."""
    if statement.ledger is None:
        return None, 0
    identity, _, serial = statement.ledger.rpartition("#")
    return identity, int(serial) if serial.isdecimal() else 0


def _charge(file: LedgerFile | None, statement: Statement) -> Check:
    what = "charge in the ledger"
    identity, serial = _ledger_entry(statement)
    if file is None:
        why = "the screen was charged to no ledger" if identity is None else "no ledger was given"
        return Check(what, agrees=None, detail=why)
    try:
        charges, found = file.charges, file.identity
    except LedgerRefused as error:
        return Check(what, agrees=False, detail=str(error))
    if identity is None:
        return Check(what, agrees=False, detail="the statement names no ledger")
    if found != identity:
        return Check(what, agrees=False, detail=f"the statement names another ledger, {identity}")
    if serial not in charges:
        return Check(what, agrees=False, detail=f"entry {serial} is no charge")
    same = charges[serial] == Event.from_json(statement.event)
    return Check(what, agrees=same, detail="" if same else f"entry {serial} is another event")
