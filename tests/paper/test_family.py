import json
from importlib import resources

import numpy as np
import paper_oracles
import pytest
from scipy import stats

from dpmic_jax.paper.family import computed, data_sets, family
from dpmic_jax.paper.functions import FUNCTIONS
from dpmic_jax.paper.mixtures import draw, generating_points, mixture_with_r_squared

FAMILY = family()


def test_there_are_189_function_by_function_by_growing_r_squared():
    expected = [(f"F{f}", tenth / 10) for f in range(1, 22) for tenth in range(1, 10)]
    assert list(zip(FAMILY.names, FAMILY.r_squared, strict=True)) == expected
    assert len(FAMILY) == len(FAMILY.mixtures) == len(FAMILY.stars) == 189


def test_each_mixture_is_along_the_graph_of_its_function():
    for name, mixture in zip(FAMILY.names, FAMILY.mixtures, strict=True):
        np.testing.assert_array_equal(mixture.centres, generating_points(FUNCTIONS[name]))


def test_a_larger_r_squared_has_less_noise_and_a_larger_mic_star():
    deviations = np.array([mixture.deviation for mixture in FAMILY.mixtures])
    assert (np.diff(deviations.reshape(21, 9), axis=1) < 0).all()
    assert (np.diff(FAMILY.stars.reshape(21, 9), axis=1) > 0).all()
    assert FAMILY.stars.min() > 0
    assert FAMILY.stars.max() < 1


@pytest.mark.parametrize("index", range(1, 189, 30))
def test_stored_deviations_are_those_of_the_wanted_r_squared(index):
    found = mixture_with_r_squared(FUNCTIONS[FAMILY.names[index]], FAMILY.r_squared[index])
    # The root is found to 1e-7, and written with nine digits.
    assert FAMILY.mixtures[index].deviation == pytest.approx(found.deviation, abs=3e-7)


@pytest.mark.parametrize("index", [0, 53, 130, 188])
def test_stored_mic_star_is_that_of_the_recursion_in_float64(index):
    star = paper_oracles.mic_star(*FAMILY.mixtures[index], 260, 360, most=64)
    assert FAMILY.stars[index] == pytest.approx(star, abs=5e-5)


@pytest.mark.slow
def test_everything_stored_is_computed_from_the_functions_alone():
    stored = json.loads(resources.files("dpmic_jax.paper").joinpath("family.json").read_text())
    again = computed()
    distributions, others = stored.pop("distributions"), again.pop("distributions")
    assert stored == again
    for one, other in zip(distributions, others, strict=True):
        assert one["function"] == other["function"]
        assert one["r_squared"] == other["r_squared"]
        assert one["deviation"] == pytest.approx(other["deviation"], abs=3e-7)
        # Another order of a sum in float32, on another machine, moves the sixth digit.
        assert one["mic_star"] == pytest.approx(other["mic_star"], abs=1e-5)


def test_a_data_set_is_the_same_whatever_is_drawn_with_it():
    x, y = data_sets(FAMILY, range(40, 43), 30, range(4), seed=5)
    assert x.shape == y.shape == (12, 30)
    part_x, part_y = data_sets(FAMILY, range(41, 42), 30, range(2, 3), seed=5)
    np.testing.assert_array_equal(part_x[0], x[4 + 2])
    np.testing.assert_array_equal(part_y[0], y[4 + 2])


def test_data_sets_differ_between_seeds_repeats_and_distributions():
    x, _ = data_sets(FAMILY, range(40, 43), 30, range(3), seed=5)
    other, _ = data_sets(FAMILY, range(40, 41), 30, range(1), seed=6)
    sets = {tuple(row) for row in (*x.tolist(), *other.tolist())}
    assert len(sets) == 10
    # Nor does a longer one begin as a shorter one.
    longer, _ = data_sets(FAMILY, range(40, 41), 31, range(1), seed=5)
    assert len(np.intersect1d(longer[0], x[0])) == 0


def test_data_sets_are_of_their_own_distribution(rng):
    """Compared with rejection sampling by x, y and y about the graph, and with a neighbour's."""
    for index in (8, 120):
        x, y = data_sets(FAMILY, range(index, index + 1), 1000, range(5), seed=0)
        function = FUNCTIONS[FAMILY.names[index]]
        drawn = [x.ravel(), y.ravel(), y.ravel() - function(x.ravel())]
        p_values = []
        for other in (index, index - 3):
            records = paper_oracles.rejected(*FAMILY.mixtures[other], 5000, rng)
            about = records[:, 1] - function(records[:, 0])
            p_values.append(
                min(
                    stats.ks_2samp(a, b).pvalue
                    for a, b in zip(drawn, (*records.T, about), strict=True)
                )
            )
        assert p_values[0] > 1e-4
        assert p_values[1] < 1e-9


def test_stored_and_computed_mixtures_draw_alike(key):
    """The digits that the file keeps are enough for records in float32."""
    index = FAMILY.names.index("F14") + 4
    stored = draw(FAMILY.mixtures[index], 200, key=key)
    again = draw(mixture_with_r_squared(FUNCTIONS["F14"], 0.5), 200, key=key)
    np.testing.assert_allclose(np.stack(stored), np.stack(again), rtol=0, atol=2e-6)
