"""What mechanisms on pairs of columns share: release one pair, or many, once it is paid for."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Int, PRNGKeyArray

from dpmic_jax.data.limits import Bounds
from dpmic_jax.data.table import BoundsOf, Pairs, Table, bounds_of, positions
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.rng.keys import event_key
from dpmic_jax.mechanisms.inputs import Held, held_pair, held_table
from dpmic_jax.mechanisms.release import Key, PrivateValue
from dpmic_jax.mic.batch import Device
from dpmic_jax.runs.charged import AnyLedger, ChargedRun, Payment, charged_release

Released = TypeVar("Released", bound=PrivateValue)
Positions = Int[np.ndarray, "pairs 2"]

ONE_PAIR = np.array([[0, 1]])


class PairMechanism(ABC, Generic[Released]):
    """A mechanism that releases something of pairs of columns."""

    @abstractmethod
    def event(self, n: int, *, count: int = 1, label: str = "") -> Event:
        """What the release of `count` pairs costs, before any data is seen.

        Args:
          n: number of records; public.
          count: how many pairs are released; each of them costs the guarantee.
          label: what tells this release from others that share its key and settings. Noise
            depends on the key, the event of one pair, and the pair: with the same three it is
            the same, and two releases of different data would give their difference away.
        """

    def _noise_key(self, n: int, run: ChargedRun) -> PRNGKeyArray:
        """By the event of one pair: its noise is the same in a batch of any size."""
        return event_key(run.key, self.event(n, label=run.event.label))

    def _alone(self, found: Released) -> Released:
        """A release of one pair, without the axis of pairs."""
        return replace(found, value=np.asarray(found.value).item())


class OnBounds(PairMechanism[Released]):
    """A mechanism whose columns have public bounds."""

    def release(
        self,
        x: Any,
        y: Any,
        *,
        bounds: Sequence[Bounds],
        key: Key,
        label: str = "",
        event: Event | None = None,
        ledger: AnyLedger = None,
    ) -> Released:
        """Release one pair.

        Args:
          x, y: two columns of numbers, record by record. What is no number, or missing, counts
            as the midpoint of the bounds.
          bounds: public ((x_low, x_high), (y_low, y_high)); values outside are clipped.
          key: `secret_key()`, or a seeded JAX key for research.
          label: as for `event`. Under a secret key a random number is added to it, so that no
            two releases share their noise.
          event: what was charged by hand, `event(n)`; it is released as it is, and once.
          ledger: a ledger's file to charge, before anything is computed.
        """
        payment = Payment(key, label, event, ledger)
        return self._alone(self._paid(held_pair(x, y), ONE_PAIR, bounds, payment))

    def release_batch(
        self,
        X: Any,
        *,
        pairs: Pairs,
        bounds: BoundsOf,
        key: Key,
        label: str = "",
        event: Event | None = None,
        ledger: AnyLedger = None,
        devices: Sequence[Device] = (),
    ) -> Released:
        """Release many pairs of columns of a table, each at the full cost of one.

        The noise of a pair depends on the key, the event and the places of its two columns.

        Args:
          X: an array of records by columns, or a data frame.
          pairs: the two columns of each pair, by name or position.
          bounds: public (low, high) of each column, in order or by name.
          key, label, event, ledger: as for `release`; an event charged by hand is
            `event(n, count=len(pairs))`.
          devices: where to run.
        """
        held = held_table(X)
        payment = Payment(key, label, event, ledger)
        return self._paid(held, positions(held.names, pairs), bounds, payment, devices)

    def _paid(
        self,
        held: Held,
        pairs: Positions,
        bounds: BoundsOf,
        payment: Payment,
        devices: Sequence[Device] = (),
    ) -> Released:
        limits = bounds_of(held.names, bounds, "bounds")
        with charged_release(self.event, held.n, len(pairs), payment) as run:
            return self.release_paid(held.coded(limits), limits, pairs, run, devices)

    @abstractmethod
    def release_paid(
        self,
        data: Table,
        limits: Sequence[Bounds],
        pairs: Positions,
        run: ChargedRun,
        devices: Sequence[Device],
    ) -> Released:
        """Release pairs, by their positions in a table, in a run that is paid for."""
