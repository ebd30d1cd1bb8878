import numpy as np
import pytest

from dpmic_jax import MICe, MICr, mice
from dpmic_jax.mic import one_pair, programs
from dpmic_jax.mic.numpy_scorer import FewScorer
from dpmic_jax.mic.xlogx import exact_gains

PAIR = np.array([[0, 1]])


def cut_of(statistic, rng, n):
    columns = [rng.random(n), rng.integers(0, 9, n) / 9]
    if isinstance(statistic, MICr):
        return statistic.cut(columns, [(0, 1), (0, 1)])
    return statistic.cut(columns)


@pytest.mark.parametrize("statistic", [MICe(B=12, c=2), MICr(B=12, c=2)])
def test_programs_and_numpy_give_the_same_bits(rng, statistic):
    for n in (600, 77):
        cut = cut_of(statistic, rng, n)
        (expected,) = FewScorer(cut, exact_gains(n))(PAIR)
        found = one_pair._compiled(cut, one_pair.shapes(cut.grids), exact_gains(n))
        np.testing.assert_array_equal(found, expected)


def test_programs_are_used_once_numpy_has_taken_as_long_as_compiling(rng, monkeypatch):
    used = []
    run = one_pair._compiled
    monkeypatch.setattr(one_pair, "_spent", {})
    monkeypatch.setattr(one_pair, "_compiled", lambda *given: used.append(1) or run(*given))
    monkeypatch.setattr(one_pair, "compile_seconds", lambda bucket: 1e-3)
    x, y = rng.random((2, 600))
    values = {mice(x, y, B=12, c=2) for _ in range(6)}
    assert 0 < len(used) < 6
    assert len(values) == 1


def test_another_n_compiles_nothing(rng):
    def misses(n):
        cut = cut_of(MICe(B=12, c=2), rng, n)
        one_pair._compiled(cut, one_pair.shapes(cut.grids), exact_gains(n))
        return programs._compiled.cache_info().misses

    before = misses(600)
    assert [misses(n) for n in (601, 640, 999)] == [before] * 3


def test_plans_that_are_too_large_for_it_are_left_to_the_engine(rng, monkeypatch):
    x, y = rng.random((2, 100))
    expected = mice(x, y)
    monkeypatch.setattr(one_pair, "MOST_CELLS", 10)
    assert mice(x, y) == expected
