"""A few pairs in numpy: the integers of the compiled programs, and when they are chosen."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmic_jax import MICe, MICr
from dpmic_jax.mic import batch, numpy_scorer
from dpmic_jax.mic.grids import buckets, compile_seconds
from dpmic_jax.mic.xlogx import UNIT, exact_gains, fast_gains

PAIRS = np.array([(0, 1), (2, 0), (1, 3), (3, 3)])
BOUNDS = [(0, 1), (0, 1), (0, 4), (0.2, 0.6)]
CUTS = {
    "by rank": lambda columns: MICe(B=24, c=3).cut(columns),
    "by width": lambda columns: MICr(B=24, c=3).cut(columns, BOUNDS),
}


@pytest.fixture
def columns(rng):
    x = rng.random(150)
    return [x, x**2, rng.integers(0, 4, 150), rng.random(150)]


def both(cut, gains):
    """What numpy finds, and what the compiled programs do."""
    compiled = batch.scorer(cut, gains, devices=jax.devices()[:1], pairs=len(PAIRS))
    assert isinstance(compiled, batch.Scorer)
    ways = numpy_scorer.FewScorer(cut, gains), compiled
    return (np.concatenate(list(way(PAIRS)), axis=2) for way in ways)


@pytest.mark.parametrize("how", CUTS)
def test_integers_are_those_of_the_compiled_programs(columns, how):
    cut = CUTS[how](columns)
    numpy, compiled = both(cut, exact_gains(cut.n))
    np.testing.assert_array_equal(numpy, compiled)
    assert numpy.dtype == compiled.dtype
    # And would not be, if a table were off by one unit in one place.
    table = np.asarray(exact_gains(cut.n).table).copy()
    table[1:] += 1
    off, _ = both(cut, type(exact_gains(cut.n))(table))
    assert (off != compiled).any()


@pytest.mark.parametrize("how", CUTS)
@given(
    cells=arrays(np.int8, (4, 40), elements=st.integers(0, 9)),
    scale=st.sampled_from([1, 4, 9]),
)
def test_integers_of_any_table_are_those_of_the_compiled_programs(how, cells, scale):
    """With ties, constant columns and values beyond the bounds."""
    cut = CUTS[how](list(cells / scale))
    numpy, compiled = both(cut, exact_gains(cut.n))
    np.testing.assert_array_equal(numpy, compiled)


def test_floats_are_within_2e_6_of_the_compiled_programs(columns):
    cut = CUTS["by rank"](columns)
    numpy, compiled = both(cut, fast_gains(cut.n))
    assert np.abs(numpy - compiled).max() / UNIT < 2e-6


def test_pairs_that_take_less_time_than_compiling_are_scored_in_numpy(columns):
    cut = CUTS["by rank"](columns)

    def way(pairs):
        return type(batch.scorer(cut, exact_gains(cut.n), pairs=pairs))

    compiling = sum(map(compile_seconds, buckets(cut.grids, 10**4)))
    many = next(p for p in range(1, 10**6) if numpy_scorer.seconds(cut.grids, cut.n, p) > compiling)
    assert way(1) is numpy_scorer.FewScorer
    assert way(10 * many) is batch.Scorer
