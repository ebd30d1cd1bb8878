"""Tables in CSV and Parquet files, of which no more than a few batches are in memory.

Columns of a CSV file are read as text, whatever they hold: a type that is inferred from a batch, or
forced upon it, would make a verdict of a value. So only the structure of a file can be refused.

What pyarrow says of a bad file quotes it. So none of its errors gets out: each is replaced by one
that names the file or the column, and that is raised where nothing of the first is left.
"""

import csv
import os
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

try:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as parquet
except ImportError:
    raise ImportError('reading files takes pyarrow: pip install "dpmic_jax[files]"') from None

from dpmic_jax.data.schema import Schema
from dpmic_jax.data.source.arrow import check_type, coded
from dpmic_jax.data.source.base import Batch, Source
from dpmic_jax.data.source.tally import NOTHING, Tally, tally

# What stands for a missing value in a CSV file.
NULLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")
# Bytes of a CSV file parsed at a time, and of a column of a Parquet file read at a time.
BLOCK = 2**20
# Bytes of a record of a CSV file: pyarrow counts blocks, and texts of a block, in 31 bits.
LONGEST = 2**30
# Records of a Parquet file decoded at a time.
PIECE = 2**16

_PROBLEMS = (pa.ArrowException, OSError, ValueError, LookupError, TypeError)

ArrowBatches = Generator[Any, None, None]


class FileSource(Source):
    """A table in a file, which is opened anew for every pass."""

    _nulls: tuple[str, ...] = ()

    def __init__(self, schema: Schema, path: Path):
        # Absolute, for other processes may work elsewhere.
        self.path = self._file = path.absolute()
        super().__init__(schema, file_names(path), str(path))

    @abstractmethod
    def _read(self, names: Sequence[str]) -> ArrowBatches:
        """Record batches that have at least these columns; raises pyarrow's errors."""

    @abstractmethod
    def _broken(self) -> Exception:
        """What is wrong with a file that pyarrow could not read."""

    def _batches(self) -> Iterator[Any]:
        return _quietly(self._read(self.names), self._broken)

    def _count(self) -> int:
        return sum(batch.num_rows for batch in self._batches())

    def _pieces(self) -> Iterator[Batch]:
        for batch in self._batches():
            yield tuple(
                coded(values, rule, self._nulls)
                for values, rule in zip(self._columns(batch), self.rules, strict=True)
            )

    def _columns(self, batch: Any) -> list[Any]:
        """The screened columns of a batch, as arrow holds them."""
        return [batch.column(batch.schema.get_field_index(name)) for name in self.names]

    def tally(self) -> dict[str, Tally]:
        """How many cells of each column are missing, unreadable or clipped. Not private."""
        totals = [NOTHING] * len(self.names)
        for batch in self._batches():
            columns = zip(self._columns(batch), self.rules, strict=True)
            found = [tally(values, rule, self._nulls) for values, rule in columns]
            totals = [one + other for one, other in zip(totals, found, strict=True)]
        return dict(zip(self.names, totals, strict=True))


class ParquetSource(FileSource):
    """A table in a Parquet file."""

    def __init__(self, schema: Schema, path: Path):
        super().__init__(schema, path)
        types = _parquet_schema(path)
        for name, rule in zip(self.names, self.rules, strict=True):
            check_type(types.field(name).type, rule, name)

    def _read(self, names: Sequence[str]) -> ArrowBatches:
        # With a buffer, columns are read page by page and not a whole row group at once.
        with parquet.ParquetFile(self._file, buffer_size=BLOCK, pre_buffer=False) as file:
            yield from file.iter_batches(PIECE, columns=list(names))

    def _broken(self) -> Exception:
        return _not_parquet(self._file)


class CSVSource(FileSource):
    """A table in a CSV file: UTF-8, commas between values, a header with the names.

    Names and screened columns have to be UTF-8, wherever in the file; ignored columns may be
    anything. A record may be as long as `LONGEST`: blocks grow until the longest one fits, so that
    where a record begins in a block is no verdict on it.
    """

    _nulls = NULLS

    def _read(self, names: Sequence[str]) -> ArrowBatches:
        return self._parse(names, [])

    def _parse(self, names: Sequence[str], expected: list[int]) -> ArrowBatches:
        """Record batches; `expected` gets how many values a ragged line should have had."""
        for batch in self._records_of(names, expected):
            yield _as_texts(batch)

    def _records_of(self, names: Sequence[str], expected: list[int]) -> ArrowBatches:
        """Records with columns of bytes.

        pyarrow gives up where a record has no end in the block it begins in nor in the next one.
        Then all is read again in blocks twice as long, and records that were given are left out.
        """
        block, given = BLOCK, 0
        while True:
            try:
                for batch in _without_first(self._blocks(names, block, expected), given):
                    given += batch.num_rows
                    yield batch
                return
            except pa.ArrowException:
                # A line is ragged in blocks of any size, and the file in one block is the last try.
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
            # Lines within quotes belong to one record, also in columns that are ignored.
            parse_options=arrow_csv.ParseOptions(
                newlines_in_values=True,
                # A line of one column is empty where its value is missing.
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
            return ValueError(f"{self._file} has changed while it was read; start again")
        if not _has_records(self._file):  # and no line end after the header
            return ValueError(f"{self._file} has a header and no records")
        if expected:
            return ValueError(
                f"{self._file} has a line without the {expected[0]} values of its header; quote "
                "values that have commas in them"
            )
        if issubclass(problem, UnicodeError):
            return _not_utf8(self._file)
        return ValueError(
            f"{self._file} is not a well-formed CSV file, or a record has more than {LONGEST} "
            "bytes; write it again"
        )

    def _problem(self, expected: list[int]) -> type[BaseException] | None:
        try:
            for _ in self._parse(self.names, expected):
                pass
        except _PROBLEMS as error:
            return type(error)
        return None


_SOURCES = {".csv": CSVSource, ".parquet": ParquetSource}


def open_file(path: str | os.PathLike[str], schema: Schema) -> FileSource:
    """A table in a .csv or .parquet file."""
    return _SOURCES[_kind(Path(path))](schema, Path(path))


def file_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names of all columns of a file."""
    path = Path(path)
    names = _parquet_schema(path).names if _kind(path) == ".parquet" else _header(path)
    return tuple(names)


def header_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The same, but only if they can be written down: they are distinct, and no record."""
    names, path = file_names(path), Path(path)
    if len(names) == 1 and _kind(path) == ".csv" and {";", "\t"} & set(names[0]):
        raise ValueError(
            f"{path} has no commas in its first line, but semicolons or tabs; save it with commas "
            "between values"
        )
    for place, name in enumerate(names, 1):
        # Nothing of the line is shown: it may be a record.
        if not name.strip():
            raise ValueError(
                f"column {place} of {path} has no name; write names of all columns on top "
                "(pandas: to_csv(index=False))"
            )
        if _kind(path) == ".csv" and _is_number(name):
            raise ValueError(
                f"{path} does not begin with a header: column {place} of its first line is a "
                "number; write the column names on top"
            )
        if (first := names.index(name) + 1) < place:
            raise ValueError(f"columns {first} and {place} of {path} have one name; rename one")
    return names


def _quietly(batches: ArrowBatches, broken: Callable[[], Exception]) -> Iterator[Any]:
    """The same batches, with `broken()` in place of any error."""
    with closing(batches):
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            except _PROBLEMS:
                break
            yield batch
    # Raised out here, where the first error is no longer its context.
    raise broken()


def _without_first(batches: ArrowBatches, count: int) -> ArrowBatches:
    """The same records but for the first so many."""
    for batch in batches:
        left = min(count, batch.num_rows)
        count -= left
        yield batch.slice(left)


def _as_texts(batch: Any) -> Any:
    """The same batch with columns of text; raises a `UnicodeError` where one is not UTF-8."""
    try:
        return batch.cast(pa.schema([(name, pa.string()) for name in batch.schema.names]))
    except pa.ArrowInvalid:
        pass
    # A type of its own: pyarrow has one for all that may be wrong with a file.
    raise UnicodeError


def _kind(path: Path) -> str:
    kind = path.suffix.lower()
    if kind not in _SOURCES:
        raise ValueError(f"expected a .csv or .parquet file, got {str(path)!r}; convert it")
    if not path.exists():
        raise FileNotFoundError(f"no file at {path}")
    if not path.is_file():
        raise ValueError(f"expected {path} to be a file; pass one file that has the whole table")
    return kind


def _header(path: Path) -> list[str]:
    """Names in the first record; what is after it is decoded, too, but is no matter."""
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
        raise ValueError(f"{path} does not begin with a header; write the column names on top")
    return names


def _parquet_schema(path: Path) -> Any:
    try:
        return parquet.read_schema(path)
    except _PROBLEMS:
        pass
    raise _not_parquet(path)


def _not_parquet(path: Path) -> ValueError:
    return ValueError(f"{path} is damaged or not a Parquet file; write it again")


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
