"""How a release is paid for: fresh noise for secret keys, and the charge before the first cell."""

from dataclasses import replace

import numpy as np
import pytest

from dpmic_jax import (
    Budget,
    BudgetExceeded,
    LedgerFile,
    MICe,
    MICeLap,
    MICr,
    MICrGauss,
    MICrHistogram,
    MICrLap,
    VariationLap,
    secret_key,
    seeded_key,
)
from dpmic_jax.mechanisms import EqualCells, PublishedMICrGeom, QuantileBounds
from dpmic_jax.mic.grids import ladder
from dpmic_jax.runs import charged

N = 40
SMALL = MICr(B=6, c=1)
BOUNDS = [(0.0, 1.0), (0.0, 1.0)]
PAIRS = {
    "MICrLap": MICrLap(epsilon=0.5, statistic=SMALL),
    "MICrGauss": MICrGauss(rho=0.1, statistic=SMALL),
    "MICeLap": MICeLap(epsilon=0.5, statistic=MICe(B=6, c=1)),
    "VariationLap": VariationLap(epsilon=0.5, parts=2),
    "MICrHistogram": MICrHistogram(epsilon=0.5),
    "PublishedMICrGeom": PublishedMICrGeom(epsilon=0.5, statistic=SMALL),
}


@pytest.fixture
def xy():
    return np.random.default_rng(7).random((2, N))


@pytest.fixture
def ledger(tmp_path):
    return LedgerFile.create(tmp_path / "ledger", Budget(20.0, 1e-6), data_set="small")


def release(mechanism, x, y, **payment):
    bounds = {} if isinstance(mechanism, MICeLap) else {"bounds": BOUNDS}
    return mechanism.release(x, y, **bounds, **payment)


def inside(mechanism):
    """With less noise where it is added to a value, which would often be clipped to 0 or 1."""
    if isinstance(mechanism, MICrGauss):
        return replace(mechanism, rho=1000.0)
    added = isinstance(mechanism, MICrLap | MICeLap | VariationLap)
    return replace(mechanism, epsilon=50.0) if added else mechanism


def told(found):
    """All that a release tells of noise."""
    return found.counts.tolist() if hasattr(found, "counts") else found.value


@pytest.mark.parametrize("mechanism", PAIRS.values(), ids=PAIRS)
def test_a_secret_key_never_draws_the_same_noise_twice(mechanism, xy):
    key, mechanism = secret_key(), inside(mechanism)
    several = [release(mechanism, *xy, key=key) for _ in range(12)]
    assert len({found.event.digest for found in several}) == 12
    # The likeliest value of any of them has a chance of 1/4: all twelve alike, one of 10^7.
    assert len({str(told(found)) for found in several}) > 1
    assert {replace(found.event, label="") for found in several} == {mechanism.event(N)}


def test_without_a_number_of_its_own_a_release_would_tell_the_exact_difference(xy, monkeypatch):
    """The control: the fault that was there, put back."""
    monkeypatch.setattr(charged, "run_name", lambda event, key: "always the same")
    monkeypatch.setattr(charged, "claim", lambda key, event: None)
    key, (x, y) = secret_key(), xy
    mechanism = VariationLap(epsilon=20.0, parts=2)
    one, other, exact_one, exact_other = (
        release(replace(mechanism, epsilon=epsilon), x, z, key=key).value
        for epsilon in (20.0, 1e6)
        for z in ((x + y) / 2, (2 * x + y) / 3)  # far from 0 and 1, where noise is clipped
    )
    steps = 3 / mechanism.noise(N).lattice.top  # of rounding
    assert steps < mechanism.noise(N).scale / 10
    assert one - other == pytest.approx(exact_one - exact_other, abs=steps)
    with pytest.raises(AssertionError):
        test_a_secret_key_never_draws_the_same_noise_twice(PAIRS["MICrLap"], xy)


@pytest.mark.parametrize("mechanism", PAIRS.values(), ids=PAIRS)
def test_a_seeded_key_repeats_and_says_so(mechanism, xy, ledger):
    first = release(mechanism, *xy, key=seeded_key(1))
    again = release(mechanism, *xy, key=seeded_key(1))
    paid = release(mechanism, *xy, key=seeded_key(1), ledger=ledger)
    assert told(first) == told(again) == told(paid)
    assert first.event == paid.event == mechanism.event(N)
    assert not first.key_is_secret


@pytest.mark.parametrize("mechanism", PAIRS.values(), ids=PAIRS)
def test_what_is_charged_is_what_is_released(mechanism, xy, ledger):
    found = release(mechanism, *xy, key=secret_key(), label="mine", ledger=ledger)
    assert ledger.events == (found.event,)
    assert found.event.label.startswith("mine, run ")
    assert (found.receipt.ledger, found.receipt.serial) == (ledger.identity, 1)
    by_hand = mechanism.event(N, label="by hand")
    ledger.charge(by_hand)
    key = secret_key()
    assert release(mechanism, *xy, key=key, event=by_hand).event == ledger.events[-1]
    with pytest.raises(ValueError, match="was already released with this key"):
        release(mechanism, *xy, key=key, event=by_hand)
    release(mechanism, *xy, key=secret_key(), event=by_hand)


def test_an_event_of_another_release_is_refused(xy):
    mechanism = PAIRS["MICrLap"]
    wrong = [
        mechanism.event(N + 1),
        mechanism.event(N, count=2),
        replace(mechanism, epsilon=0.25).event(N),
        PAIRS["MICeLap"].event(N),
    ]
    for event in wrong:
        with pytest.raises(ValueError, match="the event of this release"):
            release(mechanism, *xy, key=secret_key(), event=event)
    for other in ({"label": "x"}, {"ledger": "books"}):
        with pytest.raises(ValueError, match="not both"):
            release(mechanism, *xy, key=secret_key(), event=mechanism.event(N), **other)


def test_batches_that_share_a_pair_do_not_share_an_event_by_hand(xy):
    """Noise goes by the event of one pair, whatever the number of pairs."""
    mechanism, key, X = PAIRS["MICrLap"], secret_key(), np.stack([*xy, xy[0]], axis=1)
    settings = {"bounds": [*BOUNDS, BOUNDS[0]], "key": key}
    mechanism.release_batch(X, pairs=[(0, 1)], event=mechanism.event(N), **settings)
    with pytest.raises(ValueError, match="was already released with this key"):
        mechanism.release_batch(
            X, pairs=[(0, 1), (0, 2)], event=mechanism.event(N, count=2), **settings
        )


class Cell:
    """Notes whoever looks at what it is."""

    seen = 0

    def __getattribute__(self, name):
        Cell.seen += 1
        return object.__getattribute__(self, name)


@pytest.mark.parametrize("mechanism", PAIRS.values(), ids=PAIRS)
def test_what_the_budget_does_not_hold_is_refused_before_a_cell_is_read(mechanism, tmp_path):
    small = LedgerFile.create(tmp_path / "small", Budget(1e-3, 1e-9), data_set="small")
    x, before = [Cell() for _ in range(N)], Cell.seen
    with pytest.raises(BudgetExceeded):
        release(mechanism, x, x, key=secret_key(), ledger=small)
    assert Cell.seen == before
    assert small.events == ()
    release(mechanism, x, x, key=secret_key())
    assert Cell.seen > before


def test_bounds_are_paid_for_like_pairs(xy, ledger):
    mechanism = QuantileBounds(epsilon=2.0, within=(0.0, 2.0), cells=EqualCells(count=4))
    key = secret_key()
    one, other = (mechanism.release(xy[0], key=key, ledger=ledger) for _ in range(2))
    assert ledger.events == (one.event, other.event)
    assert one.event != other.event
    assert one.receipt.serial == 1
    event = mechanism.event(N, label="by hand")
    assert mechanism.release(xy[0], key=key, event=event).event == event
    with pytest.raises(ValueError, match="was already released with this key"):
        mechanism.release(xy[0], key=key, event=event)


def halves(largest):
    return range(2, largest // 2 + 1)


def thirds(largest):
    return range(2, largest // 3 + 1)


thirds.__name__ = "halves"


def test_functions_of_one_name_are_different_settings():
    one, other = (MICrLap(epsilon=1.0, statistic=MICr(B=30, sizes=f)) for f in (halves, thirds))
    assert one.event(N) != other.event(N)
    lambdas = [
        MICrLap(epsilon=1.0, statistic=MICr(B=30, master=master))
        for master in (lambda c, rows, parts: rows + 2, lambda c, rows, parts: rows + 3)
    ]
    assert len({mechanism.event(N).digest for mechanism in lambdas}) == 2


def test_our_own_functions_are_told_by_their_names():
    """Their events, and with them the noise of seeded runs, stay what they were."""
    mechanism = MICrLap(epsilon=1.0, statistic=MICr(B=30, sizes=ladder(1.25)))
    settings = dict(mechanism.event(N).settings)
    assert settings == {"B": "30", "c": "5", "master": "reshef", "sizes": "ladder(ratio=1.25)"}


def test_a_key_without_its_wrapper_is_as_secret(xy):
    """And its releases get a number of their own."""
    key = secret_key().key
    one, other = (release(PAIRS["MICrLap"], *xy, key=key) for _ in range(2))
    assert one.key_is_secret
    assert one.event != other.event
