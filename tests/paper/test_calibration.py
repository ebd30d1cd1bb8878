"""The table behind the estimate of MIC* from `VariationLap`."""

import numpy as np
import pytest

from dpmic_jax.mechanisms import tuned_defaults
from dpmic_jax.mechanisms.variation import parts_for
from dpmic_jax.paper import ablations, calibration, family, shapes


def test_values_are_those_of_the_definition(rng):
    x, y = rng.random((2, 5, 40)).astype(np.float32)
    found = calibration.variations(x, y, 4)
    for value, *pair in zip(found, x, y, strict=True):
        counts = np.histogram2d(*pair, 4, ((0, 1), (0, 1)))[0] / 40
        wanted = 0.0
        for table in (counts, counts.T):
            for cut in (1, 2, 3):
                near = table[:cut].sum(axis=0)
                wanted = max(wanted, 2 * np.abs(near - near.sum() * table.sum(axis=0)).sum())
        assert value == pytest.approx(wanted, abs=1e-12)


def test_quantiles_are_the_middles_of_thirds():
    values = np.arange(601.0)[None] / 600
    np.testing.assert_allclose(calibration.quantiles(values), [[1 / 6, 3 / 6, 5 / 6]])


def test_the_table_is_what_the_command_makes():
    """Computed again for two functions at n = 25, where that is quick."""
    which = range(9, 27)
    x, y = family.data_sets(family.family(), which, 25, range(40), seed=0)
    made = calibration.quantiles(calibration.variations(x, y, parts_for(25)).reshape(18, 40))
    # Machines may differ in the last bits of a draw, and so in a record's cell.
    gap = np.abs(tuned_defaults.variation_family(25).values[which] - made)
    assert gap.max() < 0.05
    assert gap.mean() < 1e-3


def test_the_table_agrees_with_data_sets_it_has_not_seen():
    of, shipped = family.family(), tuned_defaults.variation_family(250)
    which = range(27, 36)
    x, y = family.data_sets(of, which, 250, range(30), seed=99)
    values = calibration.variations(x, y, parts_for(250)).reshape(9, 30)
    # Medians of 20 and of 30 data sets, each with a spread of 0.04 or less.
    np.testing.assert_allclose(np.median(values, axis=1), shipped.values[which, 1], atol=0.05)


def test_the_table_is_interpolated_in_the_logarithm_of_n():
    low, high = tuned_defaults.variation_family(250), tuned_defaults.variation_family(500)
    middle = tuned_defaults.variation_family(354)
    np.testing.assert_allclose(middle.values, (low.values + high.values) / 2, atol=1e-3)
    np.testing.assert_array_equal(middle.stars, tuned_defaults.family(354).stars)


def test_summaries_are_what_their_names_say():
    mice = np.array([0.0, 0.5, 0.2])
    values = np.array([[0.1, 0.4, 0.2], [0.3, 0.6, 0.5]])
    found = ablations.summaries(values, mice)
    # Gaps are (0.1, 0.3), (-0.1, 0.1), (0, 0.3).
    assert found["bias"] == pytest.approx(0.15)
    assert found["variance"] == pytest.approx(0.01)
    assert found["of mean unsigned"] == pytest.approx(0.15)
    assert found["of unsigned mean"] == pytest.approx(0.15)
    assert found["pooled"] == pytest.approx(0.1)
    assert found["mean of all"] == pytest.approx(0.15)


def test_shapes_are_a_hundred_centres_in_the_square():
    for centres in shapes.shapes().values():
        assert centres.shape == (100, 2)
        assert centres.min() >= 0
        assert centres.max() <= 1


def test_shapes_are_no_functions():
    """Every shape except the clusters has two centres with nearly the same x and different y."""
    for name, centres in shapes.shapes().items():
        order = centres[np.argsort(centres[:, 0])]
        near = np.diff(order[:, 0]) < 0.01
        jumps = np.abs(np.diff(order[:, 1]))[near]
        assert name == "three clusters" or jumps.max() > 0.1
