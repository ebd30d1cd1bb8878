"""One protocol for everything that costs privacy: check, charge durably, compute, finish.

1. The ledger is opened, and has to be of this data set.
2. The event is made: all that the run will cost, which no value has a say in. Under a secret key
   its label has a random number of its own, so that no two runs draw the same noise. Seeded
   keys repeat by design, and results say that they are seeded.
3. What the budget does not hold is refused, before a cell is parsed.
4. A run with a folder keeps there its key, its event, and a keyed digest of the records, which
   is all that is computed from values before the charge.
5. The ledger is charged, and the charge is on the disk.
6. Only then is anything else computed from values.

A run that goes on in its folder takes the number and the key that are kept there, and is charged
once. It is refused on other records than it began with: the noise of two tables from one key would
cancel in a difference. That is the one verdict that depends on values.
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
Records = Callable[[], Iterable[tuple[np.ndarray, ...]]]

_SEEDED = "seeded-"  # what the names of such runs begin with
_OTHER = {
    "event": "other settings (table, bounds, ask, epsilon, delta or statistic)",
    "bounds": "other bounds",
    "columns": "the columns in another order",
    "ledger": "another ledger",
    "table": "another table, or the table's file has changed since",
    "seed": "another key",
}
# Digests of what secret keys of this process have drawn noise for.
_drawn: set[bytes] = set()


@dataclass(frozen=True)
class ChargedRun:
    """A run that is paid for.

    Attributes:
      event: what was charged.
      name: of the run; in the event's label.
      key: what noise is drawn from.
      receipt: of the charge; None if there is no ledger.
      folder: where it can go on, if it has one.
      kept: what the folder keeps of it.
      result: of a run that was done before.
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
        """Where the charge is: "identity#serial" of a ledger."""
        return None if self.receipt is None else f"{self.receipt.ledger}#{self.receipt.serial}"

    def finish(self, result: str) -> None:
        """Keep the result, if there is a folder to keep it in."""
        if self.folder is not None:
            self.folder.finish(result)


def opened(ledger: AnyLedger) -> LedgerFile | None:
    """A ledger from what callers pass."""
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
) -> Iterator[ChargedRun]:
    """Enter the block once the run is paid for.

    Args:
      event: name of the run -> what is charged; asked for "" to see whether it can be made.
      key: the caller's.
      ledger: to charge. Without one the caller keeps account.
      schema: of the data, for a ledger that knows its columns; without one the ledger is taken
        at its word.
      folder: where the run can go on.
      public: what a run that goes on has to have in common with the one that began.
      kept: what else the folder keeps.
      records: reads the records for their digest; for runs with a folder.
    """
    if ledger is not None and schema is not None:
        check_data_set(ledger, schema)
    new = run_name(event(""), key)
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
            if (result := folder.result) is not None:
                folder.clear()  # of what a kill after the result left
                yield ChargedRun(made, name, key, folder=folder, kept=begun, result=result)
                return
            key = _kept_key(folder, key, ledger, made, begun)
            _check_same_records(folder, begun, records, key)
            stage.begun(resume=folder.path)
        else:
            claim(key, made)
            with _undone(folder):
                if ledger is not None:
                    ledger.check(made)
                if folder:
                    data = None if records is None else records_digest(records(), key)
                    noted = {"data": data, "entries": ledger.entries if ledger else 0}
                    folder.begin({**identity, **(kept or {}), **noted}, key)
        receipt = _charged(ledger, made, folder, begun)
        yield ChargedRun(made, name, key, receipt, folder, begun or kept)


class Payment(NamedTuple):
    """How a single release is paid for: see `mechanisms.base.OnBounds.release`."""

    key: AnyKey
    label: str = ""
    event: Event | None = None
    ledger: AnyLedger = None


@contextmanager
def charged_release(
    cost: Callable[..., Event], n: int, count: int, payment: Payment
) -> Iterator[ChargedRun]:
    """A run of one release, which has no folder.

    Args:
      cost: n, count=, label= -> the event.
      n: number of records.
      count: how many are released.
      payment: as the caller says.
    """
    key, label, by_hand, ledger = payment
    if by_hand is not None:
        if label or ledger is not None:
            raise ValueError(
                "expected event=, which was charged by hand and has its label, or label= and "
                "ledger=; not both"
            )
        if by_hand != cost(n, count=count, label=by_hand.label):
            raise ValueError(
                "expected the event of this very release: event(n, count=...) of this mechanism, "
                f"with n = {n} and count = {count}"
            )

    def event(run: str) -> Event:
        if by_hand is not None:
            return by_hand
        own = f"run {run}" if is_secret(key) else ""
        return cost(n, count=count, label=", ".join(filter(None, (label, own))))

    with charged_run(event, key=key, ledger=opened(ledger), schema=None) as run:
        yield run


def run_name(event: Event, key: AnyKey) -> str:
    """Random, but for a seeded run, which has to come out the same each time."""
    if is_secret(key):
        return secrets.token_hex(16)
    words = np.asarray(jax.random.key_data(noise_key(key))).tobytes()
    return _SEEDED + hashlib.sha256(words + event.digest).hexdigest()[:25]


def claim(key: AnyKey, event: Event) -> None:
    """Refuse an event that a secret key of this process has drawn noise for already.

    Events that differ in their count only share the noise of a pair, so they count as one.
    """
    if not is_secret(key):
        return
    words = np.asarray(jax.random.key_data(noise_key(key))).tobytes()
    drawn = hashlib.sha256(words + replace(event, count=1).digest).digest()
    if drawn in _drawn:
        raise ValueError(
            "this event was released with this key before, and would get the same noise again; "
            "charge a new event, with a label of its own, or use a new secret_key()"
        )
    _drawn.add(drawn)


def bounds_digest(schema: Schema) -> str:
    """What tells the public description of a table from others."""
    return hashlib.sha256(schema.canonical().encode()).hexdigest()[:16]


def _kept_key(
    folder: Folder, key: AnyKey, ledger: LedgerFile | None, event: Event, begun: Mapping[str, Any]
) -> AnyKey:
    """The key of a run that goes on; if it is lost, what was charged is spent."""
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
    """Charge the run's event, unless it was before the run was interrupted.

    The event of a secret run is its own: the label has a random number. That of a seeded run may
    be there from a run in another folder, maybe of another table: a new run is always charged, and
    one that goes on looks behind the entries that were there when it began.
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
            # The disk may have failed after the charge was on it.
            if _is_charged(ledger, event, before):
                stage.charged(resume=resume)
            raise
        stage.charged(resume=resume)
        return receipt


def _is_charged(ledger: LedgerFile, event: Event, after: int) -> bool:
    """Whether the event may be in the ledger behind an entry; where that cannot be told it may."""
    try:
        return any(one == event for serial, one in ledger.charges.items() if serial > after)
    except (OSError, LedgerRefused):
        return True


@contextmanager
def _undone(folder: Folder | None) -> Iterator[None]:
    """Leave no folder behind where nothing was charged: there is nothing to go on with."""
    try:
        yield
    except (BudgetExceeded, ValueError):
        if folder:
            folder.abandon()
            stage.reset()
        raise


def _check_same_run(
    folder: Folder, begun: Mapping[str, Any], identity: Mapping[str, Any], new: str
) -> None:
    # Version 0.1.0 had the bounds in the label of the event only, where screens still have them.
    kept = {"bounds": identity["bounds"], **begun} if "format" not in begun else begun
    different = [name for name, value in identity.items() if kept.get(name) != value]
    # Runs of secret keys have random names; that of a seeded one tells its seed.
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
    if records is not None and records_digest(records(), key) != begun.get("data"):
        raise ValueError(
            f"out={folder.path} holds a run of other records than these, and one key must not "
            "serve two tables; go on with the table it began with, or use a new folder"
        )
