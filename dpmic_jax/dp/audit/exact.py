"""The exact privacy loss of a mechanism whose output law can be written down.

A mechanism M is epsilon-DP iff P[M(D) = v] <= e^epsilon P[M(D') = v] for all neighbours D, D'
and outputs v (of a countable range), and (epsilon, delta)-DP iff the sum over v of
max(0, P[M(D) = v] - e^epsilon P[M(D') = v]) is at most delta. On tiny data, and with
probabilities given as fractions, both are decided without rounding: e^epsilon is enclosed
between fractions, as closely as the question needs.
"""

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Generic, TypeVar

Data = TypeVar("Data", bound=Hashable)
Output = TypeVar("Output", bound=Hashable)
Record = TypeVar("Record")
Law = Callable[[Data], Mapping[Output, Fraction]]
Number = int | float | Fraction


def exp_between(exponent: Number, digits: int) -> tuple[Fraction, Fraction]:
    """Fractions below and above e^exponent, about 10^-digits of it apart."""
    # Of its own, though `noise` has something like it: an audit shares no code with what it
    # judges.
    exact = Fraction(exponent)
    limits = []
    for rounding in (ROUND_FLOOR, ROUND_CEILING):
        context = Context(prec=digits + 4, rounding=rounding)
        # A float's exponent is shortened outwards first; Decimal's exp is correctly rounded.
        short = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
        power = context.exp(short)
        down = rounding == ROUND_FLOOR
        limits.append(context.next_minus(power) if down else context.next_plus(power))
    return Fraction(limits[0]), Fraction(limits[1])


@dataclass(frozen=True, kw_only=True)
class Loss(Generic[Data, Output]):
    """The largest P[M(dataset) = output] / P[M(neighbour) = output] of a family of neighbours.

    Attributes:
      dataset: where the output is more likely.
      neighbour: where it is less likely, perhaps impossible.
      output: what tells them apart best.
      more: its probability on `dataset`.
      less: its probability on `neighbour`; zero if it cannot occur there.
    """

    dataset: Data
    neighbour: Data
    output: Output
    more: Fraction
    less: Fraction

    @property
    def epsilon(self) -> float:
        """The log ratio, rounded; inf if a support differs. To compare, use `at_most`."""
        if self.less == 0:
            return float("inf")
        ratio, context = self.more / self.less, Context(prec=40)
        return float(
            context.ln(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
        )

    def is_above(self, other: "Loss[Data, Output]") -> bool:
        """Whether this ratio is larger; of two infinite ones, whether it is more likely seen."""
        if self.less == other.less == 0:
            return self.more > other.more
        mine, theirs = (self.more, other.less), (other.more, self.less)
        # Without reducing fractions, which would take most of the time of `exact_loss`.
        return _top(mine) * _bottom(theirs) > _top(theirs) * _bottom(mine)

    def at_most(self, epsilon: Number) -> bool:
        """Whether more <= e^epsilon less, decided exactly; "to 1e-12" is `epsilon + 1e-12`."""
        if not 0 <= epsilon < float("inf"):
            raise ValueError(f"expected 0 <= epsilon < inf, got {epsilon}")
        if self.less == 0 or epsilon == 0:
            return self.more <= self.less
        # e^epsilon is irrational for a rational epsilon other than 0, so this comes to an end.
        digits = 20
        while True:
            low, high = exp_between(epsilon, digits)
            if self.more <= low * self.less:
                return True
            if self.more > high * self.less:
                return False
            digits *= 2


@dataclass(frozen=True, kw_only=True)
class Delta(Generic[Data, Output]):
    """The largest delta(epsilon) of a family of neighbours, between two fractions.

    Attributes:
      low: a lower bound on it.
      high: an upper bound on it; they are about 1e-30 apart.
      dataset: where the event below is more likely.
      neighbour: where it is less likely.
      event: the outputs whose ratio is above e^epsilon.
    """

    low: Fraction
    high: Fraction
    dataset: Data
    neighbour: Data
    event: frozenset[Output]


def exact_loss(
    law: Law[Data, Output], neighbourhoods: Iterable[Sequence[Data]]
) -> Loss[Data, Output]:
    """The exact loss of a mechanism over every two data sets that share a neighbourhood.

    Example, randomised response about one bit, which tells the truth three times in four:

      >>> def law(data):
      ...     (bit,) = data
      ...     return {bit: Fraction(3, 4), 1 - bit: Fraction(1, 4)}
      >>> loss = exact_loss(law, replace_one([0, 1], n=1))
      >>> round(loss.epsilon, 4), loss.at_most(1.1), loss.at_most(1.0)
      (1.0986, True, False)

    Args:
      law: a data set -> the probability of each output, as fractions that sum to 1.
      neighbourhoods: groups of data sets, in each of which any two are neighbours; a pair is
        a group of two. `replace_one` makes them all.

    Returns:
      The largest ratio, with the data sets and the output that show it.
    """
    known: dict[Data, Mapping[Output, Fraction]] = {}
    worst: Loss[Data, Output] | None = None
    for group in neighbourhoods:
        laws = {data: _checked(law, data, known) for data in group}
        for output in dict.fromkeys(itertools.chain.from_iterable(laws.values())):
            at = {data: one.get(output, Fraction(0)) for data, one in laws.items()}
            most, least = max(at, key=at.__getitem__), min(at, key=at.__getitem__)
            found = Loss(
                dataset=most, neighbour=least, output=output, more=at[most], less=at[least]
            )
            if worst is None or found.is_above(worst):
                worst = found
    if worst is None:
        raise ValueError("expected neighbourhoods with at least one data set, got none")
    return worst


def exact_delta(
    law: Law[Data, Output], neighbourhoods: Iterable[Sequence[Data]], *, epsilon: Number
) -> Delta[Data, Output]:
    """The exact delta(epsilon) of a mechanism over every two data sets of a neighbourhood.

    Args:
      law: as for `exact_loss`.
      neighbourhoods: as for `exact_loss`.
      epsilon: at least 0.

    Returns:
      The largest delta, enclosed, with the data sets and the event that show it.
    """
    if not 0 <= epsilon < float("inf"):
        raise ValueError(f"expected 0 <= epsilon < inf, got {epsilon}")
    low, high = (Fraction(1),) * 2 if epsilon == 0 else exp_between(epsilon, 30)
    known: dict[Data, Mapping[Output, Fraction]] = {}
    seen: set[tuple[Data, Data]] = set()
    worst: Delta[Data, Output] | None = None
    for group in neighbourhoods:
        laws = {data: _checked(law, data, known) for data in group}
        for one, other in itertools.permutations(laws, 2):
            if (one, other) in seen:
                continue
            seen.add((one, other))
            upper = _excess(laws[one], laws[other], low)
            if worst is None or sum(upper.values()) > worst.high:
                worst = Delta(
                    low=sum(_excess(laws[one], laws[other], high).values(), Fraction(0)),
                    high=sum(upper.values(), Fraction(0)),
                    dataset=one,
                    neighbour=other,
                    event=frozenset(upper),
                )
    if worst is None:
        raise ValueError("expected neighbourhoods with at least two data sets, got none")
    return worst


def _excess(
    more: Mapping[Output, Fraction], less: Mapping[Output, Fraction], factor: Fraction
) -> dict[Output, Fraction]:
    gaps = {output: p - factor * less.get(output, Fraction(0)) for output, p in more.items()}
    return {output: gap for output, gap in gaps.items() if gap > 0}


def _checked(
    law: Law[Data, Output], data: Data, known: dict[Data, Mapping[Output, Fraction]]
) -> Mapping[Output, Fraction]:
    if data not in known:
        found = law(data)
        if not all(isinstance(p, Fraction | int) for p in found.values()):
            raise TypeError("expected law to give each probability as a Fraction, not rounded")
        whole = math.lcm(*(p.denominator for p in found.values()))
        parts = [p.numerator * (whole // p.denominator) for p in found.values()]
        if min(parts, default=0) < 0 or sum(parts) != whole:
            raise ValueError("expected law to give probabilities >= 0 that sum to exactly 1")
        # An output of probability zero is no output.
        known[data] = {output: p for output, p in found.items() if p}
    return known[data]


def _top(factors: tuple[Fraction, Fraction]) -> int:
    return factors[0].numerator * factors[1].numerator


def _bottom(factors: tuple[Fraction, Fraction]) -> int:
    return factors[0].denominator * factors[1].denominator


def replace_one(records: Sequence[Record], n: int) -> Iterator[list[tuple[Record, ...]]]:
    """Neighbourhoods of all data sets of n records, in which order does not count.

    For every n - 1 records the ways to add one more: any two of these differ in one record,
    and all neighbours are met so. m possible records make C(m + n - 2, n - 1) groups of m.

    Args:
      records: all values that a record may take, each once.
      n: how many records a data set has.

    Yields:
      Data sets as tuples in the order of `records`.
    """
    _check_size(records, n)
    for rest in itertools.combinations_with_replacement(range(len(records)), n - 1):
        completed = (sorted((*rest, index)) for index in range(len(records)))
        yield [tuple(records[index] for index in data) for data in completed]


def replace_one_in_sequences(
    records: Sequence[Record], n: int
) -> Iterator[list[tuple[Record, ...]]]:
    """The same for mechanisms to which the order of records counts; m^(n-1) n groups of m."""
    _check_size(records, n)
    for place, rest in itertools.product(range(n), itertools.product(records, repeat=n - 1)):
        yield [(*rest[:place], record, *rest[place:]) for record in records]


def _check_size(records: Sequence[object], n: int) -> None:
    if n < 1:
        raise ValueError(f"expected n >= 1, got {n}")
    if len(records) < 2:
        raise ValueError(f"expected at least 2 possible records, got {len(records)}")
