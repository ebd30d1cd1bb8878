"""Tables in CSV and Parquet files, with only a few batches in memory.

Columns of a CSV file are read as text. With a type that is inferred or forced, a single value could
make the file fail. So only the structure of a file can be refused.
"""

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
except ImportError:
    raise ImportError('reading files needs pyarrow: pip install "dpmic_jax[files]"') from None

from dpmic_jax.data.schema import Schema
from dpmic_jax.data.source.arrow_source import ArrowBatches, ArrowSource
from dpmic_jax.data.source.parquet import ParquetSource, is_several, parquet_files, parquet_schema

# Texts that mean a missing value in a CSV file.
NULLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")
# Bytes that are parsed at a time.
BLOCK = 2**20
# Largest record, in bytes: pyarrow counts the bytes of a block in 31 bits.
LONGEST = 2**30

_PROBLEMS = (pa.ArrowException, OSError, ValueError, LookupError, TypeError)


class CSVSource(ArrowSource):
    """A table in a CSV file: UTF-8, commas between values, a header with the names.

    Names and screened columns have to be UTF-8 in the whole file; ignored columns need not be. A
    record may have up to `LONGEST` bytes: blocks grow until the longest one fits, so whether a file
    can be read does not depend on where in a block a record begins.
    """

    _nulls = NULLS
    _problems = _PROBLEMS

    def __init__(self, schema: Schema, path: Path):
        # Absolute, because other processes may have another working directory.
        self.path = self._file = path.absolute()
        super().__init__(schema, _header(path), str(path))

    def _read(self, names: Sequence[str]) -> ArrowBatches:
        return self._parse(names, [])

    def _parse(self, names: Sequence[str], expected: list[int]) -> ArrowBatches:
        """Record batches; `expected` gets the right number of values if a line has another."""
        for batch in self._records_of(names, expected):
            yield _as_texts(batch)

    def _records_of(self, names: Sequence[str], expected: list[int]) -> ArrowBatches:
        """Record batches with columns of bytes.

        pyarrow fails if a record ends neither in the block where it begins nor in the next one.
        Then the file is read again in blocks twice as long, without the records already yielded.
        """
        block, given = BLOCK, 0
        while True:
            try:
                for batch in _without_first(self._blocks(names, block, expected), given):
                    given += batch.num_rows
                    yield batch
                return
            except pa.ArrowException:
                # Larger blocks do not help a line of another length, nor a file in one block.
                if expected or block >= min(self._file.stat().st_size, LONGEST):
                    raise
            block *= 2

    def _blocks(self, names: Sequence[str], block: int, expected: list[int]) -> ArrowBatches:
        def refuse(row: Any) -> str:
            expected.append(row.expected_columns)
            return "error"

        with arrow_csv.open_csv(
            self._file,
            read_options=arrow_csv.ReadOptions(block_size=block, use_threads=False),
            # A quoted value may contain line ends, also in ignored columns.
            parse_options=arrow_csv.ParseOptions(
                newlines_in_values=True,
                # In a table of one column, an empty line is a record with a missing value.
                ignore_empty_lines=len(self.names) + len(self.schema.ignored) > 1,
                invalid_row_handler=refuse,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(names),
                column_types={name: pa.binary() for name in names},
            ),
        ) as reader:
            yield from reader

    def _broken(self) -> Exception:
        expected: list[int] = []
        problem = self._problem(expected)
        if problem is None:
            return ValueError(f"{self._file} changed while it was read; start again")
        if not _has_records(self._file):  # pyarrow refuses a header without a line end
            return ValueError(f"{self._file} has a header and no records")
        if expected:
            return ValueError(
                f"{self._file} has a line without the {expected[0]} values of its header; quote "
                "values that contain commas"
            )
        if issubclass(problem, UnicodeError):
            return _not_utf8(self._file)
        return ValueError(
            f"{self._file} is not a valid CSV file, or a record has more than {LONGEST} bytes; "
            "write it again"
        )

    def _problem(self, expected: list[int]) -> type[BaseException] | None:
        try:
            for _ in self._parse(self.names, expected):
                pass
        except _PROBLEMS as error:
            return type(error)
        return None


_SOURCES = {".csv": CSVSource, ".parquet": ParquetSource}


def open_file(path: str | os.PathLike[str], schema: Schema) -> ArrowSource:
    """The source of a .csv file, or of one or several .parquet files."""
    return _SOURCES[_kind(Path(path))](schema, Path(path))


def file_schema(path: str | os.PathLike[str]) -> Any:
    """The names and types of all columns of a file; CSV files have no types."""
    path = Path(path)
    if _kind(path) == ".parquet":
        return parquet_schema(parquet_files(path)[0])
    return pa.schema([(name, pa.null()) for name in _header(path)])


def header_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names of all columns of a file, if they are distinct and do not look like a record."""
    names, path = tuple(file_schema(path).names), Path(path)
    if len(names) == 1 and _kind(path) == ".csv" and {";", "\t"} & set(names[0]):
        raise ValueError(
            f"{path} has semicolons or tabs in its first line, and no commas; save it with commas "
            "between values"
        )
    for place, name in enumerate(names, 1):
        # Error messages show nothing of the line, because it may be a record.
        if not name.strip():
            raise ValueError(
                f"column {place} of {path} has no name; write the names of all columns into the "
                "first line (pandas: to_csv(index=False))"
            )
        if _kind(path) == ".csv" and _is_number(name):
            raise ValueError(
                f"{path} does not begin with a header: column {place} of its first line is a "
                "number; write the column names into the first line"
            )
        if (first := names.index(name) + 1) < place:
            raise ValueError(
                f"columns {first} and {place} of {path} have the same name; rename one"
            )
    return names


def _without_first(batches: ArrowBatches, count: int) -> ArrowBatches:
    """The same batches without the first `count` records."""
    for batch in batches:
        left = min(count, batch.num_rows)
        count -= left
        yield batch.slice(left)


def _as_texts(batch: Any) -> Any:
    """The same batch with columns of text; raises a `UnicodeError` if one is not UTF-8."""
    try:
        return batch.cast(pa.schema([(name, pa.string()) for name in batch.schema.names]))
    except pa.ArrowInvalid:
        pass
    # Its own type: pyarrow raises one type for everything that may be wrong with a file.
    raise UnicodeError


def _kind(path: Path) -> str:
    if is_several(path):
        return ".parquet"
    kind = path.suffix.lower()
    if kind not in _SOURCES:
        raise ValueError(f"expected a .csv or .parquet file, got {str(path)!r}; convert it")
    if not path.exists():
        raise FileNotFoundError(f"no file at {path}")
    return kind


def _header(path: Path) -> list[str]:
    """The names in the first record. What follows may be decoded, but is not used."""
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            names = next(csv.reader(file), None)
    except csv.Error:
        names = []
    if names is None:
        raise ValueError(f"{path} is empty; expected a header with the column names")
    if any("\udc80" <= letter <= "\udcff" for letter in "".join(names)):
        raise _not_utf8(path)
    if all(map(_is_number, names)):
        raise ValueError(
            f"{path} does not begin with a header; write the column names into the first line"
        )
    return names


def _not_utf8(path: Path) -> ValueError:
    return ValueError(f"{path} is not UTF-8 text; save it as UTF-8")


def _is_number(text: str) -> bool:
    try:
        float(text or "0")
    except ValueError:
        return False
    return True


def _has_records(path: Path) -> bool:
    with path.open("rb") as file:
        file.readline()
        return bool(file.readline().strip())
