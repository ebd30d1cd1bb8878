"""What mechanisms on pairs of columns share: the event of a release, and one pair or many.

A mechanism says what it releases (`release_charged`), what that costs (`guarantee`, `sensitivity`,
`settings`), and how a rule among its settings is settled for n records (`settled`). Reading the
input, charging and drawing keys is done here, in the same order for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, Self, TypeVar

import numpy as np
from jaxtyping import Int, PRNGKeyArray

from dpmic_jax.data.limits import NumberLimits
from dpmic_jax.data.table import BoundsOf, Pairs, Table, bounds_of, positions
from dpmic_jax.dp.accounting.events import Event, Guarantee, ReplaceOne
from dpmic_jax.dp.rng.keys import event_key
from dpmic_jax.mechanisms.inputs import Held, held_pair, held_table
from dpmic_jax.mechanisms.release import Key, PrivateValue
from dpmic_jax.mic.backends import Device
from dpmic_jax.runs.charged import AnyLedger, ChargedRun, ReleaseCharge, charged_release

Released = TypeVar("Released", bound=PrivateValue)
Positions = Int[np.ndarray, "pairs 2"]
Settings = tuple[tuple[str, str], ...]

_ONE_PAIR = np.array([[0, 1]])


@dataclass(frozen=True, kw_only=True)
class PairMechanism(ABC, Generic[Released]):
    """A mechanism that releases something of pairs of columns.

    Attributes:
      relation: how many records one person may own.
    """

    relation: ReplaceOne = ReplaceOne()

    @abstractmethod
    def guarantee(self, n: int) -> Guarantee:
        """The privacy guarantee of the release of one pair."""

    @abstractmethod
    def sensitivity(self, n: int) -> Fraction:
        """The most that one person's records move what noise is added to, rounding included."""

    @abstractmethod
    def settings(self, n: int) -> Settings:
        """The public settings for n records, as an event keeps them."""

    def settled(self, n: int, count: int = 1) -> Self:
        """This mechanism with every rule among its settings replaced by its value.

        Args:
          n: number of records.
          count: how many pairs are released.
        """
        return self

    @abstractmethod
    def release_charged(
        self,
        data: Table,
        limits: Sequence[NumberLimits] | None,
        pairs: Positions,
        run: ChargedRun,
        devices: Sequence[Device],
    ) -> Released:
        """Release pairs, by their positions in a table, in a run that has been charged."""

    def event(self, n: int, *, count: int = 1, label: str = "") -> Event:
        """The privacy event of a release of `count` pairs, before any data is seen.

        Args:
          n: number of records; public.
          count: how many pairs are released; each of them costs the guarantee.
          label: what tells this release from others that share its key and settings. Noise
            depends on the key, the event of one pair, and the pair: with the same three it is
            the same, and two releases of different data would give their difference away.
        """
        settled = self.settled(n, count)
        return Event(
            mechanism=type(self).__name__,
            guarantee=settled.guarantee(n),
            relation=self.relation,
            n=n,
            sensitivity=settled.sensitivity(n),
            count=count,
            settings=settled.settings(n),
            label=label,
        )

    def _noise_key(self, n: int, run: ChargedRun) -> PRNGKeyArray:
        """By the event of one pair: its noise is the same in a batch of any size."""
        return event_key(run.key, self.event(n, label=run.event.label))

    def _alone(self, found: Released) -> Released:
        """A release of one pair, without the axis of pairs."""
        return replace(found, value=np.asarray(found.value).item())

    def _release_pair(
        self, held: Held, limits: Sequence[NumberLimits] | None, charge: ReleaseCharge
    ) -> Released:
        return self._alone(self._release_pairs(held, _ONE_PAIR, limits, charge, ()))

    def _release_pairs(
        self,
        held: Held,
        pairs: Positions,
        limits: Sequence[NumberLimits] | None,
        charge: ReleaseCharge,
        devices: Sequence[Device],
    ) -> Released:
        """Charge, and only then look at values. A rule is asked once: it may be slow."""
        settled = self.settled(held.n, len(pairs))
        with charged_release(settled.event, held.n, len(pairs), charge) as run:
            return settled.release_charged(held.coded(limits), limits, pairs, run, devices)


class OnBounds(PairMechanism[Released]):
    """A mechanism whose columns have public bounds."""

    def release(
        self,
        x: Any,
        y: Any,
        *,
        bounds: Sequence[NumberLimits],
        key: Key,
        label: str = "",
        event: Event | None = None,
        ledger: AnyLedger = None,
    ) -> Released:
        """Release one pair.

        Args:
          x, y: two columns of numbers, record by record. What is no number, or missing, counts
            as the middle of the bounds, on their scale.
          bounds: public ((x_low, x_high), (y_low, y_high)), or `ScaledBounds` for either; values
            outside are clipped.
          key: `secret_key()`, or a seeded JAX key for research.
          label: as for `event`. Under a secret key a random number is added to it, so that no
            two releases share their noise.
          event: what was charged by hand, `event(n)`; it is released as it is, and once.
          ledger: a ledger's file to charge, before anything is computed.
        """
        held = held_pair(x, y)
        limits = bounds_of(held.names, bounds, "bounds")
        return self._release_pair(held, limits, ReleaseCharge(key, label, event, ledger))

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
          bounds: public (low, high) or `ScaledBounds` of each column, in order or by name.
          key, label, event, ledger: as for `release`; an event charged by hand is
            `event(n, count=len(pairs))`.
          devices: where to run.
        """
        held = held_table(X)
        chosen = positions(held.names, pairs)
        limits = bounds_of(held.names, bounds, "bounds")
        charge = ReleaseCharge(key, label, event, ledger)
        return self._release_pairs(held, chosen, limits, charge, devices)
