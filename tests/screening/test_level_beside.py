"""The level of independence of a screen: from the table, or found while the screen works."""

import threading
from importlib import import_module

import pytest
from small import STATISTIC, N, columns, screened

from dpmic_jax import MICr
from dpmic_jax.screening import (
    Above,
    Against,
    AllPairs,
    TopK,
    default_screen_statistic,
    independence,
    preview,
)

SCREEN = import_module("dpmic_jax.screening.screen")


class SimulationError(Exception):
    """Raised where a level is simulated."""


@pytest.fixture
def no_simulation(monkeypatch):
    def refuse(*_, **__):
        raise SimulationError

    independence._simulated.cache_clear()
    monkeypatch.setattr(independence, "simulated", refuse)


@pytest.mark.parametrize("ask", [AllPairs(), Against("a"), TopK(2), Above(0.5, 2)])
@pytest.mark.parametrize("n", [10, 14_321, 10**6])
def test_a_preview_of_default_settings_simulates_nothing(no_simulation, ask, n):
    names = tuple(columns())
    found = preview(columns=names, n=n, epsilon=20.0, ask=ask)
    assert found.plan.statistic == default_screen_statistic(n, float(found.plan.values.epsilon))
    assert "called dependent above" in str(found)
    with pytest.raises(SimulationError):
        str(preview(columns=names, n=n, epsilon=20.0, ask=ask, statistic=MICr(B=9, c=1)))


def test_a_screen_of_default_settings_simulates_nothing(no_simulation):
    names = ("a", "b")
    table = {name: columns()[name] for name in names}
    bounds = dict.fromkeys(names, (-3.0, 3.0))
    assert (
        0
        < screened(
            table, bounds=bounds, epsilon=1.0, statistic=default_screen_statistic
        ).dependence_threshold
        < 1
    )


def test_an_error_in_the_threshold_ends_the_screen(no_simulation):
    with pytest.raises(SimulationError):
        screened(ask=TopK(2))


def test_a_level_is_found_while_the_screen_works(monkeypatch):
    """Either waits for the other to have begun: one after the other would break the barrier."""
    both, work = threading.Barrier(2, timeout=60), SCREEN.released

    def level(plan):
        both.wait()
        return 0.25

    def released(*arguments):
        both.wait()
        return work(*arguments)

    monkeypatch.setattr(SCREEN, "dependence_level", level)
    monkeypatch.setattr(SCREEN, "released", released)
    assert screened().dependence_threshold == 0.25


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError])
def test_an_error_in_the_screen_does_not_wait_for_the_threshold(monkeypatch, problem):
    begun, go_on, ended = (threading.Event() for _ in range(3))

    def level(plan):
        begun.set()
        go_on.wait(60)
        ended.set()
        return 0.25

    def released(*_):
        assert begun.wait(60)
        raise problem

    monkeypatch.setattr(SCREEN, "dependence_level", level)
    monkeypatch.setattr(SCREEN, "released", released)
    with pytest.raises(problem):
        screened()
    assert not ended.is_set()
    go_on.set()
    assert ended.wait(60)


def test_a_level_outside_the_table_is_that_of_its_plan():
    found = screened(epsilon=20.0)
    planned = preview(columns=found.names, n=N, epsilon=20.0, ask=AllPairs(), statistic=STATISTIC)
    assert found.dependence_threshold == independence.dependence_level(planned.plan)
