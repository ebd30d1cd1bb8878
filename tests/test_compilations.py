"""A program is compiled once, and serves tables of other lengths and with other columns."""

import jax
import numpy as np
import pytest

from dpmic_jax import MICr, screen, seeded_key
from dpmic_jax.inference import Permutation, null_law
from dpmic_jax.mic import programs
from dpmic_jax.mic.statistics import MICe
from dpmic_jax.screening import Against, AllPairs

ALL = AllPairs()


@pytest.fixture
def compiled():
    """The names of all programs that JAX has compiled since the last call, also those it has kept.

    No program of an earlier test is in memory.
    """
    names = []

    def listen(event, _, **about):
        if event == "/jax/core/compile/backend_compile_duration":
            names.append(about["fun_name"])

    def since():
        found = sorted(names)
        names.clear()
        return found

    programs._compiled.cache_clear()
    jax.monitoring.register_event_duration_secs_listener(listen)
    yield since
    jax.monitoring.unregister_event_duration_listener(listen)


def engine(names):
    return [name for name in names if name in ("jit(count)", "jit(optimise)", "jit(distances)")]


def test_a_screen_of_another_table_compiles_no_tile_program(compiled):
    """With default settings, whether or not the budget affords a MICr.

    A device that is named takes part however few pairs there are: by default these are scored
    in numpy, if that is quicker than compiling.
    """

    def run(n, columns, devices=1, ask=ALL, **settings):
        table = np.random.default_rng(n).random((n, columns))
        names = [f"column {i}" for i in range(columns)]
        screen(
            dict(zip(names, table.T, strict=True)),
            bounds=dict.fromkeys(names, (0.0, 1.0)),
            epsilon=1.0,
            ask=ask,
            key=seeded_key(1),
            devices=jax.devices()[:devices],
            **settings,
        )
        return engine(compiled())

    assert set(run(20_000, 12)) == {"jit(count)", "jit(optimise)", "jit(distances)"}
    assert run(16_321, 12) == []
    # Of 136 pairs no MICr is released.
    assert run(14_321, 17) == run(14_321, 17, devices=0) == []
    assert run(14_321, 12, statistic=MICr(B=7, c=2), ask=Against("column 0")) != []


def test_tests_of_independence_of_other_pairs_and_draws_compile_nothing(compiled):
    statistic, rng = MICe(B=9, c=2), np.random.default_rng(3)

    def run(n, columns, draws, statistic=statistic):
        pairs = np.array([[i, i + 1] for i in range(columns - 1)])
        test = Permutation(statistic=statistic, draws=draws)
        test.p_values(list(rng.random((columns, n))), pairs, [], key=jax.random.key(n))
        return compiled()

    first = run(100, 3, 50)
    assert "jit(optimise)" in first
    assert run(97, 5, 333) == []
    # Of more columns only another laying out.
    assert run(100, 9, 20) == ["jit(_side_by_side)"]
    assert len(run(100, 3, 50, MICe(B=8, c=2))) > 1


def test_null_laws_of_other_lengths_compile_nothing(compiled):
    def run(n, draws):
        null_law(MICe(B=9, c=2), n, draws=draws, key=jax.random.key(2**21 + n))
        return compiled()

    assert "jit(optimise)" in run(100, 50)
    assert run(97, 333) == []
