"""The notebooks run, in small sizes, and are committed with the outputs of a run in full."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import nbformat
import numpy as np
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbclient import NotebookClient

import dpmic_jax
from dpmic_jax.paper.collections import NOT_PERFORMANCE

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# What README and docs speak of. Names of the package itself are those of its `__all__`.
PUBLIC = {f"dpmic_jax.{name}" for name in ("data", "dp", "inference", "mechanisms", "mic", "paper")}
LARGEST = 400_000  # bytes of a file
HANGS = 3600  # seconds; no verdict depends on how long a cell takes

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# These are run by default; the others take from 20 seconds to two minutes, even in small sizes.
SHORT = {"mic_or_mi", "quickstart"}
each_run = pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in SHORT else pytest.mark.slow)
        for path in NOTEBOOKS
    ],
)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def kinds(cell):
    """What a cell shows: text of a stream, pictures, representations of a value."""
    return {
        kind
        for output in cell.outputs
        for kind in ([output.name] if output.output_type == "stream" else output.get("data", ()))
    }


def text(output):
    data = output.get("data", {})
    return "".join((output.get("text", ""), data.get("text/plain", ""), data.get("text/html", "")))


def tree(notebook):
    plain = TransformerManager().transform_cell  # a magic becomes a call
    return ast.parse("\n".join(plain(cell.source) for cell in code_cells(notebook)))


def imports(program):
    """Each imported module, and each name taken from it; the name is None for the module."""
    for node in ast.walk(program):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                ("." * node.level + (node.module or ""), alias.name) for alias in node.names
            )


def installed():
    """What `pip install ".[notebooks]"` names, IPython with it, and the standard library."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["notebooks"]
    return {re.match(r"[\w-]+", one)[0] for one in wanted} | {"IPython"} | sys.stdlib_module_names


@pytest.fixture
def data(tmp_path):
    """A folder with made-up files that look like the paper's real data."""
    rng = np.random.default_rng(5)
    folder = tmp_path / "data"
    folder.mkdir()
    games = rng.integers(10, 162, 60)
    hits = rng.binomial(4 * games, 0.26)
    performance = {"G": games, "H": hits, "AVG": (hits / (4 * games)).round(3), "TP": 0 * games}
    performance |= {f"D_{kind}": rng.normal(0, 5, 60).round(1) for kind in range(7)}
    rows = [
        (f"Player {i}", i + 1, 400_000, i % 2, i % 9 + 1, *(v[i] for v in performance.values()))
        for i in range(60)
    ]
    write_csv(folder / "baseball.csv", [(*NOT_PERFORMANCE, *performance), *rows])
    times = range(40, 270, 10)
    genes = np.sin(np.array(times) / 30 + rng.random((60, 1))) + rng.normal(0, 0.5, (60, 23))
    rows = [(f"GENE{i}", *values) for i, values in enumerate(genes.round(3))]
    write_csv(folder / "Spellman.csv", [("time", *times), *rows])
    return folder


def write_csv(path, rows):
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


def test_there_are_notebooks():
    assert NOTEBOOKS


@each_run
def test_runs_in_small_sizes_without_errors_or_warnings(path, data, tmp_path, monkeypatch):
    monkeypatch.setenv("DPMIC_NOTEBOOKS", "small")
    monkeypatch.setenv("DPMIC_DATA", str(data))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))  # nobody's own settings
    monkeypatch.delenv("MPLBACKEND", raising=False)  # figures go into the notebook
    monkeypatch.delenv("XLA_FLAGS", raising=False)  # several devices are for other tests
    committed = nbformat.read(path, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    folder = tmp_path / "run"
    folder.mkdir()
    resources = {"metadata": {"path": str(folder)}}
    waits = {"timeout": HANGS, "startup_timeout": HANGS}
    NotebookClient(notebook, resources=resources, **waits).execute()
    for ran, kept in zip(code_cells(notebook), code_cells(committed), strict=True):
        assert "stderr" not in kinds(ran), [text(output) for output in ran.outputs]
        assert kinds(ran) <= kinds(kept), f"committed without these outputs: {ran.source}"


@every_notebook
def test_is_committed_as_it_was_run(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any("DPMIC_NOTEBOOKS" in cell.source for cell in cells[:3]), "sizes are near the top"
    outputs = [output for cell in cells for output in cell.outputs]
    assert outputs
    for output in outputs:
        assert output.output_type != "error"
        assert output.get("name") != "stderr"
        assert not re.search(r"(?<![\w.])/(home|root|tmp|var|Users)/", text(output))
    assert path.stat().st_size < LARGEST


@every_notebook
def test_imports_only_what_is_public(path):
    program = tree(nbformat.read(path, as_version=4))
    for module, name in imports(program):
        inside = any(module == public or module.startswith(f"{public}.") for public in PUBLIC)
        if module == "dpmic_jax":
            public = name is None or name in dpmic_jax.__all__ or f"dpmic_jax.{name}" in PUBLIC
        else:
            public = inside or module.split(".")[0] in installed()
        assert public, f"{module} {name or ''}"
        assert not re.search(r"\b_", f"{module}.{name or ''}"), f"{module} {name or ''}"
    for node in ast.walk(program):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("dm", "dpmic_jax"):
            packages = {public.split(".")[1] for public in PUBLIC}
            assert node.attr in packages.union(dpmic_jax.__all__)
