"""Groups of records, several releases, personal budgets: on channels with two or three records."""

import itertools
import math

import numpy as np
import pytest
from channels import capacities, delta, divergence, erasure, loss, random_channels, variation
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.dp.accounting.events import ZCDP, ApproximateDP, Event, PureDP, ReplaceOne
from dpmic_jax.dp.information import (
    KLDP,
    MIDP,
    Personal,
    VariationDP,
    approximate_group,
    composed,
    composed_personal,
    disjoint,
    mi_of_group,
    mi_to_variation,
    published,
    pure_group,
    pure_mixed_group,
    pure_to_kl,
    pure_to_mi,
    total_mi,
    variation_group,
    worst,
)

EACH = 300
PAIRS = list(itertools.product(range(2), repeat=2))
ONE_ENTRY = [[0, 1], [2, 3], [0, 2], [1, 3]]


def of_one_entry(measure, made):
    """The worst of all neighbourhoods of two binary entries."""
    return np.max([measure(made[:, group]) for group in ONE_ENTRY], axis=0)


@pytest.fixture(scope="module")
def two_records():
    """Mechanisms on two binary records: rows are data sets 00, 01, 10, 11."""
    made = random_channels(np.random.default_rng(3), 4, 4, EACH)
    # Two independent responses: as far apart by two records as twice one record allows.
    odds = np.exp(np.array([0.3, 1.0, 2.0]))
    one = np.stack([np.stack([odds, 1 / odds**0], -1), np.stack([odds**0, odds], -1)], 1)
    one /= one.sum(-1, keepdims=True)
    both = np.einsum("cxa,cyb->cxyab", one, one).reshape(3, 4, 4)
    made = np.concatenate([made, both])
    return made[of_one_entry(variation, made) > 1e-6]


def test_two_records_cost_twice(two_records):
    """Properties 7 and 8 on all pairs of data sets, and two thirds of the bounds do not hold."""
    held = of_one_entry(loss, two_records)
    fine = np.isfinite(held)
    bound = np.array([pure_group(PureDP(float(e)), records=2).epsilon for e in held[fine]])
    found = loss(two_records[fine])
    assert (found <= bound * (1 + 1e-9)).all()
    assert (found > bound / 1.5).any()

    apart = of_one_entry(variation, two_records)
    bound = np.array([variation_group(VariationDP(float(v)), records=2).delta for v in apart])
    assert (variation(two_records) <= bound + 1e-12).all()
    assert (variation(two_records) > bound / 1.5).any()


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_two_records_cost_a_geometric_sum_of_delta(two_records, epsilon):
    off = of_one_entry(lambda made: delta(made, epsilon), two_records) * (1 + 1e-9)
    fine = (off > 1e-12) & (off * (1 + math.exp(epsilon)) < 1)
    assert fine.sum() > 30
    found = delta(two_records[fine], 2 * epsilon)
    bound = np.array(
        [approximate_group(ApproximateDP(epsilon, float(d)), records=2).delta for d in off[fine]]
    )
    np.testing.assert_allclose(bound, off[fine] * (1 + math.exp(epsilon)), rtol=1e-9)
    assert (found <= bound).all()


def test_property_9_is_attained_by_a_chain_of_steps():
    """Probabilities 0, d, d + e^epsilon d, ...: each the most that (epsilon, delta) allows."""
    epsilon, off, records = 0.4, 0.01, 5
    largest = 0.0
    for _ in range(records):
        largest = math.exp(epsilon) * largest + off
    found = approximate_group(ApproximateDP(epsilon, off), records=records)
    assert found.delta == pytest.approx(largest, rel=1e-12)
    assert found.epsilon == pytest.approx(records * epsilon)


def example_5(chance, size):
    """Reveal the value of two equal records, or that they differ, with the given probability."""
    made = np.zeros((size, size, size + 2))
    for a, b in itertools.product(range(size), repeat=2):
        made[a, b, a if a == b else size] = chance
    made[..., size + 1] = 1 - chance
    return made


@pytest.mark.parametrize("size", [2, 5, 9])
def test_the_discrepancy_of_example_5(size):
    """e ln 2 nats about one record, e ln(|X| + 1) about two: no bound without a count."""
    chance = 0.01
    made = example_5(chance, size)
    single = np.concatenate([made, made.swapaxes(0, 1)])
    low, high = capacities(single)
    assert high.max() == pytest.approx(chance * math.log(2), rel=1e-6)
    both = made.reshape(1, size * size, -1)
    low, high = capacities(both, steps=3000)
    assert low[0] == pytest.approx(chance * math.log(size + 1), rel=1e-6)
    if size > 3:
        assert low[0] > 2 * chance * math.log(2)
    held = MIDP(chance * math.log(2) * (1 + 1e-12))
    sizes = {"records": 2, "values": size, "outputs": size + 2}
    assert low[0] <= mi_of_group(held, **sizes).nats <= published.corollary_5(held, **sizes).nats


def test_corollary_5_on_random_mechanisms(two_records):
    held = np.max([capacities(two_records[:, group])[1] for group in ONE_ENTRY], axis=0)
    found, _ = capacities(two_records)
    sizes = {"records": 2, "values": 2, "outputs": 4}
    bound = np.array([mi_of_group(MIDP(float(i) * (1 + 1e-9)), **sizes).nats for i in held])
    assert (found <= bound).all()
    assert (found > bound / 1.5).any()


@given(st.floats(1e-9, 0.5), st.integers(1, 5), st.integers(2, 50))
def test_corollary_5_is_below_its_printed_form(nats, records, values):
    sizes = {"records": records, "values": values, "outputs": math.inf}
    found = mi_of_group(MIDP(nats), **sizes).nats
    assert found <= records * math.log(values) * (1 + 1e-12)
    if records * math.sqrt(2 * nats) > 1:
        with pytest.raises(ValueError, match=r"Corollary 5 needs records \* sqrt\(2 nats\) <= 1"):
            published.corollary_5(MIDP(nats), **sizes)
    else:
        assert found <= published.corollary_5(MIDP(nats), **sizes).nats


def test_a_group_guarantee_that_promises_nothing_is_refused():
    with pytest.raises(ValueError, match="Property 9 gives records=100 a delta of 1 or more"):
        approximate_group(ApproximateDP(1.0, 1e-6), records=100)
    with pytest.raises(ValueError, match="Property 9"):
        approximate_group(ApproximateDP(1e300, 1e-300), records=2)
    alone = approximate_group(ApproximateDP(1e3, 1e-9), records=1)
    assert (alone.epsilon, alone.delta) == (1e3, pytest.approx(1e-9, rel=1e-12))
    assert variation_group(VariationDP(0.3), records=10).delta == 1
    with pytest.raises(ValueError, match="records >= 1"):
        pure_group(PureDP(1.0), records=0)
    with pytest.raises(TypeError, match="Property 7 starts from PureDP"):
        pure_group(MIDP(1.0), records=2)


# --- several releases ----------------------------------------------------------------------------


def test_independent_responses_add_up_at_most():
    """Corollary 2, for MI-DP and KL-DP: pairs of random channels, drawn independently."""
    rng = np.random.default_rng(5)
    first, second = (random_channels(rng, 3, 3, EACH) for _ in range(2))
    both = np.einsum("cxa,cxb->cxab", first, second).reshape(len(first), 3, 9)
    fine = np.minimum(variation(first), variation(second)) > 1e-6
    first, second, both = first[fine], second[fine], both[fine]
    apart = zip(capacities(first)[1], capacities(second)[1], strict=True)
    total = np.array([composed([MIDP(float(a)), MIDP(float(b))]).nats for a, b in apart])
    found, _ = capacities(both)
    assert (found <= total * (1 + 1e-9)).all()
    assert (found > total / 1.5).any()
    total = [divergence(first), divergence(second)]
    finite = np.isfinite(total[0] + total[1])
    sums = [
        composed([KLDP(float(a)), KLDP(float(b))]).nats
        for a, b in zip(total[0][finite], total[1][finite], strict=True)
    ]
    assert (divergence(both[finite]) <= np.array(sums) * (1 + 1e-9)).all()


def test_responses_that_depend_on_the_first_add_up_at_most():
    """Corollary 3: the second channel is chosen by the first one's output."""
    rng = np.random.default_rng(6)
    first = random_channels(rng, 3, 2, EACH)
    seconds = [random_channels(rng, 3, 3, EACH) for _ in range(2)]
    both = np.concatenate([first[..., [k]] * seconds[k] for k in range(2)], axis=-1)
    each = [capacities(made)[1] for made in (first, *seconds)]
    total = each[0] + np.maximum(each[1], each[2])
    fine = (each[0] > 1e-9) & (total > each[0] + 1e-9)
    found, _ = capacities(both)
    sums = [
        composed([MIDP(float(a)), MIDP(float(b))]).nats
        for a, b in zip(each[0][fine], (total - each[0])[fine], strict=True)
    ]
    assert (found[fine] <= np.array(sums) * (1 + 1e-9)).all()


def test_noise_that_is_used_twice_reveals_everything():
    """Example 4: a one-time pad and its key reveal nothing each, and everything together."""
    size = 5
    pad = np.full((1, size, size), 1 / size)
    both = np.zeros((size, size, size))
    for value, key in itertools.product(range(size), repeat=2):
        both[value, (value + key) % size, key] = 1 / size
    assert capacities(pad)[1][0] == pytest.approx(0, abs=1e-12)
    assert capacities(both.reshape(1, size, -1))[0][0] == pytest.approx(math.log(size))


def test_the_sum_is_approached_by_erasures():
    """k erasure channels have (1 - (1 - d)^k) ln N nats, k d ln N in the limit."""
    one = erasure(1e-4, 3)
    both = np.einsum("xa,xb->xab", one, one).reshape(3, -1)
    nats = 1e-4 * math.log(3)
    total = composed([MIDP(nats), MIDP(nats)]).nats
    assert capacities(both[None])[0][0] == pytest.approx(total, rel=1e-3)


def test_disjoint_subsets_cost_as_much_as_the_worst_of_them():
    """Corollary 4: one response about the first record, another about the second."""
    rng = np.random.default_rng(8)
    first, second = (random_channels(rng, 2, 3, EACH) for _ in range(2))
    fine = np.minimum(variation(first), variation(second)) > 1e-6
    first, second = first[fine], second[fine]
    both = np.einsum("cxa,cyb->cxyab", first, second).reshape(len(first), 4, 9)
    held = [capacities(made)[1] for made in (first, second)]
    bound = [disjoint([MIDP(float(a)), MIDP(float(b))]).nats for a, b in zip(*held, strict=True)]
    found = of_one_entry(lambda made: capacities(made)[0], both)
    assert (found <= np.array(bound) * (1 + 1e-9)).all()
    assert (found > np.array(bound) / 1.5).all()


@given(st.lists(st.floats(1e-6, 5.0), min_size=1, max_size=6))
def test_nats_of_many_releases_are_below_those_of_the_sum(epsilons):
    each = composed([pure_to_mi(PureDP(e)) for e in epsilons]).nats
    whole = pure_to_mi(PureDP(math.fsum(epsilons))).nats
    assert each <= whole * (1 + 1e-9)
    assert each == pytest.approx(math.fsum(pure_to_mi(PureDP(e)).nats for e in epsilons))
    assert composed([MIDP(0.1)] * 10) == MIDP(1.0)
    assert disjoint([KLDP(0.1), KLDP(0.3)]) == KLDP(0.3)


def event(guarantee, count=1):
    return Event(
        mechanism="any", guarantee=guarantee, relation=ReplaceOne(), n=9, sensitivity=1, count=count
    )


def test_the_total_of_events_is_the_sum_of_their_nats():
    events = [event(PureDP(0.1), 100), event(ZCDP(0.01), 3)]
    expected = 100 * pure_to_mi(PureDP(0.1)).nats + 0.03
    assert total_mi(events, values=math.inf).nats == pytest.approx(expected, rel=1e-12)
    assert total_mi(events, values=math.inf).bits == pytest.approx(expected / math.log(2))
    assert total_mi([event(PureDP(50.0), 9)], values=8).nats == pytest.approx(math.log(8))
    with pytest.raises(ValueError, match="at least one event"):
        total_mi([], values=2)
    with pytest.raises(ValueError, match="finite number"):
        total_mi([event(ApproximateDP(1.0, 1e-6))], values=math.inf)


def test_guarantees_that_cannot_be_composed_are_refused():
    with pytest.raises(ValueError, match="Corollaries 2 and 3 need at least one"):
        composed([])
    with pytest.raises(TypeError, match="Corollary 4 starts from"):
        disjoint([KLDP(1.0), MIDP(1.0)])
    with pytest.raises(TypeError, match="starts from KLDP or MIDP"):
        composed([PureDP(1.0)])


# --- one budget per group of people --------------------------------------------------------------


def test_budgets_hold_group_by_group():
    """Two responses with different odds: each record keeps its own epsilon, and its own nats."""
    budgets = Personal((("open", PureDP(2.0)), ("careful", PureDP(0.2))))
    assert [name for name, _ in budgets.budgets] == ["careful", "open"]
    nats = budgets.each(pure_to_mi)
    odds = [np.exp(budgets[name].epsilon) for name in ("open", "careful")]
    rows = [np.array([[o, 1], [1, o]]) / (1 + o) for o in odds]
    made = np.einsum("xa,yb->xyab", *rows).reshape(1, 4, 4)
    by_entry = {"open": [[0, 2], [1, 3]], "careful": [[0, 1], [2, 3]]}
    for name, groups in by_entry.items():
        found = max(capacities(made[:, group])[0][0] for group in groups)
        assert nats[name].nats / 1.5 < found <= nats[name].nats
    assert worst(nats) == nats["open"]
    assert loss(made)[0] == pytest.approx(
        pure_mixed_group(budgets, records={"open": 1, "careful": 1}).epsilon
    )


def test_personal_budgets_add_up_group_by_group():
    one = Personal((("a", MIDP(0.1)), ("b", MIDP(0.2))))
    other = Personal((("b", MIDP(0.3)), ("a", MIDP(0.5))))
    assert composed_personal([one, other]) == Personal((("a", MIDP(0.6)), ("b", MIDP(0.5))))
    assert one.each(lambda mi: VariationDP(mi_to_variation(mi).delta))["a"].delta < 0.45
    assert pure_to_kl(PureDP(1.0)) == Personal((("a", PureDP(1.0)),)).each(pure_to_kl)["a"]


def test_invalid_personal_budgets_are_refused():
    one = Personal((("a", MIDP(0.1)),))
    with pytest.raises(ValueError, match="same groups"):
        composed_personal([one, Personal((("b", MIDP(0.1)),))])
    with pytest.raises(ValueError, match="same groups"):
        composed_personal([])
    with pytest.raises(ValueError, match="at least one group"):
        Personal(())
    with pytest.raises(ValueError, match="every group once"):
        Personal((("a", MIDP(0.1)), ("a", MIDP(0.2))))
    with pytest.raises(TypeError, match="of one kind"):
        Personal((("a", MIDP(0.1)), ("b", KLDP(0.2))))
    with pytest.raises(KeyError, match="expected one of"):
        one["b"]
    with pytest.raises(ValueError, match="Property 7 needs"):
        pure_mixed_group(Personal((("a", PureDP(1.0)),)), records={})
