"""The table from distances to MIC*: how it is made and tested, and that the shipped one is that."""

import json
from functools import partial
from importlib import resources

import numpy as np
import oracles
import other_kinds
import paper_oracles
import pytest
from cli.commands import dpmic

from dpmic_jax.mic.distance import steps_of
from dpmic_jax.paper import dependences, distances
from dpmic_jax.paper.dependences import Curve, copula_masses, normal_copula
from dpmic_jax.paper.distances import Known, Trial, calibration, conformal_margin, summary, trials
from dpmic_jax.paper.mic_star import mic_star
from dpmic_jax.screening.calibration import LARGEST, STEPS, Estimates, mic_of, shipped

AT = np.linspace(0, LARGEST, STEPS + 1)
EVEN = np.arange(17) / 16
NOWHERE = np.zeros((1, 16, 16))


@pytest.fixture(scope="module")
def table():
    text = resources.files("dpmic_jax.screening").joinpath("calibration.json").read_text()
    return json.loads(text)


def square(kind, times=1.0, share=1.0):
    """A made-up kind of which MIC* is `times` the square of the distance over the largest."""
    far = np.linspace(0.02, 0.4, 20)
    masses = np.repeat(NOWHERE, 20, axis=0)
    return Known(Curve(kind, share, times * (far / LARGEST) ** 2, masses), far)


def test_distances_are_those_of_the_definition(rng):
    n, parts = 500, 16
    some = [copula_masses(normal_copula(rho), EVEN, EVEN) for rho in (0.1, 0.9)]
    counts = np.stack([rng.multinomial(n, np.abs(each.ravel()) / each.sum()) for each in some])
    for one, found in zip(counts, distances.distances(counts), strict=True):
        square_table = one.reshape(parts, parts)
        both = max(oracles.split_distance(t) for t in (square_table, square_table.T))
        assert found == float(both)
        assert (found * 2 * steps_of(n) * n).is_integer()


def test_a_table_of_one_law_is_this_law():
    found = calibration([square(f"kind {i}") for i in range(3)], margin=0.1)
    inside = (AT > 0.02) & (AT < 0.39)
    np.testing.assert_allclose(found.typical[inside], (AT[inside] / LARGEST) ** 2, atol=0.01)
    spread = np.ptp(found.quantiles, axis=1)
    # Distances within 0.02 are taken to be alike.
    assert spread[inside].max() < 4 * 0.02 / LARGEST
    assert (found.typical[0], found.typical[-1], found.margin) == (0, 1, 0.1)


def test_kinds_count_alike_however_many_curves_they_have():
    many = [square("many", times=0.25, share=0.01) for _ in range(100)]
    found = calibration([square("one"), *many], margin=0)
    middle = STEPS // 2
    low, high = 0.25 * (AT[middle] / LARGEST) ** 2, (AT[middle] / LARGEST) ** 2
    assert found.quantiles[middle, 8] == pytest.approx(low, abs=0.02)
    assert found.quantiles[middle, -8] == pytest.approx(high, abs=0.02)


def test_estimates_of_a_kind_are_made_without_it(monkeypatch):
    """Two kinds with the same data and different MIC*: each is estimated as the other."""
    for name, value in {"RECORDS": (2000,), "DEVIATIONS": (0.002,), "SETS": 1}.items():
        monkeypatch.setattr(distances, name, value)
    rhos = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9)
    masses = np.stack([copula_masses(normal_copula(rho), EVEN, EVEN) for rho in rhos])
    stars = np.array([0.03, 0.12, 0.3, 0.4, 0.5, 0.7])
    known = distances.known([Curve("a", 1, stars, masses), Curve("b", 1, stars / 4, masses)])
    # Nine times more, so that there are enough of them at every distance.
    more = [each._replace(curve=each.curve._replace(share=9)) for each in known]
    (trial,) = trials([*known, *more], margin=0)
    for kind, others in (("a", stars / 4), ("b", stars)):
        found = trial.found.mic[np.array(trial.kinds) == kind]
        np.testing.assert_allclose(found, np.tile(others, 2), atol=0.06)


def made(beyond, weights=None):
    """A trial whose limits, of square roots, miss MIC* by so much on either side."""
    beyond = np.asarray(beyond, float)
    stars, ones = np.full(len(beyond), 0.25), np.ones(len(beyond))
    weights = ones if weights is None else np.asarray(weights, float)
    upper = (0.5 - beyond) ** 2
    return Trial(
        1000, 0.1, ("a",) * len(beyond), stars, weights, Estimates(upper, 0 * ones, upper), 1.0
    )


def test_the_margin_is_the_smallest_that_makes_limits_hold_95_percent():
    assert conformal_margin(made(np.arange(100) / 1000)) == pytest.approx(0.094)
    # One of two data sets that count as much as all others.
    assert conformal_margin(made([0.01] * 19 + [0.2], [1] * 19 + [19])) == pytest.approx(0.2)
    assert conformal_margin(made(np.full(20, -0.1))) == 0


def test_a_summary_has_the_coverage_of_each_kind():
    trial = made([-0.1, -0.1, 0.1, 0.1], [0.5, 0.5, 0.25, 0.75])
    trial = trial._replace(kinds=("held", "held", "missed", "missed"))
    found = summary(trial)
    assert found["coverage"] == 0.5
    assert found["below 90 %"] == {"missed": 0}
    assert found["error"] == pytest.approx((0.6**2 - 0.25 + 0.25 - 0.4**2) / 2, abs=1e-3)


def test_the_shipped_table_names_the_command_that_made_it_and_keeps_its_promise(table):
    assert dpmic(*table["command"].split()[1:], "--help").exit_code == 0
    assert table["seed"] == distances.SEED
    settings = [(trial["n"], trial["noise"]) for trial in table["tried"]]
    assert settings == [(n, s) for n in distances.RECORDS for s in distances.DEVIATIONS]
    assert min(trial["coverage"] for trial in table["tried"]) >= 0.95
    assert min(trial["independent"] for trial in table["tried"]) >= 0.95


def test_mic_star_of_blocks_is_the_best_of_all_partitions_of_the_blocks(rng):
    """What other kinds are compared with, by brute force."""
    blocks = rng.dirichlet(np.full(16, 0.3)).reshape(4, 4)
    masses = np.kron(blocks, np.ones((16, 16))) / 256
    tried = [max(paper_oracles.by_enumeration(each, 4)) for each in (blocks, blocks.T)]
    assert other_kinds.mic_star(masses) == pytest.approx(max(tried), abs=1e-9)


def test_typical_values_are_near_the_mic_of_kinds_that_are_not_in_the_table():
    gaps, inside = [], []
    typical, quantiles, margin = shipped()
    for of in other_kinds.kinds().values():
        far = other_kinds.split_distances(np.stack([other_kinds.in_parts(each) for each in of]))
        stars = np.array([other_kinds.mic_star(each) for each in of])
        gaps += np.abs(stars - [mic_of(each) for each in far]).tolist()
        low, high = (
            np.sqrt([np.interp(d, AT, np.quantile(quantiles, level, axis=1)) for d in far])
            for level in (0.025, 0.975)
        )
        inside += ((low - margin <= np.sqrt(stars)) & (np.sqrt(stars) <= high + margin)).tolist()
    assert np.mean(gaps) < 0.1
    assert np.mean(inside) >= 0.95
    # A table that said twice or half of it would be off.
    assert typical[STEPS // 2] == pytest.approx(0.3, abs=0.1)


def remade():
    return calibration(distances.known(dependences.curves()), margin=shipped().margin)


def test_the_shipped_table_is_what_the_generator_makes_with_a_coarser_mic_star(monkeypatch):
    monkeypatch.setattr(dependences, "mic_star", partial(mic_star, master=64, fixed=64))
    found = remade()
    np.testing.assert_allclose(found.typical, shipped().typical, atol=0.01)
    assert np.abs(found.quantiles - shipped().quantiles).mean() < 0.003


@pytest.mark.slow
def test_the_shipped_table_is_what_the_generator_makes():
    found = remade()
    np.testing.assert_allclose(found.typical, shipped().typical, atol=2e-4)
    np.testing.assert_allclose(found.quantiles, shipped().quantiles, atol=2e-3)
