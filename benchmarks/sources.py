"""The memory and the time of a screen of many records, read from a database or from files.

`python -m benchmarks.sources` writes 10^7 records of 12 columns, of four kinds, to a Parquet file,
to a folder of 39, and to a DuckDB database, with `--postgresql URI` also to that database (its
table `benchmark_sources` is replaced), and screens each in a process of its own. It prints the peak
of the memory of the whole process, and checks that the results have the same bits. `--records` sets
another number. It writes `benchmarks/results/sources.json`.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.persons import peak_mb

RESULTS = Path(__file__).parent / "results" / "sources.json"
COLUMNS = 12
BATCH = 2**18


def main() -> None:
    """Print a table of memory and seconds for each source, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10**7)
    parser.add_argument("--postgresql", metavar="URI", help="a database that may be written to")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(screened(*asked.one)))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = {
            name: measured(kind, *where)
            for name, kind, *where in written(Path(folder), asked.records, asked.postgresql)
        }
    print(f"{asked.records} records, {COLUMNS} columns")
    for name, one in found.items():
        print(f"{name:18} {one['memory'] / 1e9:5.2f} GB {one['seconds']:7.1f} s  {one['digest']}")
    if len({one["digest"] for one in found.values()}) > 1:
        raise SystemExit("the results differ")
    shown = {
        "command": "python -m benchmarks.sources",
        "records": asked.records,
        "columns": COLUMNS,
        "sources": found,
    }
    RESULTS.write_text(json.dumps(shown, indent=1) + "\n")


def written(folder: Path, records: int, postgresql: str | None) -> Iterator[tuple[str, ...]]:
    """Write the table to every source; of each its name and the arguments of `screened`."""
    import duckdb
    from pyarrow import parquet

    file, parts, database = folder / "t.parquet", folder / "parts", folder / "t.duckdb"
    parts.mkdir()
    schema = next(batches(1)).schema
    with parquet.ParquetWriter(file, schema) as whole:
        for number, batch in enumerate(batches(records)):
            whole.write_batch(batch)
            with parquet.ParquetWriter(parts / f"{number:04}.parquet", schema) as part:
                part.write_batch(batch)
    with duckdb.connect(database) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM '{file}'")
    yield "Parquet file", "path", str(file), ""
    yield "Parquet folder", "path", str(parts), ""
    yield "polars LazyFrame", "lazy", str(file), ""
    yield "DuckDB", "query", f"duckdb:{database}", "SELECT * FROM t"
    if postgresql is not None:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(postgresql) as connection, connection.cursor() as cursor:
            for number, batch in enumerate(batches(records)):
                mode = "append" if number else "replace"
                cursor.adbc_ingest("benchmark_sources", batch, mode=mode)
            connection.commit()
        yield "PostgreSQL", "query", postgresql, "SELECT * FROM benchmark_sources"


def batches(records: int) -> Iterator[Any]:
    """The records, in batches of Arrow columns: numbers, whole numbers with gaps, texts, flags."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    for start in range(0, records, BATCH):
        n = min(BATCH, records - start)
        base = rng.random(n)
        columns: dict[str, Any] = {}
        for index in range(COLUMNS // 4):
            columns[f"number{index}"] = (base + index * rng.random(n)) / (index + 1)
            columns[f"whole{index}"] = pa.array(rng.integers(0, 100, n), mask=rng.random(n) < 0.1)
            columns[f"text{index}"] = np.array(["ward a", "ward b", "ward c"])[
                rng.integers(3, size=n)
            ]
            columns[f"flag{index}"] = rng.random(n) < base
        yield pa.RecordBatch.from_pydict(columns)


def measured(kind: str, where: str, sql: str) -> dict[str, Any]:
    """Screen a source in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.sources", "--one", kind, where, sql]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def screened(kind: str, where: str, sql: str) -> dict[str, Any]:
    """Screen a source; the peak of this process's memory, seconds, and a digest of the result."""
    import dpmic_jax as dm

    began = time.perf_counter()
    data: Any = where
    if kind == "query":
        data = dm.Query(where, sql)
    elif kind == "lazy":
        import polars as pl

        data = pl.scan_parquet(where)
    bounds: dict[str, Any] = {}
    for index in range(COLUMNS // 4):
        bounds[f"number{index}"] = (0, 1)
        bounds[f"whole{index}"] = (0, 100)
        bounds[f"text{index}"] = dm.Categories(("ward a", "ward b", "ward c"))
        bounds[f"flag{index}"] = dm.Categories((True, False))
    found = dm.screen(data, bounds=bounds, epsilon=1.0, ask=dm.AllPairs(), key=dm.seeded_key(0))
    values = found.distance.tobytes() + found.mic.tobytes()
    return {
        "memory": 2**20 * peak_mb(),
        "seconds": round(time.perf_counter() - began, 1),
        "digest": hashlib.sha256(values).hexdigest()[:12],
    }


if __name__ == "__main__":
    main()
