import hashlib
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.dp.accounting.events import (
    ZCDP,
    ApproximateDP,
    Event,
    GaussianDP,
    PureDP,
    ReplaceOne,
    pure_to_zcdp,
)
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, floor_to_float

PLAIN = Event(
    mechanism="MICr-Lap",
    guarantee=PureDP(0.1),
    relation=ReplaceOne(),
    n=337,
    sensitivity=Fraction(29, 1000),
)
OTHERS = [
    {"mechanism": "MICe-Lap"},
    {"guarantee": PureDP(math.nextafter(0.1, 1))},
    {"guarantee": ZCDP(0.1)},
    {"guarantee": ZCDP(0.1, 1e-15)},
    {"guarantee": GaussianDP(0.1)},
    {"guarantee": GaussianDP(0.1, 1e-15)},
    {"guarantee": ApproximateDP(0.1, 1e-15)},
    {"relation": ReplaceOne(2)},
    {"n": 338},
    {"sensitivity": Fraction(29, 1001)},
    {"count": 2},
    {"settings": (("B", "30"),)},
    {"settings": (("B", "3"), ("c", "0"))},
    {"settings": (("B,c", "3,0"),)},
    {"label": "x"},
]

positive = st.floats(min_value=5e-324, allow_infinity=False, allow_nan=False)
chances = st.floats(0, 1, exclude_max=True)
texts = st.text(st.characters(exclude_categories=["Cs"]))
guarantees = st.one_of(
    st.builds(PureDP, positive),
    st.builds(ApproximateDP, positive, st.floats(0, 1, exclude_min=True, exclude_max=True)),
    st.builds(ZCDP, positive, chances),
    st.builds(GaussianDP, st.floats(5e-324, 1e150), chances),
)
events = st.builds(
    Event,
    mechanism=texts.filter(bool),
    guarantee=guarantees,
    relation=st.builds(ReplaceOne, st.integers(1, 100)),
    n=st.integers(1, 10**12),
    sensitivity=st.fractions(min_value=0).filter(bool),
    count=st.integers(1, 10**9),
    settings=st.dictionaries(texts, texts).map(lambda found: tuple(found.items())),
    label=texts,
)


@given(events)
def test_an_event_is_recovered_from_its_json(event):
    assert Event.from_json(event.to_json()) == event
    assert Event.from_json(event.to_json()).digest == event.digest


@given(events, events)
def test_events_share_a_digest_only_if_they_are_equal(one, other):
    assert (one == other) == (one.digest == other.digest)


def test_every_field_enters_the_digest():
    digests = {replace(PLAIN, **change).digest for change in OTHERS}
    assert len(digests | {PLAIN.digest}) == len(OTHERS) + 1


def test_the_digest_is_sha256_of_the_documented_text():
    text = (
        '{"count":1,"guarantee":{"epsilon":"0x1.999999999999ap-4","kind":"PureDP"},"label":"",'
        '"mechanism":"MICr-Lap","n":337,"relation":{"kind":"ReplaceOne","records":1},'
        '"sensitivity":"29/1000","settings":[],"version":1}'
    )
    assert PLAIN.digest == hashlib.sha256(b"dpmic_jax event\0" + text.encode()).digest()


def test_order_of_settings_and_form_of_numbers_do_not_change_the_digest():
    one = replace(PLAIN, settings=(("B", "30"), ("c", "5")))
    assert one.digest == replace(PLAIN, settings=(("c", "5"), ("B", "30"))).digest
    assert (
        replace(PLAIN, guarantee=PureDP(1)).digest == replace(PLAIN, guarantee=PureDP(1.0)).digest
    )
    assert ZCDP(1.0, -0.0) == ZCDP(1.0)
    zeros = [replace(PLAIN, guarantee=ZCDP(1.0, delta)).digest for delta in (0.0, -0.0)]
    assert zeros[0] == zeros[1]
    assert replace(PLAIN, n=np.int64(337)).digest == PLAIN.digest


@pytest.mark.parametrize(
    "bad", [0, 0.0, -1, -0.5, math.nan, math.inf, -math.inf, 10**400, 2**53 + 1]
)
def test_guarantees_refuse_invalid_parameters(bad):
    for guarantee in (
        *(PureDP, ZCDP, GaussianDP, pure_to_zcdp),
        lambda value: ApproximateDP(value, 1e-6),
    ):
        with pytest.raises(ValueError, match=r"epsilon|rho|mu"):
            guarantee(bad)


@pytest.mark.parametrize("bad", [-1e-9, 1, 1.0, math.nan, math.inf])
def test_a_delta_has_to_be_a_probability(bad):
    for guarantee in (ApproximateDP, ZCDP, GaussianDP):
        with pytest.raises(ValueError, match="delta"):
            guarantee(1.0, bad)
    with pytest.raises(ValueError, match="PureDP"):
        ApproximateDP(1.0, 0.0)


@pytest.mark.parametrize("bad", ["1", None, True, Fraction(1, 2), np.float32(0.1)])
def test_parameters_have_to_be_python_numbers(bad):
    with pytest.raises(TypeError, match="epsilon"):
        PureDP(bad)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"mechanism": ""}, ValueError),
        ({"mechanism": 3}, TypeError),
        ({"guarantee": 1.0}, TypeError),
        ({"relation": 1}, TypeError),
        ({"n": 0}, ValueError),
        ({"n": 3.0}, TypeError),
        ({"n": True}, TypeError),
        ({"sensitivity": 0.5}, TypeError),
        ({"sensitivity": Fraction(0)}, ValueError),
        ({"sensitivity": Fraction(-1)}, ValueError),
        ({"count": 0}, ValueError),
        ({"settings": {"B": "30"}}, TypeError),
        ({"settings": (("B", 30),)}, TypeError),
        ({"settings": (("B", "30"), ("B", "31"))}, ValueError),
        ({"label": "\ud83d\ude00"}, ValueError),
    ],
)
def test_events_are_checked_when_made(change, error):
    with pytest.raises(error):
        replace(PLAIN, **change)


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text + " ",
        lambda text: text.replace('"n":337', '"n":337.0'),
        lambda text: text.replace('"version":1', '"version":2'),
        lambda text: text.replace("29/1000", "58/2000"),
        lambda text: text.replace("29/1000", "29/0"),
        lambda text: text.replace("ap-4", "ap-4000"),
        lambda text: text.replace("PureDP", "ZCDP"),
        lambda text: text.replace('"label"', '"table"'),
        lambda text: text[:-1],
        lambda _: "[]",
    ],
)
def test_only_canonical_json_is_read(edit):
    with pytest.raises(ValueError, match="JSON of an event"):
        Event.from_json(edit(PLAIN.to_json()))


def test_an_event_costs_all_its_releases():
    ten = replace(PLAIN, count=10)
    assert (ten.epsilon, ten.delta) == (1.0, 0.0)
    gauss = replace(PLAIN, guarantee=ZCDP(0.1, 1e-15), count=3)
    assert (gauss.epsilon, gauss.delta, gauss.rho) == (math.inf, 3e-15, 0.3)


def renyi(epsilon, alpha):
    """Rényi divergence of randomised response with odds e^epsilon, from its definition."""
    plus = 1 / (1 + (-epsilon).exp())
    terms = [p**alpha * q ** (1 - alpha) for p, q in [(plus, 1 - plus), (1 - plus, plus)]]
    return sum(terms).ln() / (alpha - 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 2.0, 5.0])
def test_pure_events_have_the_least_rho_that_holds_at_every_order(epsilon):
    orders = [1 + Decimal(2) ** i for i in range(-30, 7)]
    with localcontext(prec=50):
        needed = max(renyi(Decimal(repr(epsilon)), alpha) / alpha for alpha in orders)
    assert needed <= Decimal(pure_to_zcdp(epsilon))
    assert float(needed) == pytest.approx(pure_to_zcdp(epsilon), rel=1e-8)
    assert as_fraction(pure_to_zcdp(epsilon)) < as_fraction(epsilon) ** 2 / 2


@given(positive.filter(lambda value: value < 1e300), st.floats(1, 10))
def test_rho_grows_with_epsilon_and_is_never_zero(epsilon, factor):
    assert 0 < pure_to_zcdp(epsilon) <= pure_to_zcdp(epsilon * factor)


@pytest.mark.parametrize("mu", [0.3, 7.0])
@pytest.mark.parametrize("alpha", [1.5, 3.0])
def test_gaussian_events_have_the_rho_of_two_normal_distributions(mu, alpha):
    x, step = np.linspace(-40, 40, 400_001, retstep=True)
    terms = np.exp(-alpha * (x - mu) ** 2 / 2 - (1 - alpha) * x**2 / 2)
    divergence = math.log(terms.sum() * step / math.sqrt(2 * math.pi)) / (alpha - 1)
    assert divergence == pytest.approx(alpha * GaussianDP(mu).rho, rel=1e-9)


def test_the_rho_of_a_gaussian_event_is_rounded_up_and_finite():
    for mu in (5e-324, 1e-3, 0.1, 1e150):
        assert as_fraction(GaussianDP(mu).rho) >= as_fraction(mu) ** 2 / 2
    with pytest.raises(ValueError, match="mu"):
        GaussianDP(1e200)


@given(st.fractions())
def test_rounding_goes_to_the_side_it_names(value):
    assert as_fraction(floor_to_float(value)) <= value <= as_fraction(ceil_to_float(value))
    assert ceil_to_float(value) - floor_to_float(value) <= 2 * math.ulp(float(value))
    assert ceil_to_float(as_fraction(0.1)) == floor_to_float(as_fraction(0.1)) == 0.1
