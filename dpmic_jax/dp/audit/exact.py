"""The exact privacy loss of a mechanism whose output distribution can be enumerated.

A mechanism M is epsilon-DP iff P[M(D) = v] <= e^epsilon P[M(D') = v] for all neighbours D, D'
and outputs v (of a countable range), and (epsilon, delta)-DP iff the sum over v of
max(0, P[M(D) = v] - e^epsilon P[M(D') = v]) is at most delta. On tiny data, and with
probabilities given as fractions, both are decided without rounding: e^epsilon is enclosed
between two fractions that are as close as the comparison needs.
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
OutputDistribution = Callable[[Data], Mapping[Output, Fraction]]
Number = int | float | Fraction


def exp_between(exponent: Number, digits: int) -> tuple[Fraction, Fraction]:
    """Fractions below and above e^exponent, about 10^-digits of it apart."""
    # `dp.arithmetic.intervals` has a similar function, but an audit shares no code with what it
    # audits.
    exact = Fraction(exponent)
    limits = []
    for rounding in (ROUND_FLOOR, ROUND_CEILING):
        context = Context(prec=digits + 4, rounding=rounding)
        # The exponent is rounded outwards first. Decimal's exp is correctly rounded to nearest
        # whatever the context, so its neighbours enclose the true value.
        short = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
        power = context.exp(short)
        down = rounding == ROUND_FLOOR
        limits.append(context.next_minus(power) if down else context.next_plus(power))
    return Fraction(limits[0]), Fraction(limits[1])


@dataclass(frozen=True, kw_only=True)
class Loss(Generic[Data, Output]):
    """The largest ratio P[M(dataset) = output] / P[M(neighbour) = output] over neighbours.

    Attributes:
      dataset: the data set on which the output is more likely.
      neighbour: the neighbour on which it is less likely, perhaps impossible.
      output: the output with the largest ratio.
      more: probability of the output on `dataset`.
      less: probability of the output on `neighbour`; zero if it cannot occur there.
    """

    dataset: Data
    neighbour: Data
    output: Output
    more: Fraction
    less: Fraction

    @property
    def epsilon(self) -> float:
        """ln(more / less), rounded; inf if `less` is 0. For an exact comparison use `at_most`."""
        if self.less == 0:
            return float("inf")
        ratio, context = self.more / self.less, Context(prec=40)
        return float(
            context.ln(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
        )

    def is_above(self, other: "Loss[Data, Output]") -> bool:
        """Whether this ratio is larger; of two infinite ones, whether its output is more likely."""
        if self.less == other.less == 0:
            return self.more > other.more
        mine, theirs = (self.more, other.less), (other.more, self.less)
        # Products of fractions would be reduced, which would take most of the time of `exact_loss`.
        return _top(mine) * _bottom(theirs) > _top(theirs) * _bottom(mine)

    def at_most(self, epsilon: Number) -> bool:
        """Whether more <= e^epsilon less, decided exactly; pass epsilon + 1e-12 for a tolerance."""
        if not 0 <= epsilon < float("inf"):
            raise ValueError(f"expected 0 <= epsilon < inf, got {epsilon}")
        if self.less == 0 or epsilon == 0:
            return self.more <= self.less
        # e^epsilon is irrational for a rational epsilon other than 0, so the loop terminates.
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
    """The largest delta(epsilon) over neighbours, enclosed between two fractions.

    Attributes:
      low: a lower bound on delta.
      high: an upper bound on delta, about 1e-30 above.
      dataset: the data set on which `event` is more likely.
      neighbour: the neighbour on which it is less likely.
      event: the outputs whose ratio of probabilities is above e^epsilon.
    """

    low: Fraction
    high: Fraction
    dataset: Data
    neighbour: Data
    event: frozenset[Output]


def exact_loss(
    distribution: OutputDistribution[Data, Output], neighbourhoods: Iterable[Sequence[Data]]
) -> Loss[Data, Output]:
    """The exact privacy loss of a mechanism, over all pairs of data sets in a neighbourhood.

    Example, randomised response about one bit, which tells the truth three times in four:

      >>> def distribution(data):
      ...     (bit,) = data
      ...     return {bit: Fraction(3, 4), 1 - bit: Fraction(1, 4)}
      >>> loss = exact_loss(distribution, replace_one([0, 1], n=1))
      >>> round(loss.epsilon, 4), loss.at_most(1.1), loss.at_most(1.0)
      (1.0986, True, False)

    Args:
      distribution: maps a data set to the probability of each output, as fractions that sum to 1.
      neighbourhoods: groups of data sets in which any two are neighbours; a single pair is a group
        of two. `replace_one` enumerates all of them.

    Returns:
      The largest ratio, with the data sets and the output that attain it.
    """
    known: dict[Data, Mapping[Output, Fraction]] = {}
    worst: Loss[Data, Output] | None = None
    for group in neighbourhoods:
        pmfs = {data: _checked(distribution, data, known) for data in group}
        for output in dict.fromkeys(itertools.chain.from_iterable(pmfs.values())):
            at = {data: pmf.get(output, Fraction(0)) for data, pmf in pmfs.items()}
            # Any two data sets of a group are neighbours, so the extremes are the worst pair.
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
    distribution: OutputDistribution[Data, Output],
    neighbourhoods: Iterable[Sequence[Data]],
    *,
    epsilon: Number,
) -> Delta[Data, Output]:
    """The exact delta(epsilon) of a mechanism, over all pairs of data sets in a neighbourhood.

    Args:
      distribution: as for `exact_loss`.
      neighbourhoods: as for `exact_loss`.
      epsilon: at least 0.

    Returns:
      The largest delta, enclosed, with the data sets and the event that attain it.
    """
    if not 0 <= epsilon < float("inf"):
        raise ValueError(f"expected 0 <= epsilon < inf, got {epsilon}")
    low, high = (Fraction(1),) * 2 if epsilon == 0 else exp_between(epsilon, 30)
    known: dict[Data, Mapping[Output, Fraction]] = {}
    seen: set[tuple[Data, Data]] = set()
    worst: Delta[Data, Output] | None = None
    for group in neighbourhoods:
        pmfs = {data: _checked(distribution, data, known) for data in group}
        for one, other in itertools.permutations(pmfs, 2):
            if (one, other) in seen:
                continue
            seen.add((one, other))
            # The lower end of e^epsilon gives the upper bound on delta, and the other way round.
            upper = _excess(pmfs[one], pmfs[other], low)
            if worst is None or sum(upper.values()) > worst.high:
                worst = Delta(
                    low=sum(_excess(pmfs[one], pmfs[other], high).values(), Fraction(0)),
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
    distribution: OutputDistribution[Data, Output],
    data: Data,
    known: dict[Data, Mapping[Output, Fraction]],
) -> Mapping[Output, Fraction]:
    if data not in known:
        pmf = distribution(data)
        if not all(isinstance(p, Fraction | int) for p in pmf.values()):
            raise TypeError("expected distribution to give each probability as a Fraction")
        # In integers over a common denominator: adding fractions would reduce each sum.
        whole = math.lcm(*(p.denominator for p in pmf.values()))
        weights = [p.numerator * (whole // p.denominator) for p in pmf.values()]
        if min(weights, default=0) < 0 or sum(weights) != whole:
            raise ValueError(
                "expected distribution to give probabilities >= 0 that sum to exactly 1"
            )
        # Outputs of probability zero are dropped, since they cannot occur.
        known[data] = {output: p for output, p in pmf.items() if p}
    return known[data]


def _top(factors: tuple[Fraction, Fraction]) -> int:
    return factors[0].numerator * factors[1].numerator


def _bottom(factors: tuple[Fraction, Fraction]) -> int:
    return factors[0].denominator * factors[1].denominator


def replace_one(records: Sequence[Record], n: int) -> Iterator[list[tuple[Record, ...]]]:
    """Replace-one neighbourhoods of all data sets of n records, regardless of their order.

    A group consists of all ways to add one record to the same n - 1 records: any two of these
    differ in one record, and every pair of neighbours is in some group. m possible records make
    C(m + n - 2, n - 1) groups of m.

    Args:
      records: all values that a record may take, each once.
      n: number of records in a data set.

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
    """As `replace_one`, for mechanisms that depend on the order of records; m^(n-1) n groups."""
    _check_size(records, n)
    for place, rest in itertools.product(range(n), itertools.product(records, repeat=n - 1)):
        yield [(*rest[:place], record, *rest[place:]) for record in records]


def _check_size(records: Sequence[object], n: int) -> None:
    if n < 1:
        raise ValueError(f"expected n >= 1, got {n}")
    if len(records) < 2:
        raise ValueError(f"expected at least 2 possible records, got {len(records)}")
