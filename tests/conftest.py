"""JAX in its strictest settings, shapes and types checked, hypothesis repeatable."""

import atexit
import os
import shutil
import tempfile
from importlib import import_module

# Workers and the commands that tests start share what is compiled, for this run only.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="dpmic-tests-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"
    atexit.register(shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)

# Before JAX starts: the sharding tests need several devices. A program is compiled on one core, as
# other workers use the others.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_force_host_platform_device_count=4 --xla_cpu_parallel_codegen_split_count=1"
).strip()

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Not where callers' mistakes are answered: there the package's own checks are under test.
CHECKED = ["binning", "characteristic", "counting", "gains", "optimise", "sweep", "tile"]
with install_import_hook([f"dpmic_jax.mic.{name}" for name in CHECKED], "typecheck.checked"):
    for name in CHECKED:
        import_module(f"dpmic_jax.mic.{name}")

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
