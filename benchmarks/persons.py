"""Time and memory of reading a table in which persons have many records.

`python -m benchmarks.persons` writes a Parquet file of 10^7 records and ten columns of 10^6
persons, whose numbers of records are geometric, and reads it with one and with three records a
person, ids as numbers and as texts; each in a process of its own. It prints the CPU seconds of each
stage, those of the same table without persons, and the most memory of the process, of which some is
there after its imports. `--records` and `--persons` choose a smaller table. It writes
`benchmarks/results/persons.json`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmic_jax.data.schema import Schema, schema_of
from dpmic_jax.data.source import Source, open_source

RESULTS = Path(__file__).parent / "results" / "persons.json"
GENERATED = 2**18  # records at a time
NAMES = tuple(f"c{i}" for i in range(10))
CASES = {"no persons": (0, "id"), "r = 1": (1, "id"), "r = 3": (3, "id"), "texts": (1, "text")}


def write_table(path: Path, records: int, persons: int) -> None:
    """Write columns of numbers, an id of every record, and the same as a text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    chances = np.cumsum(rng.exponential(size=persons))
    for start in range(0, records, GENERATED):
        n = min(GENERATED, records - start)
        ids = np.searchsorted(chances, rng.random(n) * chances[-1])
        columns = dict(zip(NAMES, rng.random((len(NAMES), n)), strict=True))
        texts = np.char.add("P-", ids.astype(str))
        batch = pa.table({**columns, "id": ids, "text": texts})
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_table(batch)
    if writer:
        writer.close()


def peak_mb() -> int:
    """The most memory of this process; `getrusage` would count what its parent had."""
    (line,) = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1]) // 1024


def seconds(act: Callable[[], Any]) -> float:
    began = time.process_time()
    act()
    return round(time.process_time() - began, 1)


def read(source: Source) -> None:
    for _ in source.batches(2**16):
        pass


def schema(each: int, person: str) -> Schema:
    both = replace(schema_of(dict.fromkeys(NAMES, (0.0, 1.0))), ignored=("id", "text"))
    if not each:
        return both
    ignored = tuple({"id", "text"} - {person})
    return replace(both, ignored=ignored, person=person, records_per_person=each)


def measured(path: Path, case: str) -> dict[str, Any]:
    """Each stage of reading in turn: counting, the draw with the first reading, and reading."""
    each, person = CASES[case]
    source, before = open_source(path, schema(each, person)), peak_mb()
    found = {"count": seconds(source.validate)}
    keyed = source.keyed(bytes(32))
    return {
        "case": case,
        "n": source.validate(),
        **found,
        "draw and read": seconds(lambda: read(keyed)),
        "read again": seconds(lambda: read(keyed)),
        "MB at the start": before,
        "peak MB": peak_mb(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=10**7)
    parser.add_argument("--persons", type=int, default=10**6)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measured(arguments.table, arguments.case)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write_table(path, arguments.records, arguments.persons)
        for case in CASES:
            command = [sys.executable, "-m", "benchmarks.persons", "--case", case]
            done = subprocess.run(
                [*command, "--table", str(path)], check=True, capture_output=True, text=True
            )
            rows.append(json.loads(done.stdout))
            print(rows[-1], flush=True)
    content = {"records": arguments.records, "persons": arguments.persons, "cases": rows}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
