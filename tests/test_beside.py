"""Benchmarks of two commits: each runs its own code, and a commit that is not there is said."""

import subprocess

import pytest

from benchmarks.beside import Asked, fresh_cost, in_turn, trees

VERSION = "import dpmic_jax, benchmarks; print(dpmic_jax.number, benchmarks.__file__)"


def git(folder, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path):
    """A repository whose first commit is tagged, and whose tree is two steps on."""
    for package in ("dpmic_jax", "benchmarks"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("number = 1\n")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    git(tmp_path, "tag", "first")
    (tmp_path / "dpmic_jax" / "__init__.py").write_text("number = 2\n")
    git(tmp_path, "commit", "-am", "second")
    (tmp_path / "dpmic_jax" / "__init__.py").write_text("number = 3\n")  # not committed
    return tmp_path


def test_each_side_runs_its_own_package_and_benchmarks(clone):
    with trees("first", root=clone) as both:
        said = [fresh_cost(("-c", VERSION), tree).output.split() for tree in both]
        assert [number for number, _ in said] == ["1", "3"]
        files = [str(tree / "benchmarks" / "__init__.py") for tree in both]
        assert [path for _, path in said] == files
    assert not both.other.exists()


def test_a_commit_that_is_not_there_is_refused_with_what_to_do(clone):
    with (
        pytest.raises(LookupError, match=r"no commit 7bcc7ee .*git fetch --unshallow"),
        trees("7bcc7ee", root=clone),
    ):
        pass


def test_a_caches_setting_of_the_users_reaches_neither_side(clone, monkeypatch):
    """Or one version would find what another run compiled, and be called fast."""
    for name in ("JAX_COMPILATION_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "mine")
    program = "import os; print(os.environ.get('JAX_COMPILATION_CACHE_DIR'), end=' ');"
    program += "print(os.environ['XDG_CACHE_HOME'], os.listdir(os.environ['XDG_CACHE_HOME']))"
    with trees("first", root=clone) as both:
        first, second = (fresh_cost(("-c", program), tree).output.split() for tree in both)
    assert first[::2] == second[::2] == ["None", "[]"]
    assert len({first[1], second[1], "mine"}) == 3


def test_costs_are_of_the_process_and_of_those_it_waited_for(clone):
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}], check=True)"
    with trees("first", root=clone) as both:
        assert fresh_cost(("-c", parent), both.now).cpu > 0.3


def test_a_program_that_fails_is_not_a_measurement(clone):
    with trees("first", root=clone) as both:
        with pytest.raises(RuntimeError, match=r"ended with 1:\n(.*\n)*ZeroDivisionError"):
            fresh_cost(("-c", "1 / 0"), both.now)
        with (
            Asked("input(); exit(7)", tree=both.now, cache=both.now) as asked,
            pytest.raises(RuntimeError, match="ended with 7"),
        ):
            asked("go")


def test_rounds_take_turns_and_nobody_is_always_first():
    order = []
    found = in_turn([lambda k=k: order.append(k) or k for k in range(2)], 3)
    assert order == [0, 1, 1, 0, 0, 1]
    assert found == [[0, 0, 0], [1, 1, 1]]
