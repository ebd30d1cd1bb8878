"""`dpmic warm-up`: later screens find their programs, in real processes."""

import os
import stat
import subprocess
import sys

import pytest
from commands import NAMES, QUICK, N, dpmic


@pytest.fixture
def process(tmp_path):
    """Run a command with a cache of its own: the process, and what is in the cache then."""
    kept = ("JAX_", "XLA_")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(kept)}
    cache = tmp_path / "dpmic_jax"

    def run(*words, **changed):
        done = subprocess.run(
            [sys.executable, "-m", "dpmic_jax", *words],
            env={**environment, "XDG_CACHE_HOME": str(tmp_path), **changed},
            capture_output=True,
            text=True,
        )
        names = {path.name for path in cache.iterdir()} if cache.exists() else set()
        return done, names

    return run


def test_a_screen_after_warm_up_compiles_nothing(process, tmp_path):
    done, warmed = process("warm-up", *QUICK)
    assert done.returncode == 0, done.stderr
    compiled, kept = done.stdout.splitlines()
    assert compiled.startswith(f"Compiled {len(warmed)} programs: jit_")
    assert {"jit_count", "jit_optimise"} <= set(compiled.replace(",", "").split())
    assert kept == f"Cached in {tmp_path / 'dpmic_jax'}, {len(warmed)} in total"
    assert stat.S_IMODE((tmp_path / "dpmic_jax").stat().st_mode) == 0o700
    done, names = process("screen", "demo", "--epsilon", "1", *QUICK)
    assert done.returncode == 0, done.stderr
    assert names == warmed
    done, names = process("warm-up", *QUICK)
    assert done.stdout.startswith("Compiled 0 programs: all were cached\n")
    # What was not warmed up is new, so this would be seen.
    done, names = process("screen", "demo", "--epsilon", "1", "--ask", "top:2", *QUICK)
    assert done.returncode == 0, done.stderr
    assert names > warmed


def test_an_unusable_cache_is_reported(process, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done, names = process("warm-up", *QUICK, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert (done.returncode, done.stdout, names) == (2, "", set())
    assert done.stderr.startswith("Error: ")
    done, names = process("warm-up", *QUICK, JAX_ENABLE_COMPILATION_CACHE="false")
    assert (done.returncode, done.stdout, names) == (2, "", set())
    assert "JAX_ENABLE_COMPILATION_CACHE" in done.stderr


def test_warm_up_takes_a_size_and_a_query():
    done = dpmic("warm-up", "-n", N, "--columns", len(NAMES), "--epsilon", 1, *QUICK)
    assert done.exit_code == 0, done.output
    done = dpmic("warm-up", "--ask", "most")
    assert done.exit_code == 2
    assert "expected --ask as all, top:20" in done.stderr
