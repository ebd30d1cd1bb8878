"""Measurements of OpenDP: their releases are ours, and OpenDP's accounting stops them."""

import math

import numpy as np
import opendp.prelude as dp
import pytest

from dpmic_jax import MICrGauss, MICrLap, ReplaceOne, VariationLap, secret_key, seeded_key
from dpmic_jax.integrations import to_opendp

N = 200
BOUNDS = [(0, 1), (0, 1)]


@pytest.fixture(autouse=True)
def features():
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("honest-but-curious")


@pytest.fixture
def columns(rng):
    x = rng.random(N)
    return x, (x + rng.random(N) / 10) / 1.1


def test_mechanisms_compose_with_measurements_of_opendp(columns):
    first = to_opendp(MICrLap(epsilon=0.5), n=N, bounds=BOUNDS, key=secret_key())
    second = to_opendp(VariationLap(epsilon=0.25), n=N, bounds=BOUNDS, key=secret_key())
    assert [first.map(persons) for persons in (0, 1, 3)] == [0, 0.5, 1.5]
    composition = dp.c.make_adaptive_composition(
        first.input_domain,
        first.input_metric,
        dp.max_divergence(),
        d_in=1,
        d_mids=[0.5, 0.25],
    )
    assert composition.map(1) == 0.75
    ask = composition(columns)
    with pytest.raises(dp.OpenDPException, match="insufficient budget"):
        composition(columns)(to_opendp(MICrLap(epsilon=0.6), n=N, bounds=BOUNDS, key=secret_key()))
    values = ask(first), ask(second)
    assert all(0 <= value <= 1 for value in values)
    with pytest.raises(dp.OpenDPException, match="out of queries"):
        ask(second)
    # Every release has fresh noise.
    assert len({first(columns) for _ in range(5)}) > 1
    # As zCDP beside a Gaussian measurement of OpenDP.
    assert dp.c.make_pureDP_to_zCDP(first).map(1) == pytest.approx(0.125)


def test_what_opendp_could_not_account_for_is_refused(columns):
    given = {"n": N, "bounds": BOUNDS}
    with pytest.raises(ValueError, match="fresh noise"):
        to_opendp(MICrLap(epsilon=0.5), key=seeded_key(1), **given)
    with pytest.raises(ValueError, match="to_dp_accounting"):
        to_opendp(MICrGauss(rho=0.1), key=secret_key(), **given)
    small = to_opendp(MICrLap(epsilon=0.5), key=secret_key(), n=N + 1, bounds=BOUNDS)
    with pytest.raises(dp.OpenDPException, match="columns of 201 records, got 200"):
        small(columns)


def test_a_person_with_several_records_is_one_step(columns):
    mechanism = MICrLap(epsilon=0.5, relation=ReplaceOne(3))
    measurement = to_opendp(mechanism, n=N, bounds=BOUNDS, key=secret_key())
    assert measurement.map(1) == 0.5
    assert math.isfinite(np.float64(measurement(columns)))
