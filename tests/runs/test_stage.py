"""What an interrupt finds: it waits for a charge that is under way, and then tells the outcome."""

from pathlib import Path

import pytest

from dpmic_jax.runs import stage
from dpmic_jax.runs.stage import Stage

FOLDER = Path("some") / "folder"


@pytest.fixture(autouse=True)
def fresh():
    stage.reset()
    yield
    stage.reset()


def test_each_stage_has_its_code_and_its_outcome():
    assert (stage.now().code(2), stage.now().outcome) == (2, "nothing was charged")
    stage.begun(resume=FOLDER)
    assert stage.now().code(2) == 4
    assert stage.now().outcome == f"repeat the command to resume from {FOLDER}"
    stage.charged(resume=FOLDER)
    assert stage.now().code(2) == 4
    assert (
        stage.now().outcome == f"repeat the command to resume from {FOLDER}, at no further charge"
    )
    stage.charged(resume=None)
    assert stage.now().code(130) == 5
    assert "the charge is spent" in stage.now().outcome
    stage.done()
    assert stage.now() == Stage(charged=True, done=True)
    stage.reset()
    assert stage.now() == Stage()


def test_an_interrupt_ends_at_once_unless_a_charge_is_under_way():
    found = []

    def end():
        found.append(stage.now())

    stage.interrupted(end)
    assert found.pop() == Stage()
    with stage.charging():
        stage.interrupted(end)
        stage.interrupted(end)  # a second one changes nothing
        with stage.charging():
            pass
        stage.charged(resume=None)
        assert found == []
    assert found == [Stage(charged=True)]


def test_an_interrupt_inside_a_charge_that_is_refused_finds_nothing_charged():
    found = []

    def refused():
        with stage.charging():
            stage.interrupted(lambda: found.append(stage.now()))
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        refused()
    assert found == [Stage()]
    with stage.charging():
        pass
    assert found == [Stage()]  # it is not told again
