"""Private histograms for a report: their cells, and their privacy statement."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.dp.accounting.events import Event, PureDP
from dpmic_jax.results.axes import Axis, Cells
from dpmic_jax.results.statement import key_sentence, ledger_sentence

if TYPE_CHECKING:
    from dpmic_jax.results.screen_result import ScreenResult

_MECHANISM = "MICrHistogram"


class Released(Protocol):
    """The attributes of a `HistogramRelease` of `MICrHistogram` that a report needs."""

    @property
    def event(self) -> Event:
        """The event of the release."""
        ...

    @property
    def key_is_secret(self) -> bool:
        """Whether the noise was drawn from a secret key."""
        ...

    @property
    def counts(self) -> Int[np.ndarray, "*pairs side side"]:
        """Noisy counts of the cells."""
        ...

    @property
    def mass(self) -> Float[np.ndarray, "*pairs side side"]:
        """The estimated fraction of the records in each cell."""
        ...


@dataclass(frozen=True, kw_only=True)
class Histograms:
    """Histograms of some pairs of columns, released as one event.

    Attributes:
      axes: x and y of each pair, in the order of the release.
      release: the release of `MICrHistogram.release_batch`, or of `release` for one pair.
      ledger: "identity#serial" of the charge; None if no ledger was charged.
    """

    axes: tuple[tuple[Axis, Axis], ...]
    release: Released
    ledger: str | None = None

    def __post_init__(self):
        event, counts = self.release.event, self.release.counts
        if event.mechanism != _MECHANISM or not isinstance(event.guarantee, PureDP):
            raise ValueError(f"expected a release of {_MECHANISM}, got one of {event.mechanism}")
        if len(self.axes) != event.count or counts.size != event.count * counts.shape[-1] ** 2:
            raise ValueError(
                f"expected axes of the {event.count} released pairs, got those of {len(self.axes)}"
            )

    @property
    def side(self) -> int:
        """Number of cells on each axis."""
        return self.release.counts.shape[-1]

    def check(self, result: "ScreenResult") -> None:
        """Refuse histograms of another table than that of the result."""
        event, statement = self.release.event, result.statement
        for axis in (axis for pair in self.axes for axis in pair):
            if axis.name not in result.names:
                raise ValueError(f"a histogram has the column {axis.name!r}, the result does not")
        if (event.n, event.relation) != (statement.n, statement.relation):
            raise ValueError(
                "expected histograms of the table of the result, with its n and its records per "
                f"person: {statement.n} and {statement.relation.records}"
            )

    def pairs(
        self,
    ) -> Iterator[tuple[Cells, Cells, Int[np.ndarray, "x y"], Float[np.ndarray, "x y"]]]:
        """For each pair its cells, their noisy counts, and the estimated fraction of records."""
        shape = (len(self.axes), self.side, self.side)
        counts, mass = self.release.counts.reshape(shape), self.release.mass.reshape(shape)
        for (x, y), noisy, likely in zip(self.axes, counts, mass, strict=True):
            across, up = x.cells(self.side), y.cells(self.side)
            held = np.ix_(across.places, up.places)
            # Cells between two categories hold no records, so their estimated mass is only noise.
            total = likely[held].sum()
            yield across, up, noisy[held], likely[held] / total if total > 0 else likely[held]

    def text(self) -> str:
        """What the histograms are and what they cost, in words."""
        event = self.release.event
        records, each = event.relation.records, event.guarantee.epsilon
        # Discrete Laplace noise of ratio r = e^(-epsilon/2) has variance 2 r / (1 - r)^2.
        half = each / records / 2
        sd = math.sqrt(2 * math.exp(-half)) / -math.expm1(-half)
        many = f"{event.count} histograms" if event.count > 1 else "one histogram"
        total = repr(event.epsilon).removesuffix(".0")
        # Rounded up, so that the statement holds.
        one = Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(each)).normalize()
        split = f" together, {one:f} each" if event.count > 1 else ""
        person = "one person's record" if records == 1 else f"each of a person's {records} records"
        return (
            f"Released separately from the values of the table, as one event: {many} for "
            f"epsilon = {total}, delta = 0{split} ({_MECHANISM}). Each has {self.side} "
            f"x {self.side} counts on public bounds, with noise of sd {sd:.3g} in each; {person} "
            "changes two of them by one. Colours show the number of records that is estimated from "
            f"the noisy counts: at least 0 in each cell, and n = {event.n} in total. "
            f"{key_sentence(self.release.key_is_secret)} {ledger_sentence(self.ledger)}"
        )
