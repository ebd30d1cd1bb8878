"""A result as CSV and Parquet files, its statement with it."""

import json
import os
from typing import TYPE_CHECKING, Any

from dpmic_jax.runs.atomic_write import write

if TYPE_CHECKING:
    from dpmic_jax.results.screen_result import ScreenResult

LIMITS = (
    "95 %, noise only: each covers the value of MICr of its pair on these records, not sampling"
)
_METADATA = b"dpmic_jax"


def header(result: "ScreenResult") -> dict[str, Any]:
    """All of a result but its rows, as JSON can hold it."""
    return {
        "privacy": result.statement.to_dict(),
        "ask": result.ask,
        "candidates": result.candidates,
        "noise_sd": result.noise_sd,
        "half_width": result.half_width,
        "independence": result.dependence_threshold,
        "limits": LIMITS,
        "names": list(result.names),
    }


def write_text(path: str | os.PathLike[str], text: str) -> None:
    content = text.encode()
    write(path, lambda file: file.write(content))


def to_csv(result: "ScreenResult", path: str | os.PathLike[str]) -> None:
    comments = (
        f"# privacy: {result.statement.text()}",
        f"# limits: {LIMITS}",
        f"# dpmic_jax: {json.dumps(header(result))}",
    )
    columns = result.columns()
    quoted = {name: _quoted(name) for name in result.names}
    numbers = [columns[name].tolist() for name in ("mic", "noise_sd", "lower", "upper")]
    # Not csv.writer: it writes True where polars and R want true, or quotes it.
    texts = (
        [quoted[name] for name in columns["x"]],
        [quoted[name] for name in columns["y"]],
        *(map(repr, column) for column in numbers),
        ("true" if above else "false" for above in columns["dependent"]),
    )
    lines = map(",".join, zip(*texts, strict=True))
    write_text(path, "\n".join((*comments, ",".join(columns), *lines)) + "\n")


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def to_parquet(result: "ScreenResult", path: str | os.PathLike[str]) -> None:
    arrow, parquet = _pyarrow("to_parquet")
    metadata = {_METADATA: json.dumps(header(result))}
    frame = arrow.table(result.columns()).replace_schema_metadata(metadata)
    write(path, lambda file: parquet.write_table(frame, file))


def read_parquet(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the columns x, y and mic."""
    _, parquet = _pyarrow("from_parquet")
    frame = parquet.read_table(path)
    metadata = frame.schema.metadata or {}
    if _METADATA not in metadata:
        raise ValueError("expected a Parquet file that ScreenResult.to_parquet wrote")
    return json.loads(metadata[_METADATA]), frame.select(["x", "y", "mic"]).to_pydict()


def _pyarrow(needed_by: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            f"{needed_by} needs pyarrow: pip install 'dpmic_jax[files]', or use JSON"
        ) from None
    return pyarrow, pyarrow.parquet
