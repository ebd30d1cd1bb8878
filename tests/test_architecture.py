"""Who may import whom."""

import ast
from importlib import import_module
from pathlib import Path

import dpmic_jax

ROOT = Path(dpmic_jax.__file__).parent
MAY_IMPORT = {
    "mic": {"mic"},
    "compilation_cache": set(),
    "demo": {"mic"},
    "table": {"mic"},
    "pairs": {"mic", "table"},
    "runs": {"runs", "dp", "schema"},
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
        "runs",
        "schema",
        "sensitivity",
        "source",
        "table",
        "table_2",
        "tuned",
    },
    "schema": {"schema", "mic"},
    "source": {"source", "schema", "mic", "table"},
    "results": {"results", "dp", "runs"},
    "screening": {
        "",
        "screening",
        "mechanisms",
        "mic",
        "dp",
        "runs",
        "sensitivity",
        "table",
        "tuned",
        "schema",
        "source",
        "results",
    },
    "causal": {"causal", "mic", "dp", "results", "runs", "schema", "sensitivity", "source"},
    "inference": {"inference", "mic", "dp", "results", "source", "table"},
    "paper": {
        *("paper", "mechanisms", "mic", "dp", "screening", "sensitivity", "table", "table_2"),
        "tuned",
    },
    "cli": {
        "",
        "causal",
        "cli",
        "demo",
        "dp",
        "inference",
        "paper",
        "results",
        "runs",
        "schema",
        "screening",
        "source",
        "table",
        "tuned",
    },
    "__main__": {"cli", "runs"},
    "minepy": {"minepy", "mic"},
    "sklearn": {
        "sklearn",
        "dp",
        "mic",
        "pairs",
        "results",
        "runs",
        "schema",
        "screening",
        "source",
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
    """They are imported on first use, so a wrong name would go unnoticed."""
    for name in dpmic_jax.__all__:
        assert getattr(dpmic_jax, name).__module__.startswith("dpmic_jax")
    assert len(set(dpmic_jax.__all__)) == len(dpmic_jax.__all__)
    assert dir(dpmic_jax) == sorted(dpmic_jax.__all__)


def test_no_exported_name_is_a_module():
    """Whichever of the two was imported last would be found under the name."""
    assert not {path.stem for path in ROOT.iterdir()} & set(dpmic_jax.__all__)


def test_type_checkers_find_the_names_where_they_are():
    (block,) = (
        node
        for node in ast.parse((ROOT / "__init__.py").read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    found = {alias.name: node.module for node in block.body for alias in node.names}
    assert sorted(found) == sorted(dpmic_jax.__all__)
    for name, module in found.items():
        assert getattr(import_module(module), name) is getattr(dpmic_jax, name)
