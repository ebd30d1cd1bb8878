"""No program that is kept between runs holds anything of the data.

A table whose values, codes and names are found nowhere else goes through every command that
compiles, in a process with an empty cache. Then every byte of the cache is looked at.
"""

import csv
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

N = 64
WINDOW = 24  # records in a row: enough to be nobody else's
SITES = ("zq-north", "zq-south", "zq-west")
BOUNDS = """
[columns.zq_dose]
low = 0
high = 1

[columns.zq_age]
low = 0
high = 1

[columns.zq_count]
low = 10000000
high = 20000000

[columns.zq_site]
categories = ["zq-north", "zq-south", "zq-west"]
ordered = true
"""
RUN = """
import json, sys
from click.testing import CliRunner
import numpy as np
import dpmic_jax as dm
from dpmic_jax.cli import main

cache, commands, values = json.load(sys.stdin)
assert dm.enable_compilation_cache(cache) == cache
for words in commands:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, (words, done.output)
dm.pairwise(np.array(values), statistic=dm.MICe(B=12, c=2))
"""


class Case(NamedTuple):
    """A table, in a folder with its bounds."""

    folder: Path
    columns: dict[str, np.ndarray]

    @property
    def numbers(self):
        """The records, each column between 0 and 1."""
        dose, age, count, site = self.columns.values()
        places = [SITES.index(name) for name in site]
        return np.stack([dose, age, count / 1e7 - 1, np.array(places) / 3], axis=1)

    def goes_through(self, cache, *commands):
        """A process that keeps what it compiles in `cache`, and the names of what is there then."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}
        # Two devices, which are named: else so small a table needs no compiled engine.
        environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
        subprocess.run(
            [sys.executable, "-c", RUN],
            input=json.dumps([str(cache), commands, self.numbers.tolist()]),
            env=environment,
            text=True,
            check=True,
        )
        return {path.name for path in cache.iterdir()}


def case(folder, seed):
    rng = np.random.default_rng(seed)
    folder.mkdir()
    columns = {
        "zq_dose": rng.random(N),
        "zq_age": rng.random(N),
        "zq_count": rng.integers(10**7, 2 * 10**7, N),
        "zq_site": rng.choice(SITES, N),
    }
    with open(folder / "zq_table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    (folder / "bounds.toml").write_text(BOUNDS)
    return Case(folder, columns)


def commands(folder):
    """All that compile; a search for a graph last."""
    table, public, run = folder / "zq_table.csv", ("--bounds", folder / "bounds.toml"), folder / "r"
    grids = ("-B", 12, "-c", 2)
    asked = (
        ("screen", table, *public, "--epsilon", 50, *grids, "--devices", 2, "--out", run),
        ("screen", table, *public, "--epsilon", 50, *grids, "--devices", 2, "--ask", "top:2"),
        ("bounds", "learn", table, "--within", public[1], "--epsilon", 50),
        ("test", run / "result.json", table, *public, *grids, "--draws", 9, "--force"),
        ("report", run, "--histogram", "zq_dose,zq_age", "--data", table, *public, "--epsilon", 9),
        ("causal", table, *public, "--epsilon", 5, "--force"),
    )
    return [[str(word) for word in words] for words in asked]


def programs(cache):
    """All that is kept, as it is run."""
    return b"\0".join(content(path.read_bytes()) for path in sorted(cache.iterdir()))


def content(kept):
    if kept.startswith(b"\x28\xb5\x2f\xfd"):  # JAX takes Zstandard where it is installed
        import zstandard

        return zstandard.decompress(kept)
    return zlib.decompress(kept)


def traces(case):
    """What would tell of the data: name -> bytes."""
    found = {text: text.encode() for text in (*case.columns, *SITES, "zq_table")}
    numbers, exact = case.numbers, case.columns["zq_count"]
    for kind in (np.float64, np.float32):
        found |= windows(f"values {kind.__name__}", numbers.astype(kind))
    order = numbers.argsort(axis=0)
    ranks = order.argsort(axis=0) / N
    for name, whole in (("counts", exact[:, None]), ("order", order)):
        for kind in (np.int64, np.int32):
            found |= windows(f"{name} {kind.__name__}", whole.astype(kind))
        found |= {f"{name} varint {i}": varints(column) for i, column in enumerate(whole.T)}
    for parts in range(2, 17):
        for kind in (np.int8, np.int16, np.int32, np.int64, np.float32):
            for name, places in (("bins", numbers), ("ranks", ranks)):
                codes = np.floor(places * parts).astype(kind)
                found |= windows(f"{name} of {parts} {kind.__name__}", codes)
    return found


def windows(name, values):
    """The first records, column by column and record by record."""
    by_column = {f"{name} {i}": column[:WINDOW].tobytes() for i, column in enumerate(values.T)}
    return by_column | {f"{name} by record": values[:WINDOW].tobytes()}


def varints(values):
    """As protocol buffers write whole numbers: seven bits a byte, the lowest first."""
    found = bytearray()
    for value in values[:WINDOW].tolist():
        while value > 127:
            found.append(value % 128 + 128)
            value //= 128
        found.append(value)
    return bytes(found)


def seen(traces, kept):
    return {name for name, trace in traces.items() if trace in kept}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A table that went through every command, and the cache that this left."""
    first, cache = case(tmp_path_factory.mktemp("a") / "zq", 1), tmp_path_factory.mktemp("cache")
    first.goes_through(cache, *commands(first.folder))
    return first, cache


def test_no_kept_program_holds_anything_of_the_data(ran):
    first, cache = ran
    names = {path.name.split("-")[0] for path in cache.iterdir()}
    assert names >= {"jit_count", "jit_optimise", "jit__release"}
    assert seen(traces(first), programs(cache)) == set()


def test_another_table_of_the_same_shape_needs_the_same_programs(ran, tmp_path):
    """What was compiled for the one serves the other, which has no value in common with it.

    But for a search: which tests come next depends on what it has released.
    """
    _, cache = ran
    second, before = case(tmp_path / "zq", 2), {path.name for path in cache.iterdir()}
    assert second.goes_through(cache, *commands(second.folder)[:-1]) == before


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty one, of this process."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = [jax.config.values[name] for name in names]
    for values in ((str(tmp_path / "kept"), 0.0), before):
        for name, value in zip(names, values, strict=True):
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        if values is not before:
            yield tmp_path / "kept"


@pytest.mark.parametrize(
    ("kind", "parts", "caught"),
    [
        (np.float32, 1, "values float32"),
        (np.int8, 5, "bins of 5 int8"),
        (np.int16, 12, "bins of 12 int16"),
        (np.int32, 7, "bins of 7 int8"),  # small ones are written in one byte each
        (np.float32, 3, "bins of 3 float32"),
    ],
)
def test_a_program_that_closes_over_the_data_is_caught(tmp_path, cache, kind, parts, caught):
    made = case(tmp_path / "zq", 1)
    numbers = made.numbers * parts
    values = (numbers if parts == 1 else np.floor(numbers)).astype(kind)
    for closed_over, where in ((values, "by record"), (values[:, 1], "1")):
        compile_with(closed_over)
        assert f"{caught} {where}" in seen(traces(made), programs(cache))


def test_whole_numbers_that_are_closed_over_are_caught(tmp_path, cache):
    made = case(tmp_path / "zq", 1)
    compile_with(made.columns["zq_count"].astype(np.int32))
    assert seen(traces(made), programs(cache)) >= {"counts varint 0"}


def compile_with(values):
    constant = jnp.asarray(values)
    jax.jit(lambda x: x + constant)(jnp.zeros_like(constant))


def test_a_program_with_the_name_of_a_column_is_caught(tmp_path, cache):
    def zq_age(x):
        return x + 1

    jax.jit(zq_age)(jnp.ones(3))
    assert seen(traces(case(tmp_path / "zq", 1)), programs(cache)) == {"zq_age"}
