"""A lower bound on the sensitivity of a statistic, by a search for the worst neighbours.

A pair of neighbours is represented by n + 1 records: n - 1 that both data sets share, one of the
first data set only, and one of the second only, in its place. Changing any of the n + 1 records
gives neighbours again, so hill climbing moves from pair to pair, and every pair on the way proves
a lower bound on the sensitivity. A claimed sensitivity below it is wrong.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

Batch = Shaped[np.ndarray, "chains n *record"]
Places = Int[np.ndarray, " chains"]
Draw = Callable[[int, np.random.Generator], Shaped[np.ndarray, "count *record"]]
Propose = Callable[[Batch, np.random.Generator], Batch]


class Change(NamedTuple):
    """The worst neighbours found, and the distance of their statistics (`size`)."""

    size: float
    dataset: Shaped[np.ndarray, "n *record"]
    neighbour: Shaped[np.ndarray, "n *record"]


def absolute(
    first: Shaped[np.ndarray, "chains *value"], second: Shaped[np.ndarray, "chains *value"]
) -> Float[np.ndarray, " chains"]:
    """The L1 distance |f(D) - f(D')|, summed over the entries of each statistic."""
    gaps = np.abs(np.asarray(first, float) - np.asarray(second, float))
    return gaps.reshape(len(gaps), -1).sum(axis=1)


def mutate(draw: Draw) -> Propose:
    """A proposal that changes one record of each chain.

    The record is drawn anew, replaced by a copy of another, or gets one field of another. Copies
    matter: the worst data sets are often tied, clustered or collinear, which independent draws
    never are.

    Args:
      draw: (count, generator) -> that many records.
    """

    def propose(records: Batch, generator: np.random.Generator) -> Batch:
        chains, many = records.shape[:2]
        chain, out = np.arange(chains), records.copy()
        target, source = generator.integers(many, size=(2, chains))
        fresh, copied = draw(chains, generator), records[chain, source]
        mixed = records[chain, target].reshape(chains, -1)
        field = generator.integers(mixed.shape[1], size=chains)
        mixed[chain, field] = copied.reshape(chains, -1)[chain, field]
        # 0: drawn anew, 1: copied, 2: with one field of the other record.
        kind = generator.integers(3, size=(chains, *[1] * (records.ndim - 2)))
        out[chain, target] = np.where(
            kind == 0, fresh, np.where(kind == 1, copied, mixed.reshape(fresh.shape))
        )
        return out

    return propose


def largest_change(
    statistic: Callable[[Batch], Any],
    draw: Draw,
    *,
    n: int,
    propose: Propose,
    generator: np.random.Generator,
    chains: int = 256,
    steps: int = 500,
    restarts: int = 2,
    distance: Callable[[Any, Any], Float[np.ndarray, " chains"]] = absolute,
) -> Change:
    """Search for the replace-one neighbours whose statistics differ most.

    Many chains climb in parallel, each from its own random pair. A proposal is accepted if the
    difference does not decrease, so that chains drift along plateaus.

    Example, the mean of n numbers in [0, 1], whose sensitivity is 1/n:

      >>> def numbers(count, generator):
      ...     return generator.integers(0, 5, count) / 4
      >>> found = largest_change(
      ...     lambda data: data.mean(axis=1), numbers, n=10, propose=mutate(numbers),
      ...     generator=np.random.default_rng(0), steps=50,
      ... )
      >>> round(found.size, 6)
      0.1

    Args:
      statistic: maps a batch of data sets (first axis) to a number, or an array, for each.
      draw: (count, generator) -> that many records; chains start from these.
      n: number of records in a data set, at least 1.
      propose: maps a batch of n + 1 records each to a slightly changed one, as `mutate(draw)`.
      generator: source of all randomness.
      chains: number of pairs that climb in parallel.
      steps: number of proposals to each chain.
      restarts: number of times that all chains start from new pairs; at least 1.
      distance: maps two batches of statistics to the distances between them.

    Returns:
      The largest difference found: a lower bound on the sensitivity.
    """
    if min(n, chains, restarts) < 1 or steps < 0:
        raise ValueError("expected n, chains and restarts of at least 1 and steps of at least 0")

    def gaps(pairs: Batch, place: Places) -> Float[np.ndarray, " chains"]:
        found = np.asarray(statistic(np.concatenate([pairs[:, :-1], _neighbour(pairs, place)])))
        size = distance(found[:chains], found[chains:])
        if np.isnan(size).any():
            raise ValueError("expected a statistic that is never NaN, got NaN for a data set")
        return size

    def climb() -> Change:
        # The position of the replaced record matters to statistics that depend on the order.
        place = generator.integers(n, size=chains)
        records = draw(chains * (n + 1), generator)
        pairs = records.reshape(chains, n + 1, *records.shape[1:])
        size = gaps(pairs, place)
        for _ in range(steps):
            tried = propose(pairs, generator)
            gap = gaps(tried, place)
            kept = gap >= size
            pairs = np.where(kept.reshape(-1, *[1] * (pairs.ndim - 1)), tried, pairs)
            size = np.where(kept, gap, size)
        top = int(np.argmax(size))
        return Change(float(size[top]), pairs[top, :-1], _neighbour(pairs, place)[top])

    return max((climb() for _ in range(restarts)), key=lambda change: change.size)


def _neighbour(pairs: Batch, place: Places) -> Batch:
    out = pairs[:, :-1].copy()
    out[np.arange(len(out)), place] = pairs[:, -1]
    return out
