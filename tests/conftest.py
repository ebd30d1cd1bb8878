"""JAX in its strictest settings, shapes and types checked, hypothesis repeatable."""

from importlib import import_module

import environment
import jax
import jaxtyping
import numpy as np
import pytest
import typecheck
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

pytest_plugins = ["browsing", "databases", "memory", "order"]

# Not where callers' mistakes are answered: there the package's own checks are under test.
CHECKED = [
    *("lookup", "binning", "characteristic", "counting", "numpy_scorer", "xlogx", "optimise"),
    *("batch", "ties", "kernel"),
]
jaxtyping.jaxtyped = typecheck.sampled  # the hook puts it around every function
with install_import_hook([f"dpmic_jax.mic.{name}" for name in CHECKED], "typecheck.checked"):
    for name in CHECKED:
        import_module(f"dpmic_jax.mic.{name}")

# The engine is compiled as it is for users.
cpu = import_module("dpmic_jax.mic.programs").OPTIONS["cpu"]
cpu |= environment.LIKE_USERS | cpu

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def key():
    return jax.random.key(7)
