import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import faults
import numpy as np
import pytest

from dpmic_jax.paper.store import Store

DESCRIPTION = {"records": [25, 250], "seed": 0}


def parts(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".npz")


def part(value):
    return {"micr": np.full((2, 3), value, np.float32), "n": np.array([25])}


def refuse():
    raise AssertionError("computed again")


def test_a_part_comes_back_as_it_was_computed(tmp_path):
    store = Store(tmp_path, DESCRIPTION)
    for found in (store.part("a", lambda: part(0.1)), store.part("a", refuse)):
        assert set(found) == {"micr", "n"}
        assert found["micr"].dtype == np.float32
        np.testing.assert_array_equal(found["micr"], part(0.1)["micr"])
        np.testing.assert_array_equal(found["n"], [25])


def test_a_second_run_resumes_where_the_first_one_stopped(tmp_path):
    folder = tmp_path / "new" / "folder"
    first = Store(folder, DESCRIPTION)
    first.part("a", lambda: part(1))
    first.part("b", lambda: part(2))
    second = Store(folder, DESCRIPTION)
    assert second.part("a", refuse)["micr"][0, 0] == 1
    assert second.part("b", refuse)["micr"][0, 0] == 2
    assert second.part("c", lambda: part(3))["micr"][0, 0] == 3
    assert parts(folder) == ["a.npz", "b.npz", "c.npz"]


@pytest.mark.parametrize("name", ["micr-25-0", "geom-25-0.1-0", "geom-25-1.0-0", "Spellman23-mice"])
def test_names_with_points_and_dashes_are_kept_apart(tmp_path, name):
    store = Store(tmp_path, DESCRIPTION)
    store.part(name, lambda: part(1))
    store.part(f"{name}0", lambda: part(2))
    assert parts(tmp_path) == sorted([f"{name}.npz", f"{name}0.npz"])
    assert store.part(name, refuse)["micr"][0, 0] == 1


def test_parts_of_another_run_are_refused(tmp_path):
    Store(tmp_path, DESCRIPTION).part("a", lambda: part(1))
    with pytest.raises(ValueError, match=r"other settings: pass another folder"):
        Store(tmp_path, DESCRIPTION | {"seed": 1})
    # And nothing of it is lost.
    assert Store(tmp_path, DESCRIPTION).part("a", refuse)["micr"][0, 0] == 1


def test_key_order_and_tuples_for_lists_do_not_change_a_description(tmp_path):
    Store(tmp_path, DESCRIPTION)
    Store(tmp_path, {"seed": 0, "records": (25, 250)})


def test_a_part_that_fails_is_computed_again(tmp_path):
    store = Store(tmp_path, DESCRIPTION)
    with pytest.raises(ZeroDivisionError):
        store.part("a", lambda: {"x": np.array(1 // 0)})
    assert parts(tmp_path) in ([], [".a.npz"])
    assert store.part("a", lambda: part(4))["micr"][0, 0] == 4
    assert parts(tmp_path) == ["a.npz"]


# Goes on until it comes to a part, within which it kills itself: before the part's second array is
# written, or before the file has its name. Parts are known by their numbers.
PROGRAM = """
import sys
from pathlib import Path

import numpy as np
from faults import die_at, kill

from dpmic_jax.paper.store import Store


class Deadly:
    def __array__(self, dtype=None, copy=None):
        kill()


folder, last, where = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
store = Store(folder, {"seed": 0})
for number in range(last + 1):
    part = {"x": np.full(1_000_000, number)}
    if number == last and where == "inside":
        part["y"] = Deadly()
    elif number == last:
        die_at("os.rename")
    store.part(str(number), lambda: part)
"""


@pytest.mark.parametrize("where", ["inside", "at the end"])
def test_a_run_killed_while_it_writes_leaves_no_broken_part(tmp_path, where):
    path = os.pathsep.join([str(Path(faults.__file__).parent), *filter(None, sys.path)])
    for last in (0, 1, 2):
        words = [sys.executable, "-c", PROGRAM, str(tmp_path), str(last), where]
        done = subprocess.run(words, env={**os.environ, "PYTHONPATH": path})
        assert done.returncode == -signal.SIGKILL
        # The part that was being written is there under another name, as far as it came.
        finished = [f"{number}.npz" for number in range(last)]
        assert parts(tmp_path) == [f".{last}.npz", *finished]
        unfinished = tmp_path / f".{last}.npz"
        assert unfinished.stat().st_size > 1_000_000
        assert zipfile.is_zipfile(unfinished) == (where == "at the end")
        store = Store(tmp_path, {"seed": 0})
        for number in range(last):
            found = store.part(str(number), refuse)["x"]
            assert len(found) == 1_000_000
            assert (found == number).all()
