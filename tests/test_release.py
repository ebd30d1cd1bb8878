"""What a new user meets first: the version, an import without work, extras that are missing."""

import re
import subprocess
import sys

import pytest

import dpmic_jax

COUNT_COMPILATIONS = """
import jax
compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: compiled.append(event) if "backend_compile" in event else None
)
import dpmic_jax, dpmic_jax.cli
for name in dpmic_jax.__all__:
    getattr(dpmic_jax, name)
print(len(compiled))
jax.jit(lambda x: x + 1)(1)
print(len(compiled))
"""
# What asks for a package, and the extra that has it.
EXTRAS = {
    "files": ("pyarrow", "import dpmic_jax.data.source.files"),
    "plot": ("matplotlib", "from dpmic_jax.paper.figures import _figure; _figure(1, 1)"),
    "sklearn": ("sklearn", "import dpmic_jax.sklearn"),
    "dask": ("distributed", "from dpmic_jax.cli.screen import _client; _client('x')"),
    "accounting": ("dp_accounting", "from dpmic_jax.dp.accounting.composition import pld; pld([])"),
    "causal": ("networkx", "from dpmic_jax.causal.result import _networkx; _networkx()"),
}


def python(*words):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_module_is_the_command():
    assert dpmic_jax.__version__ in python("-m", "dpmic_jax", "--version")


def test_an_import_compiles_nothing():
    """The second number shows that compilations are seen."""
    before, after = map(int, python("-c", COUNT_COMPILATIONS).split())
    assert (before, after > 0) == (0, True)


def test_the_command_listens_before_jax_is_imported():
    """And who asks for its help does not wait for it: names are imported when they are used."""
    program = "import sys, {}; print(sorted({{'jax', 'numpy', 'click'}} & set(sys.modules)))"
    assert python("-c", program.format("dpmic_jax.__main__")) == "[]\n"
    assert python("-c", program.format("dpmic_jax.cli")) == "['click']\n"
    assert python("-c", program.format("dpmic_jax.mic.pairwise")) == "['jax', 'numpy']\n"


@pytest.fixture(scope="module")
def refusals():
    """What is said of each extra, in a process that has none of their packages."""
    lines = ["import sys"]
    lines += [f"sys.modules[{package!r}] = None" for package, _ in EXTRAS.values()]
    for extra, (_, use) in EXTRAS.items():
        lines += ["try:", f"    {use}", "except ImportError as error:"]
        lines += [f"    print({extra!r}, error)"]
    return dict(line.split(" ", 1) for line in python("-c", "\n".join(lines)).splitlines())


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_package_is_refused_with_the_name_of_its_extra(refusals, extra):
    assert re.search(rf"pip install ['\"]dpmic_jax\[{extra}\]['\"]", refusals[extra])
