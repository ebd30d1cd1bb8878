import numpy as np
import paper_oracles
import pytest

from dpmic_jax.paper import mic_star as module
from dpmic_jax.paper.functions import FUNCTIONS
from dpmic_jax.paper.mic_star import (
    RECORDS,
    boundaries,
    cumulative_masses,
    equal_mass_edges,
    mic_star,
)
from dpmic_jax.paper.mixtures import Mixture, generating_points

# Masses are rounded to 2^-24, and their phi is taken in float32.
PROMISED = 5e-5
MODERATE = {"master": 60, "fixed": 40}


def along(name, deviation):
    return Mixture(generating_points(FUNCTIONS[name]), deviation)


@pytest.fixture(scope="module")
def some():
    """Wide, narrow, fast, steep and lopsided ones."""
    return [
        along("F12", 0.2),
        along("F12", 0.01),
        along("F16", 0.02),
        along("F9", 0.003),
        along("F21", 0.05),
        Mixture(np.random.default_rng(3).random((7, 2)), 0.05),
    ]


def test_matches_every_partition_of_a_small_master_tried_in_turn(some):
    found = boundaries(some, master=8, fixed=6)
    for (axis, _, index), _ in np.ndenumerate(found[:, :1]):
        masses = paper_oracles.joint_masses(*some[index], axis, 8, 6)
        tried = paper_oracles.by_enumeration(masses, 8)
        np.testing.assert_allclose(found[axis, :, index], tried, rtol=0, atol=PROMISED)


def test_matches_the_recursion_in_float64_for_every_number_of_parts(some):
    found = boundaries(some, **MODERATE)
    for axis in (0, 1):
        for index, mixture in enumerate(some):
            masses = paper_oracles.joint_masses(*mixture, axis, *MODERATE.values())
            expected = paper_oracles.by_recursion(masses, 60)
            np.testing.assert_allclose(found[axis, :, index], expected, rtol=0, atol=PROMISED)


def test_is_the_largest_entry_of_either_axis(some):
    expected = [paper_oracles.mic_star(*mixture, *MODERATE.values(), most=60) for mixture in some]
    np.testing.assert_allclose(mic_star(some, **MODERATE), expected, rtol=0, atol=PROMISED)


def test_each_of_many_distributions_has_the_value_it_has_alone(some):
    """There are more than fit in one call."""
    many = [some[index % len(some)] for index in range(40)]
    alone = mic_star(some, **MODERATE)
    np.testing.assert_array_equal(mic_star(many, **MODERATE), np.resize(alone, 40))


def test_swapping_the_axes_changes_nothing(some):
    swapped = [Mixture(mixture.centres[:, ::-1], mixture.deviation) for mixture in some]
    np.testing.assert_allclose(
        mic_star(swapped, **MODERATE), mic_star(some, **MODERATE), rtol=0, atol=PROMISED
    )


def test_one_gaussian_has_independent_axes():
    found = mic_star([Mixture(np.array([[0.3, 0.8]]), s) for s in (0.05, 0.3)], **MODERATE)
    np.testing.assert_allclose(found, 0, atol=PROMISED)


def test_mic_star_of_separate_blobs_is_one_on_a_diagonal_and_zero_on_a_square():
    diagonal = Mixture(np.array([[0.2, 0.8], [0.8, 0.2]]), 0.01)
    square = Mixture(np.array([[0.2, 0.2], [0.2, 0.8], [0.8, 0.2], [0.8, 0.8]]), 0.01)
    found = mic_star([diagonal, square], **MODERATE)
    np.testing.assert_allclose(found, [1, 0], rtol=0, atol=PROMISED)


def test_mic_star_of_four_blobs_of_which_three_have_one_height_is_the_entropy_of_y():
    """y has masses of 3/4 and 1/4, and two parts of x determine it; both masters have such cuts."""
    mixture = Mixture(np.array([[0.1, 0.2], [0.3, 0.2], [0.5, 0.2], [0.9, 0.8]]), 0.01)
    entropy = 2 - 3 / 4 * np.log2(3)
    assert mic_star([mixture], **MODERATE)[0] == pytest.approx(entropy, abs=PROMISED)


def test_mic_star_of_a_line_falls_from_one_to_zero_as_noise_grows():
    deviations = [0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 0.5, 2.0]
    found = mic_star([along("F12", deviation) for deviation in deviations], **MODERATE)
    assert found[0] == pytest.approx(1, abs=PROMISED)
    assert found[-1] < PROMISED
    assert (np.diff(found) < 0).all()


@pytest.mark.parametrize("parts", [2, 7, 60])
def test_parts_of_equal_masses_have_equal_masses(some, parts):
    for mixture in some:
        for axis in (0, 1):
            edges = equal_mass_edges(mixture, axis, parts)
            assert edges[0] == 0
            assert edges[-1] == 1
            below = paper_oracles.distribution_function(*mixture, axis)
            masses = np.diff([below(edge) for edge in edges])
            # Edges are known to 2^-40, and densities are at most a few hundred here.
            np.testing.assert_allclose(masses, 1 / parts, rtol=0, atol=1e-9)


def test_masses_before_the_last_edge_are_all_there_is(some):
    for mixture in some:
        for axis in (0, 1):
            masses = cumulative_masses(mixture, axis, 60, 40)
            assert not masses[0].any()
            assert (np.diff(masses, axis=0) >= 0).all()
            # Each of 40 is rounded.
            assert abs(int(masses[-1].sum()) - RECORDS) <= 20


def test_a_maximum_at_the_most_parts_that_are_tried_is_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_PARTS", 3)
    with pytest.raises(RuntimeError, match="increase MOST_PARTS"):
        boundaries([along("F16", 0.01)], master=8, fixed=6)
    assert boundaries([along("F12", 0.01)], master=8, fixed=6).shape == (2, 2, 1)


@pytest.mark.slow
def test_finer_masters_change_less_and_less():
    """The paper states that MIC* is insensitive to masters larger than 260 and 360."""
    mixtures = [along("F12", 0.1), along("F6", 0.016), along("F8", 0.05), along("F21", 0.001)]
    found = np.array([mic_star(mixtures, master=130 * k, fixed=180 * k) for k in (1, 2, 4)])
    changes = np.abs(np.diff(found, axis=0))
    assert (changes[1] < np.maximum(changes[0], PROMISED)).all()
    assert changes[1].max() < 2e-3
