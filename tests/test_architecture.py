"""Which room may import from which: only from those below."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import dpmic_jax

ROOT = Path(dpmic_jax.__file__).parent
# From the bottom up. A room imports from itself and from rooms above it in this list.
ORDER = (
    "version",
    "dp",
    "data",
    "mic",
    "runs",
    "mechanisms",
    "results",
    "screening",
    "causal",
    "inference",
    "paper",
    "minepy",
    "sklearn",
    "cli",
    "__main__",
)
ORDER_IN_DP = (
    "arithmetic",
    "rng",
    "noise",
    "accounting",
    "selection",
    "information",
    "max_information",
    "conversions",
    "ledger",
    "audit",
)


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == "dpmic_jax")


def rooms_of(folder):
    """The folders and modules of a folder, each with the files that it has."""
    found = {}
    for path in folder.rglob("*.py"):
        name = path.relative_to(folder).parts[0].removesuffix(".py")
        if name != "__init__":
            found.setdefault(name, []).append(path)
    return found


@pytest.mark.parametrize(
    ("folder", "order"), [(ROOT, ORDER), (ROOT / "dp", ORDER_IN_DP)], ids=["package", "dp"]
)
def test_rooms_only_know_the_rooms_below(folder, order):
    rooms = rooms_of(folder)
    assert set(rooms) == set(order)
    prefix = ".".join(["dpmic_jax", *folder.relative_to(ROOT).parts])
    for here, files in rooms.items():
        below = {*order[: order.index(here)], here}
        for path in files:
            for name in imports(path):
                if name.startswith(f"{prefix}."):
                    there = name.removeprefix(f"{prefix}.").split(".")[0]
                    assert there in below, f"{path.relative_to(ROOT)} may not import {name}"


def test_the_plan_of_grids_needs_no_jax():
    text = (ROOT / "mic" / "grids.py").read_text()
    assert "import jax" not in text
    assert "from jax" not in text


def test_no_exported_name_hides_a_package():
    """`import dpmic_jax.mic.grids as grids` has to find the package."""
    assert dpmic_jax.mic.grids.__name__ == "dpmic_jax.mic.grids"


def test_every_exported_name_is_there():
    """They are imported on first use, so a wrong name would go unnoticed."""
    for name in dpmic_jax.__all__:
        assert getattr(dpmic_jax, name).__module__.startswith("dpmic_jax")
    assert len(set(dpmic_jax.__all__)) == len(dpmic_jax.__all__)
    assert dir(dpmic_jax) == sorted(dpmic_jax.__all__)


def test_no_exported_name_is_a_module():
    """Whichever of the two was imported last would be found under the name."""
    assert not {path.stem for path in ROOT.iterdir()} & set(dpmic_jax.__all__)


def test_names_at_the_top_are_few_and_in_the_stub():
    """What type checkers read is what is imported."""
    stub = ast.parse((ROOT / "__init__.pyi").read_text())
    found = {
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(found) == sorted(dpmic_jax.__all__)
    assert len(found) < 50
    for name, module in found.items():
        assert getattr(import_module(f"dpmic_jax.{module}"), name) is getattr(dpmic_jax, name)
