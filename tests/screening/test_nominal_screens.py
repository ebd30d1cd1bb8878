"""Screens of tables with nominal columns: relabelling, levels, refusals, previews."""

import itertools

import jax
import numpy as np
import pytest
from small import same_bits

from dpmic_jax import Categories, MICr, Number, Schema, seeded_key
from dpmic_jax.data.limits import NominalLimits
from dpmic_jax.data.schema import FixedValue
from dpmic_jax.dp.accounting.events import Event, ReplaceOne
from dpmic_jax.mechanisms.sensitivity import integer_path, whole_table
from dpmic_jax.mic.batch import score_pairs
from dpmic_jax.mic.distance import steps_of
from dpmic_jax.mic.statistics import MICrAndDistance
from dpmic_jax.screening import Against, AllPairs, Between, Resources, TopK, preview, screen
from dpmic_jax.screening.curve import curve_of
from dpmic_jax.screening.independence import chance_level
from dpmic_jax.screening.kinds import Kinds, kinds_of
from dpmic_jax.screening.planning import plan

LISTS = {
    "blood": ["a", "b", "ab", "o"],
    "ward": [f"ward {i}" for i in range(12)],
    "state": [f"state {i}" for i in range(50)],
}


def table(n=3000):
    """A ward goes with age, as blood never does; some blood groups are missing or misspelt."""
    rng = np.random.default_rng(3)
    age = rng.uniform(0, 100, n)
    ward = np.where(rng.random(n) < 0.7, (age // 9).astype(int) * 5 % 12, rng.integers(0, 12, n))
    blood = np.array([*LISTS["blood"], "", "0"])[
        rng.choice(6, n, p=[0.3, 0.1, 0.05, 0.4, 0.1, 0.05])
    ]
    return {
        "age": age,
        "blood": blood,
        "ward": np.array(LISTS["ward"])[ward],
        "state": np.array(LISTS["state"])[(50 * rng.random(n) ** 3).astype(int)],
    }


def schema(seed, lists=LISTS, missing=None):
    """With the categories in another order for every seed."""
    order = np.random.default_rng(seed).permutation
    rules = {name: Categories(tuple(order(values).tolist())) for name, values in lists.items()}
    return Schema((("age", Number(0, 100)), *rules.items()))


def screened(seed=0, **changes):
    settings = {"epsilon": 50.0, "ask": AllPairs(), "key": seeded_key(1), **changes}
    return screen(table(), bounds=schema(seed), **settings)


@pytest.mark.parametrize("ask", [AllPairs(), TopK(2, selection_fraction=0.7)])
def test_relabelled_categories_have_the_same_bits(ask):
    expected = screened(ask=ask)
    assert same_bits(screened(1, ask=ask), expected)
    assert expected.statement.event == screened(2, ask=ask).statement.event
    # The control: other categories are another table.
    other = {**LISTS, "blood": ["a", "b", "ab", "0"]}
    found = screen(table(), bounds=schema(0, other), epsilon=50.0, ask=ask, key=seeded_key(1))
    assert not same_bits(found, expected)


def test_tiles_batches_and_devices_change_no_bit():
    expected = screened(relative=["ward"])
    for changes in (
        {"resources": Resources(tile=1, rows=100)},
        {"devices": jax.devices()[:2]},
    ):
        assert same_bits(screened(3, relative=["ward"], **changes), expected)


def test_what_depends_is_found_and_nothing_else():
    found = screened(epsilon=3.0)
    pairs = [{found.names[i] for i in pair} for pair in found.pairs.tolist()]
    called = [pair for pair, far in zip(pairs, found.dependent.tolist(), strict=True) if far]
    assert called == [{"age", "ward"}]


KINDS = {
    "few": (lambda rng, n: rng.integers(0, 5, n), 5),
    "rare": (lambda rng, n: (rng.random(n) < 0.02) * rng.integers(1, 8, n), 8),
    "sixteen": (lambda rng, n: rng.integers(0, 16, n), 16),
    "long list": (lambda rng, n: rng.integers(0, 60, n), 60),
    "long list, most rare": (lambda rng, n: (60 * rng.random(n) ** 4).astype(int), 60),
}


def largest_distance(rng, kind, n, columns=8):
    """Of nominal columns with each other, and with as many numbers."""
    draw, count = KINDS[kind]
    limits = NominalLimits(count, False)
    values = [*(draw(rng, n).astype(np.uint8) for _ in range(columns)), *rng.random((columns, n))]
    bounds = [limits] * columns + [(0.0, 1.0)] * columns
    cut = MICrAndDistance(micr=None, bins=count).cut(values, bounds)
    nominal = np.array(list(itertools.combinations(range(columns), 2)))
    mixed = np.array(list(itertools.product(range(columns), range(columns, 2 * columns))))
    pairs = np.concatenate([nominal, mixed])
    found = np.concatenate(list(score_pairs(cut, pairs, None)), axis=2)[-1].max(axis=0)
    found = found / (2 * steps_of(n) * n)
    kinds = [kinds_of([*"x" * 2 * columns], bounds, some).bins for some in (nominal, mixed)]
    return zip(np.split(found, [len(nominal)]), kinds, strict=True)


@pytest.mark.parametrize("kind", KINDS)
def test_independent_nominal_columns_stay_below_the_level(rng, kind):
    n = 500
    for found, bins in largest_distance(rng, kind, n):
        assert found.max() < chance_level(n, len(found), bins=bins, chance=1e-3)
        # No level of a third would hold.
        assert kind != "few" or found.max() > 0.4 * chance_level(n, len(found), bins=bins)


def test_one_level_serves_numbers_and_nominal_columns_of_any_length():
    for n, count in itertools.product((300, 10_000, 10**6), (3, 8, 9, 16, 17, 33, 64)):
        numbers = chance_level(n, 66)
        for bins in ((0, count), (count, count), (3, count)):
            assert chance_level(n, 66, bins=(bins,)) < 1.02 * numbers


ALL = AllPairs()


def planned(lists, ask=ALL, n=5000, **changes):
    rules = schema(0, lists).columns
    limits = [(0.0, 1.0), *(NominalLimits(len(rule.values), True) for _, rule in rules[1:])]
    settings = {"epsilon": 100.0, "delta": 0.0, "statistic": MICr(B=8), **changes}
    names = tuple(name for name, _ in rules)
    return plan(names=names, n=n, ask=ask, relation=ReplaceOne(), bounds=limits, **settings)


def test_only_pairs_of_two_nominal_columns_need_more_noise_on_micr():
    three = {"u": list("abc"), "v": list("abcd")}
    both, against = planned(three), planned(three, Against("age"))
    assert both.kinds == Kinds(5, 3, ((0, 4), (0, 5), (4, 5)))
    assert against.kinds == Kinds(5, 0, ((0, 4), (0, 5)))
    bounds = whole_table(3, 5000), integer_path(MICr(B=8), 5000)
    assert bounds[0] > bounds[1] > whole_table(4, 5000)
    for found, bound in zip((both, against), bounds, strict=True):
        lattice = found.values.lattice
        assert lattice.sensitivity == -(-bound.numerator * lattice.top // bound.denominator)
    assert [grid.parts for grid in both.measured.grids(5000)][-2:] == [0, 1]
    # A column with itself is scored, too.
    own = planned(three, Against("age"), relative=["v"])
    assert own.kinds.categories == 4


def test_a_list_that_is_too_long_is_refused_with_the_remedy_if_it_is_asked_for(tmp_path):
    lists = {"u": list("abc"), "codes": [f"code {i}" for i in range(64)]}
    with pytest.raises(ValueError, match=r"column 'codes' has 65 .*at most 64 .*other = \"rest\""):
        planned(lists)
    assert planned(lists, Between(("age",), ("u",))).kinds.most == 4
    ledger = tmp_path / "ledger"
    rules = {"age": Number(0, 100), "codes": Categories(tuple(lists["codes"]))}
    cells = {"age": np.arange(9.0), "codes": ["code 1"] * 9}
    with pytest.raises(ValueError, match="other = "):
        screen(cells, bounds=rules, epsilon=1.0, ask=AllPairs(), key=seeded_key(1))
    assert not ledger.exists()
    # Without a bin for missing values, 64 categories fit.
    fixed = Categories(tuple(lists["codes"]), missing=FixedValue("code 0"))
    settings = {"n": 5000, "epsilon": 1.0, "ask": AllPairs()}
    columns = Schema((("age", Number(0, 100)), ("codes", fixed)))
    assert preview(columns=columns, **settings).plan.kinds.most == 64


def test_previews_of_a_schema_are_those_of_the_screen():
    found = screened(epsilon=2.0)
    previewed = preview(columns=schema(0), n=3000, epsilon=2.0, ask=AllPairs())
    assert previewed.plan.dependence_level == found.dependence_threshold
    assert previewed.plan.event.settings == planned_settings(found)
    numbers = preview(columns=4, n=3000, epsilon=2.0, ask=AllPairs())
    assert numbers.plan.dependence_level != found.dependence_threshold
    # As is the curve of a finished run.
    points = {point.epsilon: point.distance for point in curve_of(found).points}
    assert points[2.0] == previewed.smallest_distance


def planned_settings(result):
    return Event.from_json(result.statement.event).settings
