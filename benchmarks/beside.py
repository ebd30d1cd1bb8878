"""Compare another commit of this repository with the working tree, measured in turn.

Absolute times mean little on a machine that does other work; the ratio of two versions that take
turns in one run is reliable. The other version comes from the clone's own history. Both run from
temporary folders with the same Python and JAX, and with separate caches.
"""

import compileall
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

ROOT = Path(__file__).parents[1]
FIRST = "7bcc7ee"  # version 0.1.0
PACKAGES = ("dpmic_jax", "benchmarks")
# Variables of the user that would make a version find compiled programs, or keep none.
CACHE_SETTINGS = (
    "JAX_COMPILATION_CACHE",
    "JAX_PERSISTENT_CACHE",
    "JAX_ENABLE_COMPILATION_CACHE",
    "XDG_CACHE_HOME",
)

T = TypeVar("T")


class Trees(NamedTuple):
    """The folders from which the two versions are imported."""

    other: Path
    now: Path


@contextmanager
def trees(commit: str, *, root: Path = ROOT) -> Iterator[Trees]:
    """Copies of the package and the benchmarks at `commit` and of the working tree.

    The working tree is copied too, so that edits do not affect a run of many minutes, and so that
    both versions have compiled bytecode before they are measured.
    """
    with tempfile.TemporaryDirectory(prefix="beside-") as name:
        both = Trees(Path(name) / "other", Path(name) / "now")
        _unpack(commit, root, both.other)
        for package in PACKAGES:
            shutil.copytree(root / package, both.now / package)
        for tree in both:
            compileall.compile_dir(tree, quiet=2)
        yield both


def _unpack(commit: str, root: Path, folder: Path) -> None:
    git = ["git", "-C", str(root)]
    asked = [*git, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"]
    found = subprocess.run(asked, capture_output=True, text=True)
    if found.returncode:
        raise LookupError(
            f"there is no commit {commit} in this clone; a shallow clone gets its history by "
            "`git fetch --unshallow`, an unpacked archive has none: clone the repository"
        )
    archive = [*git, "archive", found.stdout.strip(), *PACKAGES]
    packed = subprocess.run(archive, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(folder, filter="data")


def environment(tree: Path, cache: Path) -> dict[str, str]:
    """An environment that imports from `tree`, with `cache` as the user's cache folder.

    This is what a user has by default: the `dpmic` command keeps compiled programs in that folder,
    and Python code keeps none.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(CACHE_SETTINGS)}
    return {**kept, "PYTHONPATH": str(tree), "XDG_CACHE_HOME": str(cache)}


class Cost(NamedTuple):
    """The cost of one process, with the processes it waited for."""

    cpu: float  # seconds, user and system
    wall: float
    peak_mb: float
    output: str


def cost(words: Sequence[str], tree: Path, cache: Path) -> Cost:
    """The cost of running Python with the arguments `words` in an empty folder."""
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env=environment(tree, cache),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        said, told = (_content(file) for file in (output, errors))
    if process.returncode:
        raise RuntimeError(f"python {' '.join(words)} ended with {process.returncode}:\n{told}")
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024, said)


def fresh_cost(words: Sequence[str], tree: Path) -> Cost:
    """`cost` with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        return cost(words, tree, Path(cache))


class Asked:
    """A process that stays alive and answers each line of input with a line of JSON."""

    def __init__(self, program: str, *words: str, tree: Path, cache: Path):
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *words],
            cwd=tree,
            env=environment(tree, cache),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, line: str) -> Any:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None, "Popen was asked for pipes"
        assert answers is not None, "Popen was asked for pipes"
        print(line, file=asked, flush=True)
        answer = answers.readline()
        if not answer:
            raise RuntimeError(f"the program ended with {self._process.wait()}; see above")
        return json.loads(answer)

    def __enter__(self) -> "Asked":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # closes its input, which ends it


def in_turn(runs: Sequence[Callable[[], T]], rounds: int) -> list[list[T]]:
    """The rounds of each run, in turn. Every other round is in reverse order, for fairness."""
    found: list[list[T]] = [[] for _ in runs]
    for i in range(rounds):
        order = range(len(runs))
        for k in reversed(order) if i % 2 else order:
            found[k].append(runs[k]())
    return found


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
