"""Channel capacity: the exact information of a finite mechanism about one record.

Row W_x of a channel is the output distribution for value x of one record, with all other records
fixed. For an input distribution P let q_P = sum_x P(x) W_x. Then for any P, and any output
distribution q,

    sum_x P(x) D(W_x || q_P) <= capacity <= max_x D(W_x || q).

The left side is the information at P. The right side holds since the information at any P' is
sum_x P'(x) D(W_x || q) - D(q_P' || q). Both sides meet at the best P.

`blahut_arimoto` searches for P in JAX. It is slow where one input is almost a mixture of others,
which is about one random channel in a hundred; there Newton's method ends the search. However P was
found, both bounds are computed at the end, in 64-bit floats.
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
      at_most: max_x D(W_x || q) for the output distribution q of `inputs`: an upper bound, with a
        margin for rounding. It exceeds `nats` by the tolerance, or more if the search ended early.
      inputs: the input distribution.
    """

    nats: float
    at_most: float
    inputs: Float[np.ndarray, " rows"]


class WorstCapacity(NamedTuple):
    """The largest capacity over neighbourhoods: the most information about one record.

    Attributes:
      nats: the information attained in the neighbourhood `group`: a lower bound.
      at_most: an upper bound on the capacities of all neighbourhoods.
      group: the index of that neighbourhood.
      inputs: the distribution on its data sets.
    """

    nats: float
    at_most: float
    group: int
    inputs: Float[np.ndarray, " rows"]


class Tabulated(NamedTuple):
    """A mechanism as an array of output distributions, and which of its rows are neighbours."""

    distributions: Float[np.ndarray, "datasets outputs"]
    neighbourhoods: list[list[int]]


def capacity(channel: ArrayLike, *, tolerance: float = 1e-12) -> Capacity:
    """The capacity of a finite channel, in nats.

    Args:
      channel: row x is the output distribution of input x; each row sums to 1.
      tolerance: the largest gap between the bounds at which the search stops.

    Example, a bit that is reported truthfully with probability 3/4:

      >>> round(capacity([[0.75, 0.25], [0.25, 0.75]]).nats, 6)
      0.130812
    """
    rows = _checked(channel)
    return _capacities(rows[None], tolerance)[0]


def worst_capacity(
    distributions: ArrayLike, neighbourhoods: Iterable[Sequence[int]], *, tolerance: float = 1e-12
) -> WorstCapacity:
    """The smallest MI-DP of a finite mechanism: the largest `capacity` of a neighbourhood.

    Args:
      distributions: row d is the output distribution for data set d; each row sums to 1.
      neighbourhoods: groups of rows. The data sets of a group differ in one record, the same for
        all of them, and take all its values while the other records are fixed.
      tolerance: as for `capacity`.
    """
    rows = _checked(distributions)
    groups = [np.asarray(group) for group in neighbourhoods]
    if not groups or min(map(len, groups)) < 1:
        raise ValueError("expected neighbourhoods with at least one data set each")
    if any(group.min() < 0 or group.max() >= len(rows) for group in groups):
        raise ValueError(f"expected neighbourhoods of rows 0 .. {len(rows) - 1}")
    # Groups are padded to one size with copies of their first row, which changes no capacity.
    size = max(map(len, groups))
    padded = [np.append(group, np.full(size - len(group), group[0])) for group in groups]
    found = _capacities(rows[np.stack(padded)], tolerance)
    worst = max(range(len(groups)), key=lambda i: found[i].nats)
    inputs, length = found[worst].inputs, len(groups[worst])
    inputs = np.append(inputs[0] + inputs[length:].sum(), inputs[1:length])
    at_most = max(one.at_most for one in found)
    return WorstCapacity(found[worst].nats, at_most, worst, inputs)


def tabulate(
    mechanism: Callable[[Data], Mapping[Output, Fraction]],
    neighbourhoods: Iterable[Sequence[Data]],
) -> Tabulated:
    """The arrays of a mechanism, for `worst_capacity`.

    Args:
      mechanism: from a data set to the exact probability of each output, as for
        `audit.exact_loss`.
      neighbourhoods: groups of data sets that differ in one record.
    """
    groups = [list(group) for group in neighbourhoods]
    indices = {data: i for i, data in enumerate(dict.fromkeys(d for g in groups for d in g))}
    pmfs = [mechanism(data) for data in indices]
    columns = {output: j for j, output in enumerate(dict.fromkeys(y for pmf in pmfs for y in pmf))}
    table = np.zeros((len(indices), len(columns)))
    for row, pmf in zip(table, pmfs, strict=True):
        for output, p in pmf.items():
            row[columns[output]] = float(p)
    return Tabulated(table, [[indices[data] for data in group] for group in groups])


def radius(channel: ArrayLike, distribution: ArrayLike) -> float:
    """max_x D(W_x || q): an upper bound on the capacity, for any output distribution q.

    With a margin for rounding; infinite if q excludes an output that some input can give.
    """
    rows, outputs = _checked(channel), np.asarray(distribution, np.float64)
    total = outputs.sum()
    if outputs.shape != rows.shape[1:] or (outputs < 0).any() or not abs(total - 1) <= 1e-6:
        raise ValueError(f"expected {rows.shape[1]} probabilities of outputs that sum to 1")
    return _radius(rows, outputs / total)


def _radius(rows: np.ndarray, outputs: np.ndarray) -> float:
    """max_x D(W_x || q), plus a bound on the rounding errors of its sums."""
    terms = _divergence_terms(rows, outputs)
    if not np.isfinite(terms).all():
        return float("inf")
    margin = 2.0**-52 * (sum(rows.shape) + 8) * (1 + np.abs(terms).sum(axis=1).max())
    return float(terms.sum(axis=1).max() + margin)


def _divergence_terms(rows: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """The terms of D(W_x || q), a row for each x."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rows > 0, rows * np.log(rows / outputs), 0.0)


def _capacities(channels: np.ndarray, tolerance: float) -> list[Capacity]:
    """The capacities of channels that all have one shape."""
    # Imported here: nothing else in `dp.information` needs JAX.
    from dpmic_jax.dp.information.blahut_arimoto import best_inputs

    if not 0 < tolerance < 1:
        raise ValueError(f"expected 0 < tolerance < 1, got {tolerance}")
    best = best_inputs(channels, tolerance)
    found = [_bounds_at(rows, inputs) for rows, inputs in zip(channels, best, strict=True)]
    return [
        one if one.at_most - one.nats < 2 * tolerance else _newton(rows, one, tolerance)
        for rows, one in zip(channels, found, strict=True)
    ]


def _bounds_at(rows: np.ndarray, inputs: np.ndarray) -> Capacity:
    """Both bounds on the capacity at an input distribution."""
    inputs = inputs / inputs.sum()
    outputs = inputs @ rows
    nats = max(float(inputs @ _divergence_terms(rows, outputs).sum(axis=1)), 0.0)
    return Capacity(nats, _radius(rows, outputs / outputs.sum()), inputs)


def _newton(rows: np.ndarray, best: Capacity, tolerance: float) -> Capacity:
    """Newton's method for D(W_x || q) = capacity on the inputs in use; the best result met.

    dD(W_x || q) / dP(x') = -sum_y W_x(y) W_x'(y) / q(y). An input whose probability would fall
    below zero is dropped; one that is further from q than those in use is added.
    """
    inputs = best.inputs
    # Inputs that the search has almost dropped start outside; those that matter are added again.
    used = inputs > 1e-6 * inputs.max()
    for _ in range(_NEWTON_STEPS):
        outputs = inputs @ rows
        divergences = _divergence_terms(rows, outputs).sum(axis=1)
        if not np.isfinite(divergences).all():
            break
        part = rows[used]
        ones = np.ones(len(part))
        # The last unknown is the capacity, and the last equation says that P sums to 1.
        right = np.append(divergences[used], 1 - inputs[used].sum())
        slopes = (part / np.where(outputs > 0, outputs, 1.0)) @ part.T
        system = np.block([[slopes, ones[:, None]], [ones[None, :], np.zeros((1, 1))]])
        # Least squares, as the system is singular where one row is a mixture of others.
        move = np.linalg.lstsq(system, right, rcond=None)[0][:-1]
        # The longest step along `move` that keeps each probability at or above zero.
        longest = np.where(move < 0, -inputs[used] / np.where(move < 0, move, -1.0), np.inf)
        inputs = np.where(used, inputs, 0.0)
        inputs[used] += min(1.0, longest.min()) * move
        if longest.min() <= 1:
            used = used.copy()
            used[np.flatnonzero(used)[longest.argmin()]] = False
        elif not used[divergences.argmax()]:
            used = used.copy()
            used[divergences.argmax()] = True
        found = _bounds_at(rows, np.maximum(inputs, 0.0))
        if found.at_most - found.nats < best.at_most - best.nats:
            best = found
        if best.at_most - best.nats < 2 * tolerance:
            break
    return best


def _checked(channel: ArrayLike) -> Float[np.ndarray, "rows outputs"]:
    """The channel with normalised rows, if its shape and entries are valid."""
    rows = np.asarray(channel, np.float64)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"expected one row of probabilities per input, got shape {rows.shape}")
    sums = rows.sum(axis=1, keepdims=True)
    if not (np.isfinite(rows).all() and (rows >= 0).all() and (np.abs(sums - 1) <= 1e-6).all()):
        raise ValueError("expected rows of probabilities >= 0 that sum to 1 each")
    return rows / sums
