"""What a finite mechanism really tells about one record: its capacity, and who attains it.

Rows W_x of a channel are the output laws for the values x of one record, all other records
fixed. For a law P of the inputs let q = sum_x P(x) W_x. Then for any P, and any law q at all,

    sum_x P(x) D(W_x || q_P) <= capacity <= max_x D(W_x || q):

the left side is the information at P, and the right side holds since the information at any P'
is sum_x P'(x) D(W_x || q) - D(q_P' || q). Both meet at the best P.

P is sought in JAX by `blahut_arimoto`. Where one input is almost a mixture of others that is slow
(about one random channel in a hundred): there Newton's method ends the search. However P was
found, both bounds are computed at the end, in doubles.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

Data = TypeVar("Data", bound=Hashable)
Output = TypeVar("Output", bound=Hashable)

_NEWTON_STEPS = 50


class Capacity(NamedTuple):
    """The capacity of a channel, in nats, between two bounds.

    Attributes:
      nats: the information that `inputs` attains: a lower bound.
      at_most: max_x D(W_x || q) at the output law q of `inputs`: an upper bound, with a margin
        for rounding. The two are apart by the tolerance, or more if the search was cut short.
      inputs: the law of the inputs.
    """

    nats: float
    at_most: float
    inputs: Float[np.ndarray, " rows"]


class WorstCapacity(NamedTuple):
    """The most that a mechanism tells about one record: the largest capacity of a neighbourhood.

    Attributes:
      nats: the information attained in the neighbourhood `group`: a lower bound.
      at_most: an upper bound on the capacities of all neighbourhoods.
      group: which neighbourhood.
      inputs: the law of its data sets.
    """

    nats: float
    at_most: float
    group: int
    inputs: Float[np.ndarray, " rows"]


class Tabulated(NamedTuple):
    """A mechanism as an array of output laws, and which of its rows are neighbours."""

    laws: Float[np.ndarray, "datasets outputs"]
    neighbourhoods: list[list[int]]


def capacity(channel: ArrayLike, *, tolerance: float = 1e-12) -> Capacity:
    """The capacity of a finite channel, in nats.

    Args:
      channel: row x is the output law of input x; each row sums to 1.
      tolerance: how far apart the bounds may be where the search stops.

    Example, a bit told truly three times in four:

      >>> round(capacity([[0.75, 0.25], [0.25, 0.75]]).nats, 6)
      0.130812
    """
    rows = _checked(channel)
    return _capacities(rows[None], tolerance)[0]


def worst_capacity(
    laws: ArrayLike, neighbourhoods: Iterable[Sequence[int]], *, tolerance: float = 1e-12
) -> WorstCapacity:
    """The least MI-DP that a finite mechanism has: `capacity` over all neighbourhoods.

    Args:
      laws: row d is the output law for data set d; each row sums to 1.
      neighbourhoods: groups of rows, in each of which any two data sets differ in one entry,
        always the same: for all other entries fixed, every value of this one.
      tolerance: as for `capacity`.
    """
    rows = _checked(laws)
    groups = [np.asarray(group) for group in neighbourhoods]
    if not groups or min(map(len, groups)) < 1:
        raise ValueError("expected neighbourhoods with at least one data set each")
    if any(group.min() < 0 or group.max() >= len(rows) for group in groups):
        raise ValueError(f"expected neighbourhoods of rows 0 .. {len(rows) - 1} of laws")
    # The first row once more changes no capacity, and makes all groups of one size.
    size = max(map(len, groups))
    padded = [np.append(group, np.full(size - len(group), group[0])) for group in groups]
    found = _capacities(rows[np.stack(padded)], tolerance)
    worst = max(range(len(groups)), key=lambda i: found[i].nats)
    inputs, length = found[worst].inputs, len(groups[worst])
    inputs = np.append(inputs[0] + inputs[length:].sum(), inputs[1:length])
    at_most = max(one.at_most for one in found)
    return WorstCapacity(found[worst].nats, at_most, worst, inputs)


def tabulate(
    law: Callable[[Data], Mapping[Output, Fraction]], neighbourhoods: Iterable[Sequence[Data]]
) -> Tabulated:
    """The arrays of a mechanism that is given as for `audit.exact_loss`."""
    groups = [list(group) for group in neighbourhoods]
    places = {data: i for i, data in enumerate(dict.fromkeys(d for g in groups for d in g))}
    laws = [law(data) for data in places]
    columns = {output: j for j, output in enumerate(dict.fromkeys(y for one in laws for y in one))}
    table = np.zeros((len(places), len(columns)))
    for row, one in zip(table, laws, strict=True):
        for output, p in one.items():
            row[columns[output]] = float(p)
    return Tabulated(table, [[places[data] for data in group] for group in groups])


def radius(channel: ArrayLike, law: ArrayLike) -> float:
    """max_x D(W_x || law): an upper bound on the capacity, whatever the output law.

    With a margin for rounding; infinite if `law` excludes an output that some input can give.
    """
    rows, law = _checked(channel), np.asarray(law, np.float64)
    if law.shape != rows.shape[1:] or (law < 0).any() or not abs(law.sum() - 1) <= 1e-6:
        raise ValueError(f"expected law as {rows.shape[1]} chances that sum to 1")
    return _radius(rows, law / law.sum())


def _radius(rows: np.ndarray, law: np.ndarray) -> float:
    terms = _divergence_terms(rows, law)
    if not np.isfinite(terms).all():
        return float("inf")
    margin = 2.0**-52 * (sum(rows.shape) + 8) * (1 + np.abs(terms).sum(axis=1).max())
    return float(terms.sum(axis=1).max() + margin)


def _divergence_terms(rows: np.ndarray, law: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rows > 0, rows * np.log(rows / law), 0.0)


def _capacities(channels: np.ndarray, tolerance: float) -> list[Capacity]:
    """Each of many channels of one shape."""
    # Imported here: of all that counts information only this takes JAX.
    from dpmic_jax.dp.information.blahut_arimoto import best_inputs

    if not 0 < tolerance < 1:
        raise ValueError(f"expected 0 < tolerance < 1, got {tolerance}")
    laws = best_inputs(channels, tolerance)
    found = [_judged(rows, inputs) for rows, inputs in zip(channels, laws, strict=True)]
    return [
        one if one.at_most - one.nats < 2 * tolerance else _newton(rows, one, tolerance)
        for rows, one in zip(channels, found, strict=True)
    ]


def _judged(rows: np.ndarray, inputs: np.ndarray) -> Capacity:
    """Both bounds at an input law."""
    inputs = inputs / inputs.sum()
    law = inputs @ rows
    nats = max(float(inputs @ _divergence_terms(rows, law).sum(axis=1)), 0.0)
    return Capacity(nats, _radius(rows, law / law.sum()), inputs)


def _newton(rows: np.ndarray, best: Capacity, tolerance: float) -> Capacity:
    """Newton's method for D(W_x || q) = capacity on the inputs in use; the best law met.

    dD(W_x || q) / dP(x') = -sum_y W_x(y) W_x'(y) / q(y). An input whose chance would fall below
    zero is left out; one that is further from q than those in use comes in.
    """
    inputs = best.inputs
    used = inputs > 1e-6 * inputs.max()
    for _ in range(_NEWTON_STEPS):
        law = inputs @ rows
        from_law = _divergence_terms(rows, law).sum(axis=1)
        if not np.isfinite(from_law).all():
            break
        part = rows[used]
        ones = np.ones(len(part))
        right = np.append(from_law[used], 1 - inputs[used].sum())
        slopes = (part / np.where(law > 0, law, 1.0)) @ part.T
        system = np.block([[slopes, ones[:, None]], [ones[None, :], np.zeros((1, 1))]])
        move = np.linalg.lstsq(system, right, rcond=None)[0][:-1]
        lowest = np.where(move < 0, -inputs[used] / np.where(move < 0, move, -1.0), np.inf)
        inputs = np.where(used, inputs, 0.0)
        inputs[used] += min(1.0, lowest.min()) * move
        if lowest.min() <= 1:
            used = used.copy()
            used[np.flatnonzero(used)[lowest.argmin()]] = False
        elif not used[from_law.argmax()]:
            used = used.copy()
            used[from_law.argmax()] = True
        found = _judged(rows, np.maximum(inputs, 0.0))
        if found.at_most - found.nats < best.at_most - best.nats:
            best = found
        if best.at_most - best.nats < 2 * tolerance:
            break
    return best


def _checked(channel: ArrayLike) -> Float[np.ndarray, "rows outputs"]:
    rows = np.asarray(channel, np.float64)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"expected one row of chances for each input, got shape {rows.shape}")
    sums = rows.sum(axis=1, keepdims=True)
    if not (np.isfinite(rows).all() and (rows >= 0).all() and (np.abs(sums - 1) <= 1e-6).all()):
        raise ValueError("expected rows of chances >= 0 that sum to 1 each")
    return rows / sums
