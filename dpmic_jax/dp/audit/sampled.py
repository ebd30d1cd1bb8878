"""A lower bound on epsilon from draws of a mechanism's output on two neighbouring data sets.

If M is (epsilon, delta)-DP then P[M(D) in S] <= e^epsilon P[M(D') in S] + delta for every set
S of outputs. So for any S fixed before the draws are counted, a lower confidence limit p of
the one probability and an upper limit q of the other give epsilon >= log((p - delta) / q).
The limits are Clopper and Pearson's, which hold for every probability and number of draws.
S is chosen on the first half of the draws and counted on the second, so the choice may depend on
the first half in any way.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy import stats

Draws = Shaped[np.ndarray, "draws *output"]
Labels = Shaped[np.ndarray, "draws *label"]
Counts = Int[np.ndarray, "data labels"]
Feature = Callable[[Draws], Labels]
Predicate = Callable[[Draws], Bool[np.ndarray, " draws"]]


class SampledBound(NamedTuple):
    """A lower confidence bound on epsilon, and the event that gives it.

    Attributes:
      epsilon: a lower bound, at least 0, wrong with probability at most 1 - confidence.
      confidence: confidence level of the bound.
      delta: the delta that the mechanism is allowed.
      event: description of the event; "none" if no event was chosen.
      more: number of occurrences on the data set where the event is more likely.
      less: number of occurrences on the data set where it is less likely.
      draws: number of draws that were counted on each, in the same order.
      swapped: whether the event is more likely on the second data set.
    """

    epsilon: float
    confidence: float
    delta: float
    event: str
    more: int
    less: int
    draws: tuple[int, int]
    swapped: bool


class Family(NamedTuple):
    """Events of one kind.

    Attributes:
      words: maps i to a description of the i-th event.
      hits: number of occurrences of each event on both data sets.
      members: maps i to the labels that the i-th event consists of.
    """

    words: Callable[[int], str]
    hits: Counts
    members: Callable[[int], Int[np.ndarray, " labels"]]


def values(draws: Draws) -> Labels:
    """The output itself as a feature; a row of several numbers is one output."""
    return draws


def lowest_bit(draws: Float[np.ndarray, " draws"]) -> Int[np.ndarray, " draws"]:
    """The largest e such that the output is an integer times 2^e, as a feature.

    Floating-point noise reaches only some of the floats near a value, and which ones depends on
    the value (Mironov, 2012), so the low bits of the output reveal it. Zero, infinities and NaN
    get numbers of their own.
    """
    floats = np.asarray(draws, np.float64)  # exact for float32 and shorter
    fraction, exponent = np.frexp(np.where(np.isfinite(floats), floats, 0))
    digits = np.ldexp(np.abs(fraction), 53).astype(np.int64)
    # digits & -digits is the lowest set bit; exponents of floats never reach 2000.
    place = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    found = np.where(digits == 0, 2000, place + exponent - 53)
    return np.where(np.isfinite(floats), found, np.where(np.isnan(floats), 2001, 2002))


FEATURES: Mapping[str, Feature] = MappingProxyType({"output": values, "lowest bit": lowest_bit})


def bound_of_event(
    more: int, of_more: int, less: int, of_less: int, *, confidence: float, delta: float = 0.0
) -> float:
    """The bound max(0, log((p - delta) / q)) of one event that was fixed before the draws.

    Args:
      more: number of occurrences in `of_more` draws on one data set.
      of_more: at least 1.
      less: number of occurrences in `of_less` draws on the neighbour.
      of_less: at least 1.
      confidence: of p and q together; each may fail with probability (1 - confidence) / 2.
      delta: the delta that the mechanism is allowed.
    """
    _check(confidence, delta)
    failure = (1 - confidence) / 2
    p = float(stats.beta.ppf(failure, more, of_more - more + 1)) if more else 0.0
    q = float(stats.beta.isf(failure, less + 1, of_less - less)) if less < of_less else 1.0
    return math.log((p - delta) / q) if p - delta > q else 0.0


def event_loss(
    first: Draws,
    second: Draws,
    events: Mapping[str, Predicate],
    *,
    confidence: float,
    delta: float = 0.0,
) -> SampledBound:
    """The best bound of several events that were fixed before the draws, Bonferroni-corrected.

    Args:
      first: independent outputs on one data set.
      second: independent outputs on its neighbour.
      events: maps a name to a function from draws to whether each of them is in the event.
      confidence: of the result, whichever event it comes from.
      delta: the delta that the mechanism is allowed.
    """
    _check(confidence, delta)
    draws, bounds = (len(first), len(second)), []
    # Each event is tried in both directions.
    single = 1 - (1 - confidence) / (2 * len(events))
    for name, event in events.items():
        hits = int(np.sum(event(first))), int(np.sum(event(second)))
        for swapped in (False, True):
            bounds.append(_bound(name, hits, draws, swapped, single, delta))
    return max(bounds, key=lambda bound: bound.epsilon)._replace(confidence=confidence)


def sampled_loss(
    first: Draws,
    second: Draws,
    *,
    confidence: float,
    delta: float = 0.0,
    features: Mapping[str, Feature] = FEATURES,
) -> SampledBound:
    """A lower bound on epsilon by the most promising of very many events.

    The events are: a feature of the output is at most t, at least t, equal to t, or among the k
    values whose likelihood ratio between the data sets is largest. Values are ranked on a quarter
    of the draws, the event is chosen on the next quarter and counted on the other half. Only one
    event is counted, so no correction for multiple testing is needed.

    Example, Laplace noise of scale 1 in float32, on two values 1 apart; it claims epsilon = 1:

      >>> import jax
      >>> keys = jax.random.split(jax.random.key(0))
      >>> noise = [np.asarray(jax.random.laplace(key, (200_000,))) for key in keys]
      >>> bound = sampled_loss(noise[0], 1 + noise[1], confidence=0.999)
      >>> bound.epsilon > 5, bound.event.startswith("lowest bit")
      (True, True)

    Args:
      first: independent outputs on one data set, an array of numbers or of rows of them; for
        a mechanism in JAX, `jax.vmap` over 10^6 split keys makes them.
      second: independent outputs on its neighbour, about as many.
      confidence: confidence level of the bound, such as 0.999.
      delta: the delta that the mechanism is allowed.
      features: maps a name to a function from draws to a feature of each draw. Add features that
        may reveal the data, such as the difference of two releases.

    Returns:
      The bound and its event. A bound above the claimed epsilon refutes the claim; a bound below
      it proves nothing.
    """
    _check(confidence, delta)
    if min(len(first), len(second)) < 4:
        raise ValueError("expected at least 4 draws on each data set")
    draws = len(first) - len(first) // 2, len(second) - len(second) // 2  # the second halves
    best, found = -math.inf, SampledBound(0.0, confidence, delta, "none", 0, 0, draws, False)
    for name, feature in features.items():
        (rank, choose, count), shown = _counts(feature, first, second)
        for swapped in (False, True):
            way = slice(None, None, -1 if swapped else 1)
            for family in _families(rank[way], choose[way], shown):
                promise = _promise(family.hits, choose[way].sum(axis=1), confidence, delta)
                top = int(np.argmax(promise))
                if promise[top] > best:
                    hits = count[:, family.members(top)].sum(axis=1).tolist()
                    event = f"{name} {family.words(top)}"
                    best = promise[top]
                    found = _bound(event, hits, draws, swapped, confidence, delta)
    return found


def _counts(feature: Feature, first: Draws, second: Draws) -> tuple[list[Counts], Draws]:
    """Counts of each value of a feature in the three parts of the draws, and the values."""
    labels, shown = _labels(feature(np.concatenate([first, second])))
    both = labels[: len(first)], labels[len(first) :]
    parts = [np.split(half, [len(half) // 4, len(half) // 2]) for half in both]
    counts = [[np.bincount(part, minlength=len(shown)) for part in data] for data in parts]
    return [np.stack(pair) for pair in zip(*counts, strict=True)], shown


def _families(rank: Counts, choose: Counts, shown: Draws) -> Iterator[Family]:
    """Events of four kinds that may be more likely on the first data set."""
    # Half a count more on both sides, for values that were drawn on one data set only.
    likely = np.argsort(-(rank[0] + 0.5) / (rank[1] + 0.5), kind="stable")
    up = np.arange(len(shown))
    for order, words in (
        (up, lambda i: f"at most {shown[i]}"),
        (up[::-1], lambda i: f"at least {shown[::-1][i]}"),
        (likely, lambda i: f"among {i + 1} likelier values"),
    ):
        hits = np.cumsum(choose[:, order], axis=1)
        yield Family(words, hits, lambda i, order=order: order[: i + 1])
    yield Family(lambda i: f"equal to {shown[i]}", choose, lambda i: up[i : i + 1])


def _promise(
    hits: Counts, draws: Int[np.ndarray, " data"], confidence: float, delta: float
) -> Float[np.ndarray, " labels"]:
    """An approximation of `bound_of_event` for all events at once, to rank them.

    The square root of a Poisson count has a standard deviation of about 1/2.
    """
    width = float(stats.norm.isf((1 - confidence) / 2)) / 2
    low = np.maximum(np.sqrt(hits[0]) - width, 0) ** 2 / draws[0] - delta
    high = (np.sqrt(hits[1] + 1) + width) ** 2 / draws[1]
    # An event without hits on these draws is not chosen: its threshold t would be a value of the
    # draws that are still to be counted, and S would depend on them.
    return np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -np.inf)


def _labels(found: Labels) -> tuple[Int[np.ndarray, " draws"], Draws]:
    """Labels 0, 1, ... of the distinct values (or rows) in ascending order, and these values."""
    first, *others = np.asarray(found).reshape(len(found), -1).T
    _, where, label = np.unique(first, return_index=True, return_inverse=True)
    # Rows are labelled column by column: the label so far and the next column make one integer.
    for column in others:
        _, code = np.unique(column, return_inverse=True)
        code = label * (int(code.max()) + 1) + code
        _, where, label = np.unique(code, return_index=True, return_inverse=True)
    return label, np.asarray(found)[where]


def _bound(
    event: str,
    hits: Sequence[int],
    draws: tuple[int, int],
    swapped: bool,
    confidence: float,
    delta: float,
) -> SampledBound:
    way = slice(None, None, -1 if swapped else 1)
    (more, less), (of_more, of_less) = hits[way], draws[way]
    epsilon = bound_of_event(more, of_more, less, of_less, confidence=confidence, delta=delta)
    return SampledBound(epsilon, confidence, delta, event, more, less, (of_more, of_less), swapped)


def _check(confidence: float, delta: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"expected 0 < confidence < 1, got {confidence}")
    if not 0 <= delta < 1:
        raise ValueError(f"expected 0 <= delta < 1, got {delta}")
