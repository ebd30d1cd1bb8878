"""Tables in Parquet files: one file, a folder of files, or all files that a pattern matches."""

import glob
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from dpmic_jax.data.schema import Rule, Schema
from dpmic_jax.data.source.arrow import TYPED, check_type, coded
from dpmic_jax.data.source.arrow_source import PIECE, ArrowBatches, ArrowSource

# Bytes of a column that are read at a time.
BLOCK = 2**20

_PROBLEMS = (pa.ArrowException, OSError, ValueError, LookupError, TypeError)


class ParquetSource(ArrowSource):
    """A table in Parquet files, which are opened again for every pass."""

    _problems = _PROBLEMS

    def __init__(self, schema: Schema, path: Path):
        # Absolute, because other processes may have another working directory.
        self.path = self._path = path.absolute()
        self._files = parquet_files(self._path)
        kinds = [parquet_schema(file) for file in self._files]
        _check_names(self._files, kinds)
        super().__init__(schema, kinds[0].names, str(path))
        for name, rule in zip(self.names, self.rules, strict=True):
            _check_types(name, rule, self._files, [one.field(name).type for one in kinds])

    def identity(self) -> list[str | int]:
        """The path; and of several files a digest of their names and times."""
        if self._files == [self._path]:
            return super().identity()
        times = [[os.fspath(file.resolve()), file.stat().st_mtime_ns] for file in self._files]
        return [str(self._path), hashlib.sha256(json.dumps(times).encode()).hexdigest()]

    def _read(self, names: Sequence[str]) -> ArrowBatches:
        for path in self._files:
            # With a buffer, columns are read by pages instead of whole row groups.
            with parquet.ParquetFile(path, buffer_size=BLOCK, pre_buffer=False) as file:
                yield from file.iter_batches(PIECE, columns=list(names))

    def _broken(self) -> Exception:
        if self._files == [self._path]:
            return _not_parquet(self._path)
        return ValueError(f"a file in {self._path} is damaged; write it again")


def is_several(path: Path) -> bool:
    """Whether a path is a folder or a pattern such as data/*.parquet, not a file."""
    return path.is_dir() or (glob.has_magic(str(path)) and not path.exists())


def parquet_files(path: Path) -> list[Path]:
    """The Parquet files of a path, in the order of their names."""
    if not is_several(path):
        return [path]
    if path.is_dir():
        inner = [one.name for one in path.iterdir() if one.is_dir() and _is_data(one)]
        if inner:
            raise ValueError(
                f"{path} has folders in it; pass the pattern {path / '**' / '*.parquet'} to read "
                "the files in them, too. What names of folders say (year=2020) is not read: for "
                "that pass a pyarrow dataset or a DuckDB query"
            )
        found = [one for one in path.iterdir() if _is_data(one)]
    else:
        found = [one for one in map(Path, glob.glob(str(path), recursive=True)) if one.is_file()]
        if other := [one for one in found if one.suffix.lower() != ".parquet"]:
            raise ValueError(f"expected {path} to match .parquet files, got {other[0].name!r}")
    if not (files := sorted(one for one in found if one.suffix.lower() == ".parquet")):
        raise FileNotFoundError(
            f"no .parquet file at {path}; pass one file with the whole table, or a folder or "
            "pattern of .parquet files"
        )
    return files


def parquet_schema(path: Path) -> Any:
    """The names and types of a Parquet file."""
    try:
        return parquet.read_schema(path)
    except _PROBLEMS:
        pass
    raise _not_parquet(path)


def _is_data(path: Path) -> bool:
    return not path.name.startswith(("_", "."))  # as other programs name what is no data


def _check_names(files: Sequence[Path], kinds: Sequence[Any]) -> None:
    for file, kind in zip(files, kinds, strict=True):
        if set(kind.names) != set(kinds[0].names) or len(kind.names) != len(kinds[0].names):
            raise ValueError(
                f"{files[0]} and {file} have different columns; write them with the same ones"
            )


def _check_types(name: str, rule: Rule, files: Sequence[Path], kinds: Sequence[Any]) -> None:
    """Refuse a column that does not fit its rule, or is of shorter floats in some files only.

    Types may differ otherwise, as in pandas, where whole numbers become floats if one is missing.
    """
    first = None
    for file, kind in zip(files, kinds, strict=True):
        check_type(kind, rule, name)
        dtype = coded(pa.array([], kind), rule, TYPED).dtype
        first = first or dtype
        if dtype != first:
            raise TypeError(
                f"column {name!r} has floats of other lengths in {files[0]} and {file}; write them "
                "with the same types"
            )


def _not_parquet(path: Path) -> ValueError:
    return ValueError(f"{path} is damaged or not a Parquet file; write it again")
