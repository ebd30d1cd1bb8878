"""Compiled programs are kept where the user says, and where nobody else may put any."""

import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from cli.commands import dpmic
from jax.experimental.compilation_cache import compilation_cache

from dpmic_jax import enable_compilation_cache

UNSET = {
    "jax_compilation_cache_dir": None,
    "jax_enable_compilation_cache": True,
    "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "jax_persistent_cache_min_compile_time_secs": 1.0,
}


@pytest.fixture(autouse=True)
def unset():
    """JAX as it comes: its cache is not switched off, and has no folder."""
    before = {name: jax.config.values[name] for name in UNSET}
    for name, value in UNSET.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def compiles_something(factor=3):
    jax.jit(lambda x: jnp.sin(x) * factor)(jnp.ones(5)).block_until_ready()


def programs(folder):
    return {path.name for path in Path(folder).glob("*-cache")}


def damage(folder):
    for path in folder.glob("*-cache"):
        path.write_bytes(path.read_bytes()[:-9])


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_importing_sets_nothing():
    """Neither the package nor any of its names: a user's own programs are not kept unasked."""
    program = """
import json, jax
before = jax.config.values
import dpmic_jax
for name in dpmic_jax.__all__:
    getattr(dpmic_jax, name)
print(json.dumps([str(before), str(jax.config.values), before["jax_compilation_cache_dir"]]))
"""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    before, after, folder = json.loads(done.stdout)
    assert (before, folder) == (after, None)


def test_programs_are_kept_in_a_new_folder_of_the_owner_alone(tmp_path):
    before = os.umask(0)  # which would let everybody write
    try:
        found = enable_compilation_cache(tmp_path / "new" / "cache")
    finally:
        os.umask(before)
    assert found == str(tmp_path / "new" / "cache")
    assert mode(tmp_path / "new") == mode(tmp_path / "new" / "cache") == 0o700
    assert programs(found) == set()
    compiles_something()
    assert any(name.startswith("jit__lambda") for name in programs(found))


def test_what_was_compiled_before_the_call_does_not_keep_it_from_working(tmp_path):
    """JAX decides on its cache when it first compiles."""
    compiles_something(factor=4)
    enable_compilation_cache(tmp_path)
    compiles_something(factor=5)
    assert programs(tmp_path)


def test_programs_are_found_again_when_their_folder_was_moved(tmp_path):
    """An image or a cluster may mount it elsewhere."""
    enable_compilation_cache(tmp_path / "here")
    compiles_something(factor=9)
    kept = programs(tmp_path / "here")
    jax.config.update("jax_compilation_cache_dir", None)
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    enable_compilation_cache(tmp_path / "there")
    compiles_something(factor=9)
    assert programs(tmp_path / "there") == kept
    # JAX's own way makes another program of it.
    jax.config.update("jax_persistent_cache_enable_xla_caches", "all")
    compiles_something(factor=9)
    assert programs(tmp_path / "there") > kept


def test_the_folder_is_by_default_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert enable_compilation_cache() == str(tmp_path / "xdg" / "dpmic_jax")
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert enable_compilation_cache() == str(tmp_path / "home" / ".cache" / "dpmic_jax")


def test_a_cache_that_is_set_or_switched_off_is_left_alone(tmp_path):
    for folder, in_use in (("/of/the/user", "/of/the/user"), ("gs://far/away",) * 2, ("", None)):
        jax.config.update("jax_compilation_cache_dir", folder)
        assert enable_compilation_cache(tmp_path / "new") == in_use
        assert jax.config.values["jax_compilation_cache_dir"] == folder
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_enable_compilation_cache", False)
    assert enable_compilation_cache(tmp_path / "new") is None
    assert jax.config.values["jax_compilation_cache_dir"] is None
    assert jax.config.values["jax_persistent_cache_min_compile_time_secs"] == 1.0
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("others", [0o770, 0o702, 0o722])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path, others):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(others)
    with pytest.raises(PermissionError, match=r"others may write to .*remove it"):
        enable_compilation_cache(folder)
    assert jax.config.values["jax_compilation_cache_dir"] is None
    folder.chmod(0o755)
    assert enable_compilation_cache(folder) == str(folder)


def test_a_folder_of_somebody_else_is_refused_but_for_roots(tmp_path, monkeypatch):
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    monkeypatch.setattr("dpmic_jax.mic.compilation_cache._ROOT", me)
    assert enable_compilation_cache(tmp_path) == str(tmp_path)
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setattr("dpmic_jax.mic.compilation_cache._ROOT", me + 2)
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        enable_compilation_cache(tmp_path)
    assert jax.config.values["jax_compilation_cache_dir"] is None


def test_it_is_the_folder_behind_a_link_that_is_looked_at_and_used(tmp_path):
    """Whoever can change the link later changes nothing."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    real.chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        enable_compilation_cache(link)
    real.chmod(0o700)
    assert enable_compilation_cache(link) == str(real)


def test_a_folder_that_may_only_be_read_is_read(tmp_path, monkeypatch):
    """As one that comes with an image is: nothing is added, and nothing said."""
    enable_compilation_cache(tmp_path)
    compiles_something(factor=6)
    damage(tmp_path)
    kept = programs(tmp_path)
    jax.config.update("jax_compilation_cache_dir", None)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK and real(path, how))
    enable_compilation_cache(tmp_path)
    compiles_something(factor=7)
    assert programs(tmp_path) == kept
    with pytest.warns(UserWarning, match="Error reading"):
        compiles_something(factor=6)


def test_without_a_home_there_is_no_folder(monkeypatch):
    def nobody(_):
        raise KeyError

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(FileNotFoundError, match=r"no home for ~/\.cache/dpmic_jax"):
        enable_compilation_cache()


class TestCommand:
    PLAN = ("causal-plan", "--epsilon", 1, "-n", 100, "--columns", 3)

    def test_it_keeps_programs_in_the_users_cache(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        done = dpmic(*self.PLAN)
        assert (done.exit_code, done.stderr) == (0, "")
        assert jax.config.values["jax_compilation_cache_dir"] == str(tmp_path / "dpmic_jax")
        assert jax.config.values["jax_persistent_cache_min_compile_time_secs"] == 0
        assert mode(tmp_path / "dpmic_jax") == 0o700

    def test_it_goes_on_without_a_folder_and_says_so(self, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        done = dpmic(*self.PLAN)
        assert done.exit_code == 0
        (said,) = done.stderr.splitlines()
        assert said.startswith("Compiled programs are not cached: ")
        assert "XDG_CACHE_HOME" in said
        assert "epsilon" in done.stdout
        assert jax.config.values["jax_compilation_cache_dir"] is None

    def test_it_keeps_none_if_the_cache_is_switched_off(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        jax.config.update("jax_enable_compilation_cache", False)
        done = dpmic(*self.PLAN)
        assert (done.exit_code, done.stderr) == (0, "")
        assert list(tmp_path.iterdir()) == []


def test_a_damaged_entry_costs_a_warning_and_a_compilation(tmp_path):
    """A write that was cut short, by a full disk say: the program is not run."""
    enable_compilation_cache(tmp_path)
    compiles_something(factor=8)
    compilation_cache.reset_cache()
    compiles_something(factor=8)  # whole, it says nothing
    damage(tmp_path)
    with pytest.warns(UserWarning, match="Error reading persistent compilation cache entry"):
        compiles_something(factor=8)
