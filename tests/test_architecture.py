"""Rooms know only rooms below them, and the names at the top are few."""

import ast
from importlib import import_module

import pytest
import rooms
from rooms import ORDER, ORDER_IN_DP, ROOT

import dpmic_jax


@pytest.mark.parametrize(
    ("folder", "order"), [(ROOT, ORDER), (ROOT / "dp", ORDER_IN_DP)], ids=["package", "dp"]
)
def test_rooms_only_know_the_rooms_below(folder, order):
    assert set(rooms.rooms_of(folder)) == set(order)
    for here, path, there in rooms.edges(folder):
        below = {*order[: order.index(here)], here}
        assert there in below, f"{path.relative_to(ROOT)} may not import from {there}"


def test_the_picture_in_the_docs_is_of_the_real_imports():
    page = rooms.PAGE.read_text()
    assert rooms.drawn(page) == page, "run: python tests/rooms.py"


def test_the_plan_of_grids_needs_no_jax():
    text = (ROOT / "mic" / "grids.py").read_text()
    assert "import jax" not in text
    assert "from jax" not in text


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
