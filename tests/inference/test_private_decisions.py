"""Private decisions: their exact loss and level on tiny data, and broken variants that are caught.

Most audits have one pair, whose cube noise is discrete Laplace: P(Z = z) ~ q^|z|. Its ratio q is
rational, and epsilon = -S ln q for a sensitivity of S steps, so that probabilities are rationals.
"""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import jax
import numpy as np
import oracles
import pytest
from jax.sharding import Mesh
from scipy import stats

from dpmic_jax.dp.audit import exact_loss, replace_one
from dpmic_jax.dp.noise.cube import CubeNoise, random_bits
from dpmic_jax.dp.rng.keys import fold
from dpmic_jax.inference import PrivateDecisions, private_decisions, shuffling
from dpmic_jax.inference.private_decisions import decisions, default_draws, largest_rank
from dpmic_jax.inference.private_noise import DistanceNoise
from dpmic_jax.mic.batch import score_pairs
from dpmic_jax.mic.distance import steps_of
from dpmic_jax.mic.statistics import MICrAndDistance

MOVED = PrivateDecisions.moved
# One record moves the observed distance by one step and that of a copy by two. Epsilon is 6 ln
# (6/5), 1.09, for noise of any number of steps that divides 6.
EPSILON = 6 * math.log(6 / 5)


def ratio(steps):
    """q of noise that has this epsilon for so many steps."""
    return Fraction(5, 6) ** (6 // steps)


# --- the rule -----------------------------------------------------------------------------------


def called(distances, noises, rank, noise):
    """What the package decides of many pairs at once: rows of T_0, ..., T_B and Z_0, ..., Z_B."""
    copies = iter(np.ravel(np.transpose(noises)[1:]).tolist())
    observed = [row[0] for row in noises]
    lanes = np.ravel(np.transpose(distances)).tolist()
    return decisions(lanes, noise, rank, observed=observed, copies=copies)


def test_a_pair_is_dependent_if_few_copies_are_as_large_and_ties_count():
    noise = DistanceNoise(epsilon=1.0, n=4, pairs=1, moved=MOVED)
    m = noise.multiplier
    assert m == 8
    every = [
        (distances, noises)
        for distances in itertools.product((0, 1), repeat=4)
        for noises in itertools.product((-m, 0, 1), repeat=4)
    ]
    for rank in (1, 2, 3):
        found = called(*zip(*every, strict=True), rank, noise)
        for (distances, noises), dependent in zip(every, found, strict=True):
            observed, *copies = (m * d + z for d, z in zip(distances, noises, strict=True))
            assert dependent == (1 + sum(copy >= observed for copy in copies) <= rank)


@pytest.mark.parametrize(
    ("draws", "alpha", "pairs", "rank"),
    [(19, 0.05, 1, 1), (39, 0.05, 2, 1), (399, 0.05, 1, 20), (18, 0.1, 1, 1), (9, 0.7, 1, 7)],
)
def test_the_rank_is_the_largest_of_at_most_the_level(draws, alpha, pairs, rank):
    assert largest_rank(draws, alpha, pairs) == rank
    level = Fraction(repr(alpha)) / pairs
    assert Fraction(rank, draws + 1) <= level < Fraction(rank + 1, draws + 1)


@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.05, 0.3])
@pytest.mark.parametrize("pairs", [1, 3, 100])
def test_by_default_the_level_is_used_up_and_copies_are_few(alpha, pairs):
    if alpha / pairs**2 < 1e-6:
        with pytest.raises(ValueError, match="PrivatePValues"):
            default_draws(alpha, pairs)
        return
    draws = default_draws(alpha, pairs)
    rank = largest_rank(draws, alpha, pairs)
    assert 1 <= rank <= 20
    assert rank / (draws + 1) == pytest.approx(alpha / pairs, rel=1e-2)
    assert rank == 1 or draws * pairs <= 100_000


@pytest.mark.parametrize("draws", [0, 1.5, True, "9", 2**31])
def test_draws_are_checked_when_the_method_is_made(draws):
    with pytest.raises((TypeError, ValueError), match="draws"):
        PrivateDecisions(draws=draws)


def test_draws_that_can_show_nothing_are_refused_and_enough_are_named():
    method = PrivateDecisions(draws=38)
    with pytest.raises(ValueError, match=r"level of 0\.025 for each of 2 pairs: pass draws=39 or"):
        method.settings(0.05, 2)
    assert PrivateDecisions(draws=39).settings(0.05, 2) == {"draws": "39", "rank": "1"}


# --- the level ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_of_any_numbers_at_most_rank_are_called_dependent(rank):
    """All multisets of five numbers, tied or not: whichever of them is the observed one."""
    noise = DistanceNoise(epsilon=1.0, n=4, pairs=1, moved=MOVED)
    in_favour = 0
    for numbers in itertools.combinations_with_replacement(range(5), 5):
        orders = [(numbers[i], *numbers[:i], *numbers[i + 1 :]) for i in range(5)]
        found = called(np.zeros((5, 5), int), orders, rank, noise)
        assert sum(found) <= rank
        if len(set(numbers)) == 5:
            assert sum(found) == rank
        wrong = [1 + sum(copy > observed for copy in copies) for observed, *copies in orders]
        in_favour = max(in_favour, sum(one <= rank for one in wrong))
    # Control: with ties in favour of the test there are numbers that all are called dependent.
    assert in_favour == 5


class Laplace:
    """Discrete Laplace noise with rational ratio q."""

    def __init__(self, q):
        self.q = q

    def tail(self, z):
        """P(Z >= z), in the numbers that q is of."""
        return self.q**z / (1 + self.q) if z > 0 else 1 - self.q ** (1 - z) / (1 + self.q)

    def above(self, t):
        """P(Z - Z' > t) of two independent ones."""
        if t < 0:
            return 1 - self.above(-t - 1)
        # P(Z - Z' = t) = c q^t (t + b), added up over all larger t.
        q = self.q
        c, b = ((1 - q) / (1 + q)) ** 2, (1 + q**2) / (1 - q**2)
        return c * q ** (t + 1) * ((t + 1 + b) / (1 - q) + q / (1 - q) ** 2)


def ranks(q, observed, copies, draws):
    """P(j copies are at least as large as the observed distance), j = 0 .. draws; in floats.

    Args:
      q: ratio of the noise.
      observed: T_0.
      copies: the distribution of the T_b, which are independent: {distance: probability}.
      draws: B.
    """
    reach = math.ceil(40 / -math.log(q))  # the noise exceeds it with a probability below e^-40
    z, law = np.arange(-reach, reach + 1), Laplace(float(q))
    as_large = sum(
        p * np.array([law.tail(int(v)) for v in observed + z - copy]) for copy, p in copies.items()
    )
    mass = (1 - q) / (1 + q) * float(q) ** np.abs(z)
    at = stats.binom.pmf(np.arange(draws + 1)[:, None], draws, as_large)
    return np.asarray(at @ np.asarray(mass, float), float)


def test_the_law_of_ranks_is_that_of_what_the_package_decides():
    """Every noise from -24 to 24 on the observed distance and on two copies."""
    q, z = 0.5, np.arange(-24, 25)
    noises = list(itertools.product(z.tolist(), repeat=3))
    mass = np.prod((1 - q) / (1 + q) * q ** np.abs(noises), axis=1)
    noise = DistanceNoise(epsilon=0.01, n=4, pairs=1, moved=MOVED)
    assert noise.multiplier == 1
    expected = ranks(q, 2, {0: 0.3, 3: 0.7}, 2).cumsum()
    for rank in (1, 2):
        chance = 0
        for copies, weight in (((0, 0), 0.09), ((0, 3), 0.42), ((3, 3), 0.49)):
            distances = np.tile([2, *copies], (len(noises), 1))
            chance += weight * mass @ called(distances, noises, rank, noise)
        assert chance == pytest.approx(expected[rank - 1], abs=1e-6)


@lru_cache
def distance(records):
    """D of a few records whose values are in 0 .. 1, on the path of the tests."""
    x, y = np.array(records, float).T
    cut = MICrAndDistance(micr=None).cut([x, y], [(0.0, 1.0)] * 2)
    (found,) = score_pairs(cut, np.array([[0, 1]]), None)
    return int(found[-1].max())


def shuffled(records):
    """The distribution of a permuted copy's distance, over all orders."""
    x, y = zip(*records, strict=True)
    found = Counter(
        distance(tuple(sorted(zip(x, order, strict=True)))) for order in itertools.permutations(y)
    )
    orders = math.factorial(len(records))
    return {copy: Fraction(count, orders) for copy, count in found.items()}


BITS = tuple(itertools.product((0.0, 1.0), repeat=2))


def test_tied_data_and_tied_noise_keep_the_level_exactly():
    """Two values a column and a coarse lattice. Under independence T_0 is distributed as a copy."""
    q, favoured = 0.5, 0
    for records in itertools.combinations_with_replacement(BITS, 5):
        copies = {copy // 16: float(p) for copy, p in shuffled(records).items()}
        for draws, rank in ((3, 1), (9, 2)):
            level = rank / (draws + 1)
            laws = [p * ranks(q, copy, copies, draws) for copy, p in copies.items()]
            rejected = sum(laws)[:rank].sum()
            assert rejected <= level + 1e-12
            # Control: as if ties counted in favour, which is noise of 1 more on the observed one.
            laws = [p * ranks(q, copy + 1, copies, draws) for copy, p in copies.items()]
            favoured = max(favoured, sum(laws)[:rank].sum() / level)
    assert favoured > 1.3


def found_of(x, y, method, noise, alpha, key):
    """What the method finds of one pair."""
    cut = MICrAndDistance(micr=None).cut([x, y], [(0.0, 1.0)] * 2)
    return method.found(cut, np.array([[0, 1]]), noise, alpha, key)


def rejected(rounds, method, noise, alpha):
    """How often independent tied columns are called dependent."""
    rng, count = np.random.default_rng(5), 0
    for number in range(rounds):
        x, y = rng.integers(0, 2, noise.n) / 1.0, rng.integers(0, 3, noise.n) / 2
        count += found_of(x, y, method, noise, alpha, jax.random.key(number)).dependent[0]
    return count


def test_independent_columns_are_called_dependent_as_often_as_the_level_says(monkeypatch):
    rounds, alpha, method = 120, 0.2, PrivateDecisions(draws=4)
    # Noise that is about as large as the spread of the distances.
    noise = DistanceNoise(epsilon=3.0, n=40, pairs=1, moved=MOVED)
    count = rejected(rounds, method, noise, alpha)
    assert stats.binomtest(count, rounds, alpha).pvalue > 1e-3
    # Control: copies without noise, when noise is nearly all that matters.
    monkeypatch.setattr(DistanceNoise, "draws", lambda self, bits: itertools.repeat(0))
    count = rejected(rounds, method, replace(noise, epsilon=0.1), alpha)
    assert stats.binomtest(count, rounds, alpha).pvalue < 1e-6


def orders(key, draws, n):
    """The order of the records in the observed table, which is theirs, and in every copy."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("pairs",))
    return shuffling.shuffles(key, np.arange(draws + 1), n, mesh)


# --- what one record moves ------------------------------------------------------------------------


def test_a_copy_moves_by_up_to_two_records_and_the_observed_distance_by_one(rng, key):
    """Tables whose first copy is half way to being dependent, and neighbours of each."""
    n, tables, draws = 40, 40, 4
    _, order = orders(key, 1, n)
    columns = []
    for strength in np.linspace(0.3, 0.9, tables):
        x, y = rng.integers(0, 2, (2, n))
        y[order] = np.where(rng.random(n) < strength, x, y[order])
        columns += [x, y]
        for record in rng.integers(0, n, 2):
            other = np.stack([x, y])
            other[:, record] = 1 - other[:, record]
            columns += [*other]
    cut = MICrAndDistance(micr=None).cut([c / 1.0 for c in columns], [(0.0, 1.0)] * len(columns))
    pairs = np.arange(len(columns)).reshape(-1, 2)
    found = np.concatenate(list(shuffling.distances(cut, pairs, range(draws + 1), key=key)))
    found = found.reshape(draws + 1, tables, 3).astype(int)
    one, moves = 2 * steps_of(n), np.abs(found[:, :, 1:] - found[:, :, :1])
    assert moves[0].max() <= one
    # Noise that is calibrated as if a copy moved by one record would not cover it.
    assert 3 / 2 * one < moves[1:].max() <= 2 * one


def test_against_any_copy_no_record_of_five_moves_by_more_than_three():
    """All tables of five records of two values, all orders, all neighbours."""
    one, most = 2 * steps_of(5), 0
    for order in itertools.permutations(range(5)):
        for rest in itertools.combinations_with_replacement(BITS, 4):
            against = []
            for record in BITS:
                records = (record, *rest)
                copy = ((records[i][0], records[order[i]][1]) for i in range(5))
                against.append(distance(tuple(sorted(records))) - distance(tuple(sorted(copy))))
            most = max(most, max(against) - min(against))
    assert 3 / 2 * one < most <= MOVED * one


# --- privacy --------------------------------------------------------------------------------------


def at_most(loss, steps, q):
    """Whether an exact loss is at most epsilon = -steps ln q, in rationals."""
    return loss.more * q**steps <= loss.less


@pytest.mark.parametrize("n", [4, 5])
def test_the_decision_on_any_few_records_loses_at_most_epsilon(n):
    """All tables of two values, all neighbours, one copy in every order; exactly, at epsilon 1."""
    steps = MOVED * 2 * steps_of(n)
    noise = Laplace(1 - Fraction(1, steps))

    def distribution(records):
        observed = distance(records)
        yes = sum(p * noise.above(copy - observed) for copy, p in shuffled(records).items())
        return {True: yes, False: 1 - yes}

    loss = exact_loss(distribution, replace_one(BITS, n))
    assert at_most(loss, steps, noise.q)
    assert loss.epsilon > 0.1


def apart(x, y):
    """A statistic of a table that one record moves by 1, and in permuted copies by 2.

    Replacing a record of ("old", "old") by ("new", "new") raises the statistic. In a copy each of
    its two halves stands beside one of another record, and it falls by 1 for each of them.
    """
    counted = {("old", "other"), ("other", "old"), ("new", "new")}
    return sum(record in counted for record in zip(x, y, strict=True))


def moved_copies(n):
    """T_0 and the distribution of a copy, for a table of n records and its neighbour."""
    found = []
    for kind in ("old", "new"):
        values = (kind, *("other",) * (n - 1))
        count = Counter(apart(values, order) for order in itertools.permutations(values))
        orders = math.factorial(n)
        copies = {copy: Fraction(number, orders) for copy, number in count.items()}
        found.append((apart(values, values), copies))
    return found


@pytest.mark.parametrize(("draws", "rank"), [(1, 1), (9, 1), (99, 5)])
@pytest.mark.parametrize("steps", [MOVED, 2, 1])
def test_epsilon_is_nearly_lost_and_noise_for_fewer_steps_is_caught(draws, rank, steps):
    """Noise for 2 steps is 2/3 of what it has to be; for 1 it is calibrated to the plain Delta."""
    (observed, copies), (other, others) = moved_copies(6)
    assert (observed, other) == (0, 1)
    assert copies == {2: Fraction(5, 6), 0: Fraction(1, 6)}
    assert others == {0: Fraction(5, 6), 1: Fraction(1, 6)}
    q = float(ratio(steps))
    one, another = (
        ranks(q, t, {at: float(p) for at, p in law.items()}, draws)[:rank].sum()
        for t, law in ((observed, copies), (other, others))
    )
    loss = abs(math.log(one / another)) / EPSILON
    if steps == MOVED:
        assert loss <= 1
        assert loss > (0.8 if draws > 1 else 0.4)
    elif draws > 1:
        assert loss > (1.2 if steps == 2 else 2.4)


def test_given_the_copies_no_move_of_three_steps_loses_more_and_some_lose_epsilon():
    """The claim of the proof: of all thresholds V - T_0, and those that are 3 steps away."""
    noise, steps = Laplace(ratio(MOVED)), MOVED

    def distribution(threshold):
        yes = noise.tail(threshold + 1)
        return {True: yes, False: 1 - yes}

    near = [(v, v + move) for v in range(-6, 7) for move in range(1, steps + 1)]
    loss = exact_loss(distribution, near)
    assert at_most(loss, steps, noise.q)
    assert loss.more * noise.q**steps == loss.less
    far = exact_loss(distribution, [(v, v + steps + 1) for v in range(-6, 7)])
    assert not at_most(far, steps, noise.q)


def cube_decisions(q, thresholds):
    """The distribution of whether Z_i > threshold i, of one cube of noise for two pairs; exactly.

    Z is uniform in a cube whose radius is r with a probability proportional to q^r (2r + 1)^2. From
    `first` on the ways to each outcome are products of linear functions of r.
    """

    def ways(r, outcome):
        above = (min(max(r - t, 0), 2 * r + 1) for t in thresholds)
        return [a if yes else 2 * r + 1 - a for a, yes in zip(above, outcome, strict=True)]

    first, law = max(map(abs, thresholds)) + 1, {}
    sums = [1 / (1 - q), q / (1 - q) ** 2, q * (1 + q) / (1 - q) ** 3]  # of i^k q^i
    for outcome in itertools.product((True, False), repeat=2):
        a, b = ways(first, outcome)
        up, also = (w - v for w, v in zip(ways(first + 1, outcome), (a, b), strict=True))
        beyond = a * b * sums[0] + (a * also + b * up) * sums[1] + up * also * sums[2]
        within = sum(q**r * math.prod(ways(r, outcome)) for r in range(first))
        law[outcome] = within + q**first * beyond
    total = sum(law.values())
    return {outcome: mass / total for outcome, mass in law.items()}


def alone(q, thresholds):
    """As if every pair had a radius of its own."""
    each = [Laplace(q).tail(t + 1) for t in thresholds]
    return {
        outcome: math.prod(p if yes else 1 - p for p, yes in zip(each, outcome, strict=True))
        for outcome in itertools.product((True, False), repeat=2)
    }


def test_two_decisions_together_lose_at_most_epsilon():
    """Given the copies, for all thresholds and all moves of three steps of both pairs."""
    near = range(-MOVED, MOVED + 1)
    pairs = [
        [(v, w), (v + a, w + b)]
        for v, w in itertools.product(range(-3, 4), repeat=2)
        for a, b in itertools.product(near, repeat=2)
        if (a, b) > (0, 0)
    ]
    q = ratio(MOVED)
    assert at_most(exact_loss(lambda t: cube_decisions(q, t), pairs), MOVED, q)
    # Controls: two thirds of the noise, and a radius for each pair.
    assert not at_most(exact_loss(lambda t: cube_decisions(ratio(2), t), pairs), MOVED, q)
    assert exact_loss(lambda t: alone(q, t), pairs).epsilon == pytest.approx(2 * EPSILON)


@pytest.mark.parametrize(
    ("d", "epsilon", "n", "moved"), [(1, 1.0, 4, 3), (7, 0.3, 600, 9), (100, 50.0, 10**6, 3)]
)
def test_noise_is_one_cube_for_what_records_move_on_a_lattice_that_is_fine(d, epsilon, n, moved):
    noise = DistanceNoise(epsilon=epsilon, n=n, pairs=d, moved=moved)
    cube = noise.cube
    assert cube.values == d
    assert cube.rate * cube.sensitivity == Fraction(repr(epsilon))
    # `moved` records, each of which moves the point m D by 2 G m; D is 2 G n at a distance of 1.
    assert cube.sensitivity == moved * 2 * steps_of(n) * noise.multiplier
    assert Fraction(cube.sensitivity, noise.top) == Fraction(moved, n) == noise.sensitivity
    assert cube.rate <= Fraction(1, 1024)
    assert noise.multiplier == 1 or cube.rate > Fraction(1, 2048)


def test_an_epsilon_beyond_the_finest_lattice_is_refused_by_its_name():
    assert DistanceNoise(epsilon=1e12, n=600, pairs=1, moved=3).cube.sensitivity < 2**60
    with pytest.raises(ValueError, match=r"epsilon <= .*got 1e\+15"):
        DistanceNoise(epsilon=1e15, n=600, pairs=1, moved=3)


# --- what must not be released --------------------------------------------------------------------

# The observed distance rises by one step. Copies, all five steps above it, fall by two, or, one in
# five, rise by two.
BEFORE = 0, {5: 1.0}
AFTER = 1, {3: 0.8, 7: 0.2}


def test_a_released_rank_is_caught_where_every_single_decision_is_private():
    q, most = float(ratio(MOVED)), math.exp(EPSILON) * (1 + 1e-9)  # for rounding
    before, after = (ranks(q, *where, 99) for where in (BEFORE, AFTER))
    for rank in range(1, 100):
        for one, other in ((before, after), (after, before)):
            assert one[:rank].sum() <= most * other[:rank].sum()
            assert one[rank:].sum() <= most * other[rank:].sum()
    loss = np.abs(np.log(before / after))
    assert loss.max() > 1.7 * EPSILON
    # With 199 copies it is more, and there is no end to it.
    assert np.abs(np.log(ranks(q, *BEFORE, 199) / ranks(q, *AFTER, 199))).max() > 3 * EPSILON


def test_decisions_at_two_levels_are_caught():
    """Dependent at a level of 50 %, and not at one of 49 %."""
    q = float(ratio(MOVED))
    before, after = (ranks(q, *where, 99)[49:50].sum() for where in (BEFORE, AFTER))
    assert math.log(after / before) > 1.7 * EPSILON


def shared_radius(q, observed, copy, draws):
    """P(dependent at rank 1) if the observed distance and all copies share one radius."""
    chance, total = 0.0, 0.0
    for r in range(200):  # q^200 is far below what decides anything
        z = np.arange(-r, r + 1)
        below = np.clip((observed + z - copy + r) / (2 * r + 1), 0, 1)
        chance += q**r * (below**draws).sum()
        total += q**r * (2 * r + 1)
    return chance / total


@pytest.mark.parametrize(("draws", "least"), [(3, 1.4), (9, 2.8), (19, 4.5)])
def test_a_radius_that_copies_share_with_the_observed_pair_is_caught(draws, least):
    q = float(ratio(MOVED))
    far, near = (shared_radius(q, *where, draws) for where in ((0, 2), (1, 0)))
    assert math.log(near / far) > least * EPSILON
    own = [ranks(q, observed, {copy: 1.0}, draws)[0] for observed, copy in ((0, 2), (1, 0))]
    assert math.log(own[1] / own[0]) <= EPSILON


def test_every_copy_draws_a_radius_of_its_own(monkeypatch, key):
    noise = DistanceNoise(epsilon=1.0, n=40, pairs=3, moved=MOVED)
    radii = iter([0, 10**6, 0, 10**6])
    monkeypatch.setattr(CubeNoise, "radius_from", lambda self, bits: next(radii))
    drawn = noise.draws(random_bits(key))
    vectors = [[next(drawn) for _ in range(3)] for _ in range(4)]
    assert [any(vector) for vector in vectors] == [False, True, False, True]


# --- from records to decisions --------------------------------------------------------------------


def exact_distance(x, y):
    """D from the definition, of columns with values from 0 to 1."""
    codes = [np.minimum((16 * column).astype(int), 15) for column in (x, y)]
    table = np.zeros((16, 16), int)
    np.add.at(table, tuple(codes), 1)
    n = len(x)
    return max(map(oracles.split_distance, (table, table.T))) * 2 * steps_of(n) * n


def test_decisions_compare_permuted_records_with_independent_noise(monkeypatch, rng, key):
    """The distances are those of the definition, and each part of the randomness has a key."""
    n, draws = 40, 3
    x = rng.random((4, n))
    x[1] = np.round(x[0], 1)
    cut = MICrAndDistance(micr=None).cut(list(x), [(0.0, 1.0)] * 4)
    pairs = np.array([[0, 1], [3, 2]])
    noise = DistanceNoise(epsilon=3.0, n=n, pairs=2, moved=MOVED)
    compared = {}

    def recorded(distances, noise, rank, *, observed, copies):
        drawn = list(itertools.islice(copies, 2 * draws))
        compared.update(distances=list(distances), rank=rank, observed=observed, copies=drawn)
        return True, False

    monkeypatch.setattr(private_decisions, "decisions", recorded)
    found = PrivateDecisions(draws=draws).found(cut, pairs, noise, 0.5, key)
    observed, copies, shuffles = (
        fold(key, jax.numpy.asarray([word], jax.numpy.uint32)) for word in (1, 2, 3)
    )
    assert compared["distances"] == [
        exact_distance(x[a], x[b][order]) for order in orders(shuffles, draws, n) for a, b in pairs
    ]
    assert compared["rank"] == largest_rank(draws, 0.5, 2) == 1
    assert compared["observed"] == noise.draw(random_bits(observed))
    bits = random_bits(copies)
    assert compared["copies"] == [z for _ in range(draws) for z in noise.draw(bits)]
    assert len({*compared["observed"], *compared["copies"]}) == 2 * (draws + 1)
    assert found == ((True, False), None, None, None)
