"""Export of a result to CSV and Parquet files, with its privacy statement."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmic_jax.dp.files import replace

if TYPE_CHECKING:
    from dpmic_jax.results.screen_result import ScreenResult

# What the limits of a row cover, for a MICr with noise and for an estimate.
LIMITS = (
    "95 %, noise only: each covers the value of MICr of its pair on these records, not sampling"
)
ESTIMATED = (
    "95 %: each covers the MIC of its pair's distribution, by noise, sampling and the error of the "
    "estimate from the distance"
)
_METADATA = b"dpmic_jax"


def header(result: "ScreenResult") -> dict[str, Any]:
    """Everything in a result except its rows, as a JSON object."""
    return {
        "privacy": result.statement.to_dict(),
        "ask": result.ask,
        "candidates": result.candidates,
        "decided_by": "distance",
        "dependence_threshold": result.dependence_threshold,
        "distance_noise_sd": result.distance_noise_sd,
        "noise_sd": result.noise_sd,
        "own": dict(result.own),
        "own_half_width": result.own_half_width,
        "limits": limits(result),
        "names": list(result.names),
    }


def limits(result: "ScreenResult") -> str:
    """What the limits of MIC in a result cover."""
    return ESTIMATED if result.noise_sd is None else LIMITS


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically."""
    content = text.encode()
    replace(path, lambda file: file.write(content))


def to_csv(result: "ScreenResult", path: str | os.PathLike[str]) -> None:
    """Write the rows, and the rest into a file beside them: see `ScreenResult.to_csv`."""
    # First, so that no rows are there without their statement.
    write_text(statement_path(path), statement_text(result))
    write_text(path, csv_text(result))


def statement_path(path: str | os.PathLike[str]) -> Path:
    """The file beside a CSV file that has its privacy statement."""
    return Path(path).with_suffix(".privacy.json")


def statement_text(result: "ScreenResult") -> str:
    """The statement in words, and everything in a result except its rows, as JSON."""
    content = {"statement": result.statement.text(), **header(result)}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def csv_text(result: "ScreenResult") -> str:
    """The rows as CSV; the last column repeats the cost, as rows are copied out of files."""
    columns = result.columns()
    quoted = {name: _quoted(name) for name in result.names}
    texts_only = ("x", "y", "dependent", "decided_by")
    numbers = [each.tolist() for name, each in columns.items() if name not in texts_only]
    # csv.writer would write True, which polars and R do not read as a boolean, or quote it.
    texts = (
        [quoted[name] for name in columns["x"]],
        [quoted[name] for name in columns["y"]],
        *(map(repr, column) for column in numbers),
        ("true" if above else "false" for above in columns["dependent"]),
        columns["decided_by"],
        [_quoted(result.statement.short)] * len(columns["x"]),
    )
    lines = map(",".join, zip(*texts, strict=True))
    return "\n".join((",".join((*columns, "privacy")), *lines)) + "\n"


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def to_parquet(result: "ScreenResult", path: str | os.PathLike[str]) -> None:
    """Write the rows as Parquet, and the rest into the metadata of its schema."""
    arrow, parquet = _pyarrow("to_parquet")
    metadata = {_METADATA: json.dumps(header(result))}
    frame = arrow.table(result.columns()).replace_schema_metadata(metadata)
    replace(path, lambda file: parquet.write_table(frame, file))


def read_parquet(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header, and the columns, of a file that `to_parquet` wrote."""
    _, parquet = _pyarrow("from_parquet")
    frame = parquet.read_table(path)
    metadata = frame.schema.metadata or {}
    if _METADATA not in metadata:
        raise ValueError("expected a Parquet file that ScreenResult.to_parquet wrote")
    return json.loads(metadata[_METADATA]), frame.to_pydict()


def _pyarrow(needed_by: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            f"{needed_by} needs pyarrow: pip install 'dpmic_jax[files]', or use JSON"
        ) from None
    return pyarrow, pyarrow.parquet
