"""Released values are exact ones with the noise that key, event and pair say, to the bit.

Noise is drawn here once more, a pair at a time, from the key that the documents tell of: the
run's key folded with the eight words of the event's digest, then i, then j. Scores of a selecting
ask have a 1 folded in before i and j, its choice has a 2, the order of `Above` a 3, and distances
have a 4. The radius of cube noise is drawn from the same key as the noise of a pair before i and j
are folded in, with 2^32 - 2 folded in.
"""

import math
from fractions import Fraction
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from small import BOUNDS, NAMES, STATISTIC, columns, screened

from dpmic_jax import ReplaceOne, seeded_key
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.noise.lattice import LatticeCube, LatticeGauss
from dpmic_jax.mechanisms.release import on_lattice
from dpmic_jax.mic.batch import score_pairs
from dpmic_jax.mic.characteristic import integer_mic
from dpmic_jax.mic.xlogx import exact_gains
from dpmic_jax.screening import Above, AllPairs, TopK
from dpmic_jax.screening.planning import plan

EPSILON, N = 20.0, 200


def folded(key, *words):
    for word in words:
        key = jax.random.fold_in(key, np.uint32(word))
    return key


def of_event(result, seed=1):
    """The key of the event that the result says was charged."""
    event = Event.from_json(result.statement.event)
    return folded(seeded_key(seed), *np.frombuffer(event.digest, "<u4"))


def plan_of(result, ask, delta=0.0):
    event = Event.from_json(result.statement.event)
    found = plan(
        names=NAMES,
        n=N,
        ask=ask,
        epsilon=result.statement.epsilon,
        delta=delta,
        statistic=STATISTIC,
        relation=ReplaceOne(1),
        label=event.label,
    )
    assert found.event == event
    return found


@lru_cache
def codes(place, parts):
    return oracles.width_codes(columns(N)[NAMES[place]], parts, *BOUNDS[NAMES[place]])


@lru_cache
def exact(i, j):
    """MICr of two columns in float64, from the definition."""
    sizes = sorted({grid.rows for grid in STATISTIC.grids(N)})
    entries = oracles.characteristic(
        i,
        j,
        int(STATISTIC.B),
        STATISTIC.c,
        lambda place, parts, _: codes(place, parts),
        oracles.merge_by_recursion,
        sizes=sizes,
    )
    return max(entries.values())


def noisy(noise, point, key, i=None, j=None):
    """A point with the noise of pair (i, j), of an event's key; without a pair with the key's."""
    if isinstance(noise, LatticeCube):
        radius = noise.noise.radius(folded(key, 2**32 - 2))
        words = np.asarray(jax.random.bits(folded(key, i, j), (16,), np.uint32))
        drawn = int.from_bytes(words[:4].astype("<u4").tobytes(), "little")
        return min(max(int(point) + drawn % (2 * radius + 1) - radius, 0), noise.lattice.top)
    key = key if i is None else folded(key, i, j)
    return int(noise.release(jnp.asarray(point, jnp.int32), key=key))


def exact_distances(lattice):
    """Every pair's distance on a lattice, by brute force from the definition."""
    found = {}
    for i in range(len(NAMES)):
        for j in range(i + 1, len(NAMES)):
            counts = np.zeros((16, 16), int)
            np.add.at(counts, (codes(i, 16), codes(j, 16)), 1)
            both = max(oracles.split_distance(counts), oracles.split_distance(counts.T))
            found[i, j] = math.floor(both * lattice.top)
    return found


@pytest.mark.parametrize(("epsilon", "delta"), [(EPSILON, 0.0), (2.0, 0.01)])
def test_a_released_distance_is_the_exact_one_with_the_noise_of_its_pair(epsilon, delta):
    result = screened(columns(N), epsilon=epsilon, delta=delta, force=True)
    law = plan_of(result, AllPairs(), delta).distances
    assert isinstance(law, LatticeGauss if delta else LatticeCube)
    key, points = folded(of_event(result), 4), exact_distances(law.lattice)
    for (i, j), distance in zip(result.pairs.tolist(), result.distance.tolist(), strict=True):
        released = noisy(law, points[i, j], key, i, j)
        assert Fraction(distance) == Fraction(released, law.lattice.top)


@pytest.mark.parametrize(("epsilon", "delta"), [(EPSILON, 0.0)])
def test_a_released_value_is_the_exact_one_with_the_noise_of_its_pair(epsilon, delta):
    result = screened(columns(N), epsilon=epsilon, delta=delta, force=True)
    law = plan_of(result, AllPairs(), delta).values
    assert isinstance(law, LatticeGauss if delta else LatticeCube)
    steps, certain, key = law.lattice.top, 0, folded(of_event(result), 5)
    for (i, j), mic in zip(result.pairs.tolist(), result.mic.tolist(), strict=True):
        value, off = exact(i, j), 12 * 2.0**-26
        # Table entries are rounded to 2^-26, which may move a value over a step of the lattice.
        points = {min(math.floor((value + d) * steps), steps) for d in (-off, off)}
        certain += len(points) == 1
        released = {Fraction(noisy(law, point, key, i, j), steps) for point in points}
        assert Fraction(mic) in released
    assert certain >= 19


def values_of(lattice):
    """Every pair's exact MICr on a lattice, from the integer path of the library."""
    pairs = np.array([(i, j) for i in range(len(NAMES)) for j in range(i + 1, len(NAMES))])
    cut = STATISTIC.cut(list(columns(N).values()), list(BOUNDS.values()))
    tiles = list(score_pairs(cut, pairs, exact_gains(N)))
    values = np.concatenate([integer_mic(STATISTIC.grids(N), tile) for tile in tiles])
    return pairs, on_lattice(lattice, values)


@pytest.mark.parametrize(
    "ask", [TopK(4, selection_fraction=0.7), Above(0.3, 3, selection_fraction=0.7)]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_pairs_are_chosen_by_noisy_scores_and_their_values_get_fresh_noise(ask, seed):
    result = screened(columns(N), ask=ask, epsilon=EPSILON, seed=seed)
    planned, key = plan_of(result, ask), of_event(result, seed)
    selector, lattice = planned.choice
    points = exact_distances(lattice)
    seen = [noisy(selector, point, folded(key, 1, i, j)) for (i, j), point in points.items()]
    pairs, exact_points = values_of(planned.values.lattice)
    order = np.arange(len(pairs))
    if isinstance(ask, Above):
        order = np.asarray(jax.random.permutation(folded(key, 3), len(pairs)))
    in_order = jnp.asarray(np.array(seen)[order], jnp.int32)
    chosen = order[selector.choose(in_order, key=folded(key, 2))]
    assert {tuple(pair) for pair in result.pairs.tolist()} == {
        tuple(pair) for pair in pairs[chosen].tolist()
    }
    values = dict(zip(map(tuple, result.pairs.tolist()), result.mic.tolist(), strict=True))
    law = planned.values
    for place in chosen.tolist():
        i, j = pairs[place].tolist()
        released = noisy(law, exact_points[place], folded(key, 5), i, j)
        assert Fraction(values[i, j]) == Fraction(released, law.lattice.top)


def test_what_is_not_among_the_first_found_may_be_above_too():
    """`Above` looks at pairs in an order of its own, so that the last columns have a chance."""
    found = {
        tuple(pair)
        for seed in range(6)
        for pair in screened(
            columns(N), ask=Above(0.5, 1, selection_fraction=0.7), epsilon=200.0, seed=seed
        ).pairs.tolist()
    }
    assert len(found) > 1
    strong = {NAMES.index(name) for name in "adfg"}
    assert all({i, j} <= strong for i, j in found)
