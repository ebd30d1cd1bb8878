import pytest

from dpmic_jax.inference import shuffling


@pytest.fixture(autouse=True)
def quickly_compiled(monkeypatch):
    """Programs laid out for few lanes: slower to run, quicker to compile, the same results."""
    monkeypatch.setattr(shuffling, "PLANNED_LANES", 10)
