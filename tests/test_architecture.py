"""Who may import whom."""

import ast
from pathlib import Path

import dpmic_jax

ROOT = Path(dpmic_jax.__file__).parent
MAY_IMPORT = {
    "mic": {"mic"},
    "demo": {"mic"},
    "table": {"mic"},
    "pairwise": {"mic", "table"},
    "dp": {"dp"},
    "sensitivity": {"mic"},
    "table_2": {"mic"},
    "tuned": {"mic"},
    "histogram": {"mic"},
    "mechanisms": {
        "mechanisms",
        "mic",
        "dp",
        "histogram",
        "sensitivity",
        "table",
        "table_2",
        "tuned",
    },
    "schema": {"schema", "mic"},
    "source": {"source", "schema", "mic", "table"},
    "results": {"results", "dp"},
    "screening": {
        "",
        "screening",
        "mechanisms",
        "mic",
        "dp",
        "sensitivity",
        "tuned",
        "schema",
        "source",
        "results",
    },
    "causal": {"causal", "mic", "dp", "results", "schema", "sensitivity", "source"},
    "inference": {"inference", "mic", "dp", "results", "source", "table"},
    "paper": {"paper", "mechanisms", "mic", "dp", "sensitivity", "table", "table_2", "tuned"},
    "cli": {
        "",
        "causal",
        "cli",
        "demo",
        "dp",
        "inference",
        "pairwise",
        "paper",
        "results",
        "schema",
        "screening",
        "source",
        "table",
        "tuned",
    },
    "__main__": {"cli"},
    "minepy": {"minepy", "mic"},
    "sklearn": {
        "sklearn",
        "dp",
        "mic",
        "pairwise",
        "results",
        "schema",
        "screening",
        "table",
    },
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == "dpmic_jax")


def room(parts):
    return parts[0].removesuffix(".py")


def test_rooms_only_know_the_rooms_below():
    rooms = {room(path.relative_to(ROOT).parts) for path in ROOT.rglob("*.py")} - {"__init__"}
    assert rooms == set(MAY_IMPORT)
    for path in ROOT.rglob("*.py"):
        here = room(path.relative_to(ROOT).parts)
        if here == "__init__":
            continue
        for name in imports(path):
            there = name.split(".")[1]
            there = there if there in rooms else ""
            assert there in MAY_IMPORT[here], f"{path.name} may not import {name}"


def test_the_plan_of_grids_needs_no_jax():
    text = (ROOT / "mic" / "grids.py").read_text()
    assert "import jax" not in text
    assert "from jax" not in text


def test_no_exported_name_hides_a_package():
    """`import dpmic_jax.mic.grids as grids` has to find the package."""
    assert dpmic_jax.mic.grids.__name__ == "dpmic_jax.mic.grids"


def test_every_exported_name_is_there():
    """Private ones are imported on first use, so a wrong name would go unnoticed."""
    for name in dpmic_jax.__all__:
        assert getattr(dpmic_jax, name).__module__.startswith("dpmic_jax")
    assert len(set(dpmic_jax.__all__)) == len(dpmic_jax.__all__)
