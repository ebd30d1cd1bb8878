"""How a screen is worked off, and what its table comes in, changes no bit of the result."""

import itertools
from functools import lru_cache

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest
from like_a_gpu import like_a_gpu
from small import BOUNDS, NAMES, STATISTIC, N, columns, same_bits, screened

from dpmic_jax import ReplaceOne
from dpmic_jax.mic import batch
from dpmic_jax.screening import Above, Against, AllPairs, Resources, TopK
from dpmic_jax.screening.planning import plan
from dpmic_jax.screening.tiles import tiling

ASKS = [AllPairs(), TopK(4, selection_fraction=0.7), Above(0.3, 3, selection_fraction=0.7)]
PAIRS = 21


@lru_cache
def expected(ask):
    return screened(ask=ask)


def test_the_seed_is_what_the_bits_depend_on():
    """Or nothing below could fail."""
    assert not same_bits(expected(AllPairs()), screened(seed=2))
    assert same_bits(expected(AllPairs()), screened())


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("tile", [1, 64])  # `expected` has tiles of 7
def test_tiles_of_any_size(ask, tile):
    assert same_bits(screened(ask=ask, resources=Resources(tile=tile)), expected(ask))


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("rows", [7])  # `expected` has all 600 in one
def test_row_batches_of_any_size(ask, rows):
    found = screened(ask=ask, resources=Resources(tile=7, rows=rows))
    assert same_bits(found, expected(ask))


@pytest.mark.parametrize("devices", [1, 4])
def test_any_number_of_devices(devices):
    assert len(jax.devices()) >= devices
    for ask in ASKS:
        found = screened(ask=ask, devices=jax.devices()[:devices])
        assert same_bits(found, expected(ask))


def test_the_programs_of_a_gpu(monkeypatch):
    """Run on a CPU, with the kernels for GPUs interpreted: all tiles of 7 pairs at once."""
    like_a_gpu(monkeypatch, triton=True)
    together, run = [], batch.Scorer.run
    monkeypatch.setattr(
        batch.Scorer, "run", lambda self, pairs: together.append(len(pairs)) or run(self, pairs)
    )
    assert same_bits(screened(devices=jax.devices()[:1]), expected(AllPairs()))
    assert set(together) == {PAIRS}


def test_gaussian_noise_as_well():
    one, other = (
        screened(epsilon=1.0, delta=0.01, resources=Resources(tile=tile)) for tile in (1, 64)
    )
    assert "Gaussian" in one.statement.mechanism
    assert same_bits(one, other)


def wide(n=10_000, copies=4):
    """So many columns and records that 1 MB holds neither their codes nor all counts."""
    return {
        f"{name}{copy}": values
        for copy in range(copies)
        for name, values in columns(n, seed=copy).items()
    }


@pytest.mark.parametrize("ask", [AllPairs(), TopK(4, selection_fraction=0.7)])
def test_a_table_that_streams_past(ask):
    table = wide()
    bounds = {name: BOUNDS[name[0]] for name in table}
    settings = {"bounds": bounds, "ask": ask}
    narrow = Resources(memory=2**20, rows=8192)
    planned = plan(
        names=tuple(table),
        n=10_000,
        ask=ask,
        epsilon=20.0,
        delta=0.0,
        statistic=STATISTIC,
        relation=ReplaceOne(1),
        label="",
    )
    there, past = (
        tiling(planned, list(bounds.values()), resources) for resources in (Resources(), narrow)
    )
    assert (there.streams, past.streams) == (False, True)
    assert past.tiles == past.passes == 6
    assert past.memory <= 2**20 < there.memory
    found = screened(table, resources=narrow, **settings)
    assert same_bits(found, screened(table, resources=Resources(), **settings))


def test_a_table_in_memory_is_held_as_codes_however_few_tiles_there_are():
    """Counts of many pairs in one tile would take more memory than was allowed."""
    planned = plan(
        names=NAMES,
        n=N,
        ask=AllPairs(),
        epsilon=1.0,
        delta=0.0,
        statistic=STATISTIC,
        relation=ReplaceOne(1),
        label="",
    )
    found = tiling(planned, list(BOUNDS.values()), Resources(tile=10**6))
    assert (found.tiles, found.size, found.streams, found.passes) == (1, PAIRS, False, 1)


def flavours(folder):
    """The same values in everything that holds a table; only the array has other names."""
    table = columns()
    whole = {**table, "c": table["c"].astype(np.int64)}
    yield "dictionary", table
    yield "whole numbers", whole
    yield "pandas", pd.DataFrame(table)
    yield "polars", pl.DataFrame(whole)
    yield "arrow", pa.table(whole)
    pyarrow.parquet.write_table(pa.table(whole), folder / "table.parquet", row_group_size=250)
    yield "Parquet", folder / "table.parquet"
    pyarrow.csv.write_csv(pa.table(table), folder / "table.csv")
    yield "CSV", str(folder / "table.csv")
    yield "LazyFrame", pl.DataFrame(whole).lazy()
    yield "dataset", pyarrow.dataset.dataset(pa.table(whole))
    (folder / "parts").mkdir()
    for start in range(0, N, 250):
        part = pa.table(whole).slice(start, 250)
        pyarrow.parquet.write_table(part, folder / "parts" / f"{start}.parquet")
    yield "Parquet folder", folder / "parts"


@pytest.mark.parametrize("ask", ASKS)
def test_whatever_holds_the_table(ask, tmp_path):
    for name, table in flavours(tmp_path):
        assert same_bits(screened(table, ask=ask), expected(ask)), name


@pytest.mark.parametrize("ask", ASKS)
def test_an_array_of_the_same_values(ask):
    """Its columns have other names, and names are in the event: only the rest is the same."""
    names = tuple(f"x{i}" for i in range(len(NAMES)))
    array = np.stack(list(columns().values()), axis=1)
    bounds = dict(zip(names, BOUNDS.values(), strict=True))
    named = screened(dict(zip(names, columns().values(), strict=True)), ask=ask, bounds=bounds)
    assert same_bits(screened(array, ask=ask, bounds=bounds), named)


def test_a_pair_has_the_value_that_its_columns_have_whatever_else_is_asked():
    """Without noise to speak of, all asks agree about a pair."""
    exact = {frozenset(pair[:2]): pair[2] for pair in screened(epsilon=5e4).ranked()}
    assert len(exact) == PAIRS
    strong = set(map(frozenset, itertools.combinations("adfg", 2)))
    for ask in (
        Against("d"),
        TopK(6, selection_fraction=0.7),
        Above(0.5, 6, selection_fraction=0.7),
    ):
        found = {frozenset(pair[:2]): pair[2] for pair in screened(ask=ask, epsilon=5e4).ranked()}
        for pair, mic in found.items():
            assert mic == pytest.approx(exact[pair], abs=2e-3)
        if isinstance(ask, TopK | Above):
            assert found.keys() == strong
