"""How JAX compiles in the tests, and where it keeps what it compiled; imported before JAX.

Workers, and the processes that tests start, find all of it in their environment.
"""

import atexit
import os
import shutil
import tempfile
import time
from importlib import metadata
from pathlib import Path

MONTH = 30 * 24 * 3600


def kept():
    """Where programs are kept between runs of the tests; for this run only, if there is no home."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = Path(home, "dpmic_jax-tests").expanduser() / f"jax-{metadata.version('jax')}"
        for missing in (*reversed(folder.parents), folder):
            missing.mkdir(mode=0o700, exist_ok=True)
        for program in folder.glob("*-cache"):
            if program.stat().st_mtime < time.time() - MONTH:
                program.unlink(missing_ok=True)
    except (OSError, RuntimeError):
        folder = Path(tempfile.mkdtemp(prefix="dpmic-tests-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# JAX itself tells programs apart by their code, its version and the processor's features.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(kept())
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.03")
os.environ.setdefault("JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES", "none")  # no path in a key

# The sharding tests need several devices. A program is compiled on one core, as other workers use
# the others, and quickly: it runs once or twice. The engine's own are compiled as they are for
# users. Each flag once, also in a worker, as programs are told apart by them too.
FLAGS = (
    "--xla_force_host_platform_device_count=4",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_backend_optimization_level=0",
)
# What undoes that for one program, as its compiler options.
LIKE_USERS = {"xla_backend_optimization_level": 3}
# Newer versions have no such flag, and XLA ends a process that names one.
if tuple(map(int, metadata.version("jax").split(".")[:2])) < (0, 11):
    FLAGS += ("--xla_cpu_use_fusion_emitters=false",)
    LIKE_USERS["xla_cpu_use_fusion_emitters"] = True

given = os.environ.get("XLA_FLAGS", "").split()
os.environ["XLA_FLAGS"] = " ".join([*given, *(flag for flag in FLAGS if flag not in given)])
