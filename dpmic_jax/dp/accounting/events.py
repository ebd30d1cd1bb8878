"""Guarantees and events: frozen data that state what a release costs, each with one digest."""

import decimal
import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.arithmetic.exact_decimal import (
    as_fraction,
    ceil_to_float,
    check_positive,
    check_positive_int,
    check_probability,
)

_VERSION = 1  # of the JSON; another one changes every digest, and with it all seeded noise


def pure_to_zcdp(epsilon: float) -> float:
    """The smallest rho for which every epsilon-DP mechanism is rho-zCDP: epsilon tanh(epsilon/2).

    Every epsilon-DP pair is a post-processing of randomised response with odds e^epsilon
    (Kairouz, Oh and Viswanath 2015). That has Rényi divergence
    ln[cosh((alpha - 1/2) epsilon) / cosh(epsilon/2)] / (alpha - 1). Since ln cosh(sqrt w) is
    concave in w, its growth from w = (epsilon/2)^2 to ((alpha - 1/2) epsilon)^2 stays below
    the tangent, tanh(epsilon/2) / epsilon times the step, alpha (alpha - 1) epsilon^2. So the
    divergence is at most alpha epsilon tanh(epsilon/2), with equality as alpha -> 1. It is
    below the epsilon^2/2 of Bun and Steinke (2016). The result is rounded up, and is the same on
    every machine.
    """
    check_positive("epsilon", epsilon)
    # Here 1 - e^-epsilon would lose digits, and epsilon^2/2 is larger by a factor of at most
    # 1 + epsilon^2/12.
    if epsilon < 2**-20:
        return ceil_to_float(as_fraction(epsilon) ** 2 / 2)
    with decimal.localcontext(decimal.Context(prec=60)):
        exact = decimal.Decimal(repr(float(epsilon)))
        odds = (-exact).exp()
        rho = exact * (1 - odds) / (1 + odds)
        # The margin covers the rounding of all steps above.
        return ceil_to_float(Fraction(rho * (1 + decimal.Decimal("1e-40"))))


def zcdp_to_pure(rho: float) -> float:
    """The largest epsilon for which epsilon-DP is rho-zCDP, to 12 digits, rounded down."""

    def within(epsilon: float) -> bool:
        return pure_to_zcdp(epsilon) <= rho

    found = doubled(within, 1.0) if rho else None
    return 0.0 if found is None else bisect(within, *found).holds


@dataclass(frozen=True)
class ReplaceOne:
    """Neighbouring data sets have the same n and differ in at most `records` records.

    These are the records of one person.
    """

    records: int = 1

    def __post_init__(self):
        object.__setattr__(self, "records", check_positive_int("records", self.records))


@dataclass(frozen=True)
class PureDP:
    """epsilon-DP: P[M(D) in S] <= e^epsilon P[M(D') in S] for all neighbours D, D'."""

    epsilon: float

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))

    @property
    def delta(self) -> float:
        """Always 0.0: the guarantee never fails."""
        return 0.0

    @property
    def rho(self) -> float:
        """The rho of zCDP that epsilon-DP implies: epsilon tanh(epsilon/2), rounded up."""
        return pure_to_zcdp(self.epsilon)


@dataclass(frozen=True)
class ApproximateDP:
    """(epsilon, delta)-DP: P[M(D) in S] <= e^epsilon P[M(D') in S] + delta for neighbours D, D'."""

    epsilon: float
    delta: float

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check_probability("delta", self.delta))
        if self.delta == 0:
            raise ValueError("expected 0 < delta < 1; a guarantee with delta = 0 is PureDP")

    @property
    def rho(self) -> float:
        """The rho of zCDP that holds unless the guarantee fails, which has probability delta."""
        return pure_to_zcdp(self.epsilon)


@dataclass(frozen=True)
class ZCDP:
    """rho-zCDP (Bun and Steinke 2016), up to a total variation of delta.

    `delta` is a numerical term, the total variation between the noise that is sampled and the
    ideal distribution that has rho. It adds (1 + e^epsilon) delta to the delta of
    (epsilon, delta)-DP (`composition.numerical`).
    """

    rho: float
    delta: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "rho", check_positive("rho", self.rho))
        object.__setattr__(self, "delta", check_probability("delta", self.delta))

    @property
    def epsilon(self) -> float:
        """Infinite: rho-zCDP implies no epsilon-DP."""
        return math.inf


@dataclass(frozen=True)
class GaussianDP:
    """mu-GDP (Dong, Roth and Su 2022), up to a total variation of delta.

    Its outputs tell neighbours apart no better than one draw tells N(0, 1) from N(mu, 1). So its
    (epsilon, delta) are those of the Gaussian mechanism (`gaussian_dp`), and mu^2 adds up over
    releases. `delta` is a numerical term, as that of `ZCDP`.
    """

    mu: float
    delta: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "mu", check_positive("mu", self.mu))
        object.__setattr__(self, "delta", check_probability("delta", self.delta))
        if math.isinf(self.rho):
            raise ValueError(f"expected mu with a finite mu^2/2, got {self.mu}")

    @property
    def epsilon(self) -> float:
        """Infinite: mu-GDP implies no epsilon-DP."""
        return math.inf

    @property
    def rho(self) -> float:
        """The rho of zCDP that mu-GDP implies: mu^2/2, rounded up.

        A mu-GDP mechanism is a post-processing of one draw of N(0, 1) or N(mu, 1), whose Rényi
        divergence of order alpha is alpha mu^2/2.
        """
        return ceil_to_float(as_fraction(self.mu) ** 2 / 2)


Guarantee = PureDP | ApproximateDP | ZCDP | GaussianDP
_GUARANTEES: dict[str, type[Guarantee]] = {
    "PureDP": PureDP,
    "ApproximateDP": ApproximateDP,
    "ZCDP": ZCDP,
    "GaussianDP": GaussianDP,
}


@dataclass(frozen=True, kw_only=True)
class Event:
    """What a ledger is charged for: `count` releases, each with `guarantee`.

    An event does not depend on the data: it is complete before any value is read.

    Attributes:
      mechanism: the name of the mechanism.
      guarantee: privacy guarantee of each release, for all records of one person together.
      relation: the neighbouring relation of the guarantee.
      n: number of records, which is public.
      sensitivity: how far one person's records can move the released statistic.
      count: number of releases that are charged together.
      settings: public settings as (name, value) pairs; sorted by name.
      label: distinguishes releases of the same kind that are made with the same key.
    """

    mechanism: str
    guarantee: Guarantee
    relation: ReplaceOne
    n: int
    sensitivity: Fraction
    count: int = 1
    settings: tuple[tuple[str, str], ...] = ()
    label: str = ""

    def __post_init__(self):
        _check_text("mechanism", self.mechanism)
        _check_text("label", self.label)
        if not self.mechanism:
            raise ValueError("expected the mechanism's name, got an empty string")
        if not isinstance(self.guarantee, Guarantee):
            raise TypeError(
                f"expected a PureDP, ApproximateDP, ZCDP or GaussianDP, got {self.guarantee!r}"
            )
        if not isinstance(self.relation, ReplaceOne):
            raise TypeError(f"expected relation=ReplaceOne(records), got {self.relation!r}")
        if not isinstance(self.sensitivity, Rational):
            raise TypeError(f"expected sensitivity as a Fraction, got {self.sensitivity!r}")
        if self.sensitivity <= 0:
            raise ValueError(f"expected sensitivity > 0, got {self.sensitivity}")
        object.__setattr__(self, "n", check_positive_int("n", self.n))
        object.__setattr__(self, "count", check_positive_int("count", self.count))
        object.__setattr__(self, "sensitivity", Fraction(self.sensitivity))
        object.__setattr__(self, "settings", _canonical_settings(self.settings))

    @property
    def epsilon(self) -> float:
        """Epsilon of all `count` releases together, by basic composition; infinite for some."""
        return self._total(self.guarantee.epsilon)

    @property
    def delta(self) -> float:
        """Delta of all `count` releases; their total variation under ZCDP and GaussianDP."""
        return self._total(self.guarantee.delta)

    @property
    def rho(self) -> float:
        """The rho of zCDP of all `count` releases together, up to delta."""
        return self._total(self.guarantee.rho)

    def _total(self, each: float) -> float:
        return each if math.isinf(each) else ceil_to_float(self.count * as_fraction(each))

    def to_json(self) -> str:
        """Canonical JSON: two events have the same text if and only if they are equal."""
        kind = type(self.guarantee)
        fields = {name: getattr(self.guarantee, name).hex() for name in kind.__match_args__}
        content = {
            "version": _VERSION,
            "mechanism": self.mechanism,
            "guarantee": {"kind": kind.__name__, **fields},
            "relation": {"kind": "ReplaceOne", "records": self.relation.records},
            "n": self.n,
            "sensitivity": f"{self.sensitivity.numerator}/{self.sensitivity.denominator}",
            "count": self.count,
            "settings": self.settings,
            "label": self.label,
        }
        return canonical(content)

    @classmethod
    def from_json(cls, text: str) -> "Event":
        """Read an event from its `to_json`; any other text is refused."""
        try:
            content = json.loads(text)
            guarantee = dict(content["guarantee"])
            kind = _GUARANTEES[guarantee.pop("kind")]
            event = cls(
                mechanism=content["mechanism"],
                guarantee=kind(**{name: float.fromhex(v) for name, v in guarantee.items()}),
                relation=ReplaceOne(content["relation"]["records"]),
                n=content["n"],
                sensitivity=Fraction(content["sensitivity"]),
                count=content["count"],
                settings=tuple((name, value) for name, value in content["settings"]),
                label=content["label"],
            )
        except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise ValueError(f"expected the JSON of an event, version {_VERSION}") from error
        if event.to_json() != text:
            raise ValueError(f"expected the canonical JSON of an event, version {_VERSION}")
        return event

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical JSON; the noise key of the release is folded with it."""
        return hashlib.sha256(b"dpmic_jax event\0" + self.to_json().encode("ascii")).digest()


def canonical(content: object) -> str:
    """JSON with sorted keys, no spaces and ASCII only."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _canonical_settings(settings: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    if not isinstance(settings, tuple) or any(
        not isinstance(pair, tuple) or len(pair) != 2 for pair in settings
    ):
        raise TypeError("expected settings as a tuple of (name, value) pairs of strings")
    for name, value in settings:
        _check_text("a setting's name", name)
        _check_text(f"the setting {name!r}", value)
    if len({name for name, _ in settings}) < len(settings):
        raise ValueError("expected every setting once; two have the same name")
    return tuple(sorted(settings))


def _check_text(name: str, value: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"expected {name} to be a string, got {value!r}")
    # JSON escapes two surrogates as it escapes the character that they encode, so two different
    # strings would share a digest.
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"expected {name} to be valid Unicode, got lone surrogates")
