"""The protocol of every release that costs privacy: check, charge durably, compute, finish.

1. The ledger is opened, and has to belong to this data set.
2. The event is made: everything that the run will cost, independent of the values. Under a secret
   key its label contains a random number, so no two runs draw the same noise. Seeded keys repeat
   their noise by design, and results say that they are seeded.
3. An event that exceeds the budget is refused, before a cell is parsed.
4. A run with a folder stores there its key, its event, and a keyed digest of the records. The
   digest is the only thing that is computed from values before the charge.
5. The ledger is charged, and the charge is on the disk.
6. Only then is anything else computed from values.

A run that is resumed from its folder uses the number and the key that are stored there, and is
charged once. It is refused on other records than it began with: the noise of two tables from one
key would cancel in their difference. That is the only refusal that depends on values.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from dpmic_jax.data.schema import Schema
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.ledger.file import BudgetExceeded, LedgerFile, LedgerRefused, Receipt
from dpmic_jax.dp.rng.errors import KeyLostError
from dpmic_jax.dp.rng.keys import AnyKey, is_secret, noise_key
from dpmic_jax.runs import stage
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.data_set import check_data_set
from dpmic_jax.runs.digest import records_digest

AnyLedger = LedgerFile | str | os.PathLike[str] | None
Records = Callable[[AnyKey], Iterable[tuple[np.ndarray, ...]]]

_SEEDED = "seeded-"  # prefix of the names of seeded runs
_OTHER = {
    "event": "other settings (table, bounds, ask, epsilon, delta or statistic)",
    "bounds": "other bounds",
    "columns": "the columns in another order",
    "categories": "nominal categories in another order",
    "ledger": "another ledger",
    "table": "another table, or its file has changed since",
    "seed": "another key",
}
# Digests of the (secret key, event) for which this process has drawn noise.
_drawn: set[bytes] = set()


@dataclass(frozen=True)
class ChargedRun:
    """A run whose event was charged.

    Attributes:
      event: the event that was charged.
      name: the name of the run, which is in the event's label.
      key: the key from which noise is drawn.
      receipt: the receipt of the charge; None if there is no ledger.
      folder: the folder to resume from, if there is one.
      kept: the description of the run in its folder.
      result: the stored result of a run that finished before.
    """

    event: Event
    name: str
    key: AnyKey
    receipt: Receipt | None = None
    folder: Folder | None = None
    kept: Mapping[str, Any] | None = None
    result: str | None = None

    @property
    def entry(self) -> str | None:
        """The ledger entry of the charge as "identity#serial"; None without a ledger."""
        return None if self.receipt is None else f"{self.receipt.ledger}#{self.receipt.serial}"

    def finish(self, result: str) -> None:
        """Store the result in the folder, if there is one."""
        if self.folder is not None:
            self.folder.finish(result)


def open_ledger(ledger: AnyLedger) -> LedgerFile | None:
    """The ledger at a path; a `LedgerFile` or None is returned as it is."""
    return ledger if isinstance(ledger, LedgerFile | None) else LedgerFile.open(ledger)


@contextmanager
def charged_run(
    event: Callable[[str], Event],
    *,
    key: AnyKey,
    ledger: LedgerFile | None,
    schema: Schema | None,
    folder: Folder | None = None,
    public: Mapping[str, Any] | None = None,
    kept: Mapping[str, Any] | None = None,
    records: Records | None = None,
    check: Callable[[], object] = bool,
) -> Iterator[ChargedRun]:
    """Charge a run, or resume one that was charged, and enter the block after that.

    Args:
      event: the event of a run, by its name; called with "" to check that it can be made.
      key: the caller's key.
      ledger: the ledger to charge. Without one, accounting is left to the caller.
      schema: the schema of the data, which the ledger's data set has to match; None skips the
        check.
      folder: the folder from which the run can be resumed.
      public: public facts that a resumed run has to share with the run that began.
      kept: other facts to store in the folder.
      records: reads the records that a key of a run draws, for their digest; for runs with a
        folder.
      check: raises an error if a new run should not be charged; a resumed run is not checked.
    """
    if ledger is not None and schema is not None:
        check_data_set(ledger, schema)
    # An impossible event raises here, before a folder is made.
    new = run_name(event(""), key)
    # The lock is held until the run ends: two processes in one folder might both be charged.
    with folder.locked() if folder else nullcontext():
        begun = folder.begun if folder else None
        name = begun["run"] if begun else new
        made = event(name)
        identity = {
            "run": name,
            "event": made.to_json(),
            "ledger": ledger.identity if ledger else None,
            "bounds": None if schema is None else bounds_digest(schema),
            **(public or {}),
        }
        if folder and begun:
            _check_same_run(folder, begun, identity, new)
            # A finished run returns its result. Nothing is charged, and no noise is drawn.
            if (result := folder.result) is not None:
                folder.clear()  # removes what a kill after the result left
                yield ChargedRun(made, name, key, folder=folder, kept=begun, result=result)
                return
            # The stored key, not the caller's: a resumed run draws the same noise.
            key = _kept_key(folder, key, ledger, made, begun)
            _check_same_records(folder, begun, records, key)
            stage.begun(resume=folder.path)
        else:
            claim(key, made)
            with _undone(folder):
                # Refused before the records are read for their digest, which takes a while.
                if ledger is not None:
                    ledger.check(made)
                check()
                if folder:
                    data = None if records is None else records_digest(records(key), key)
                    start = {"data": data, "entries": ledger.entries if ledger else 0}
                    folder.begin({**identity, **(kept or {}), **start}, key)
        receipt = _charged(ledger, made, folder, begun)
        yield ChargedRun(made, name, key, receipt, folder, begun or kept)


class ReleaseCharge(NamedTuple):
    """How one release is charged: arguments of `mechanisms.base.OnBounds.release`."""

    key: AnyKey
    label: str = ""
    event: Event | None = None
    ledger: AnyLedger = None


@contextmanager
def charged_release(
    cost: Callable[..., Event], n: int, count: int, charge: ReleaseCharge
) -> Iterator[ChargedRun]:
    """Charge a run of one release, which has no folder.

    Args:
      cost: makes the event from n, count= and label=.
      n: number of records.
      count: number of released values.
      charge: the caller's key, label, event and ledger.
    """
    key, label, already_charged, ledger = charge
    if already_charged is not None:
        if label or ledger is not None:
            raise ValueError(
                "expected either event=, which the caller has charged and labelled, or label= and "
                "ledger=; not both"
            )
        if already_charged != cost(n, count=count, label=already_charged.label):
            raise ValueError(
                "expected the event of this release: event(n, count=...) of this mechanism, "
                f"with n = {n} and count = {count}"
            )

    def event(run: str) -> Event:
        if already_charged is not None:
            return already_charged
        own = f"run {run}" if is_secret(key) else ""
        return cost(n, count=count, label=", ".join(filter(None, (label, own))))

    with charged_run(event, key=key, ledger=open_ledger(ledger), schema=None) as run:
        yield run


def run_name(event: Event, key: AnyKey) -> str:
    """A random name, or a digest of key and event for a seeded run, which has to be repeatable."""
    if is_secret(key):
        return secrets.token_hex(16)
    # Seeds are not secret, so a digest of the key may be public.
    words = np.asarray(jax.random.key_data(noise_key(key))).tobytes()
    return _SEEDED + hashlib.sha256(words + event.digest).hexdigest()[:25]


def claim(key: AnyKey, event: Event) -> None:
    """Refuse an event for which this secret key has already drawn noise in this process.

    Events that differ only in their count share the noise of a pair, so they count as equal.
    """
    if not is_secret(key):
        return
    words = np.asarray(jax.random.key_data(noise_key(key))).tobytes()
    drawn = hashlib.sha256(words + replace(event, count=1).digest).digest()
    if drawn in _drawn:
        raise ValueError(
            "this event was already released with this key, and would get the same noise again; "
            "charge a new event with another label, or use a new secret_key()"
        )
    _drawn.add(drawn)


def bounds_digest(schema: Schema) -> str:
    """A digest of the public description of a table."""
    return hashlib.sha256(schema.canonical().encode()).hexdigest()[:16]


def _kept_key(
    folder: Folder, key: AnyKey, ledger: LedgerFile | None, event: Event, begun: Mapping[str, Any]
) -> AnyKey:
    """The stored key of a resumed run; if it is lost, what was charged is spent."""
    try:
        folder.check_key(key)
        return folder.key
    except KeyLostError:
        if ledger is not None and _is_charged(ledger, event, begun.get("entries", 0)):
            stage.charged(resume=None)
        raise


def _charged(
    ledger: LedgerFile | None, event: Event, folder: Folder | None, begun: Mapping[str, Any] | None
) -> Receipt | None:
    """Charge the event of a run, unless it was charged before the run was interrupted.

    The event of a run with a secret key is unique, because its label contains a random number. The
    event of a seeded run may already be there, from a run in another folder and maybe of another
    table. So a new run is always charged, and a resumed run looks only at entries that are newer
    than its start.
    """
    resume = folder.path if folder else None
    if ledger is None:
        if resume:
            stage.begun(resume=resume)
        return None
    before = ledger.entries if begun is None else begun.get("entries", 0)
    with stage.charging():
        try:
            with _undone(folder):
                if begun is None:
                    receipt = ledger.charge(event)
                else:
                    receipt = ledger.charge_once(event, after=before)
        except (OSError, LedgerRefused):
            # The disk may have failed after the charge was written.
            if _is_charged(ledger, event, before):
                stage.charged(resume=resume)
            raise
        stage.charged(resume=resume)
        return receipt


def _is_charged(ledger: LedgerFile, event: Event, after: int) -> bool:
    """Whether the event is among the entries after `after`; True if the ledger cannot be read."""
    try:
        return any(one == event for serial, one in ledger.charges.items() if serial > after)
    except (OSError, LedgerRefused):
        return True


@contextmanager
def _undone(folder: Folder | None) -> Iterator[None]:
    """Remove the folder if the run is refused before its charge: there is nothing to resume."""
    try:
        yield
    # Not OSError: a charge that fails on the disk may have been written, so its folder has to stay.
    except (BudgetExceeded, ValueError):
        if folder:
            folder.abandon()
            stage.reset()
        raise


def _check_same_run(
    folder: Folder, begun: Mapping[str, Any], identity: Mapping[str, Any], new: str
) -> None:
    # Version 0.1.0 stored the bounds only in the label of the event, where screens still have them.
    kept = {"bounds": identity["bounds"], **begun} if "format" not in begun else begun
    different = [name for name, value in identity.items() if kept.get(name) != value]
    # Names of runs with secret keys are random. Names of seeded runs depend on their seed.
    runs = {begun["run"], new}
    if len(runs) > 1 and any(run.startswith(_SEEDED) for run in runs):
        different.append("seed")
    if different:
        raise ValueError(
            f"out={folder.path} holds a run with {_OTHER.get(different[0], different[0])}; use a "
            "new folder, or repeat the call that began it"
        )


def _check_same_records(
    folder: Folder, begun: Mapping[str, Any], records: Records | None, key: AnyKey
) -> None:
    if records is not None and records_digest(records(key), key) != begun.get("data"):
        raise ValueError(
            f"out={folder.path} holds a run on other records than these, and one key must not be "
            "used for two tables; resume with the table it began with, or use a new folder"
        )
