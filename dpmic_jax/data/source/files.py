"""Tables in CSV and Parquet files, with only a few batches in memory.

Columns of a CSV file are read as text. With a type that is inferred or forced, a single value could
make the file fail. So only the structure of a file can be refused.
"""

import csv
import gzip
import json
import math
import os
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

try:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
except ImportError:
    raise ImportError('reading files needs pyarrow: pip install "dpmic_jax[files]"') from None

from dpmic_jax.data.schema import Schema, TextFormat
from dpmic_jax.data.source.arrow_source import ArrowBatches, ArrowSource
from dpmic_jax.data.source.base import is_index
from dpmic_jax.data.source.parquet import ParquetSource, is_several, parquet_files, parquet_schema

# Bytes that are parsed at a time.
BLOCK = 2**20
# Largest record, in bytes: pyarrow counts the bytes of a block in 31 bits.
LONGEST = 2**30

_PROBLEMS = (pa.ArrowException, OSError, ValueError, LookupError, TypeError)


class CSVSource(ArrowSource):
    """A table in a text file with a header, as `schema.text` says; it may be compressed by gzip.

    Names and screened columns have to be in the declared encoding in the whole file. If that is
    UTF-8, ignored columns need not be. A record may have up to `LONGEST` bytes: blocks grow until
    the longest one fits, so whether a file can be read does not depend on where in a block a record
    begins.
    """

    _problems = _PROBLEMS

    def __init__(self, schema: Schema, path: Path):
        # Absolute, because other processes may have another working directory.
        self.path = self._file = path.absolute()
        super().__init__(schema, self._present(schema, path), str(path))

    @property
    def _text(self) -> TextFormat:
        """The declared format, in which an empty cell always means a missing value."""
        return replace(self.schema.text, missing=("", *self.schema.text.missing))

    def _present(self, schema: Schema, path: Path) -> tuple[str, ...]:
        names = _header(path, schema.text)
        described = [name for name, _ in schema.columns] + list(schema.ignored)
        if not set(described) <= set(names):
            check_delimiter(path, names, schema.text, described)
        return names

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
                if expected or block >= min(_largest_size(self._file), LONGEST):
                    raise
            block *= 2

    def _blocks(self, names: Sequence[str], block: int, expected: list[int]) -> ArrowBatches:
        def refuse(row: Any) -> str:
            expected.append(row.expected_columns)
            return "error"

        with arrow_csv.open_csv(
            self._file,
            read_options=arrow_csv.ReadOptions(
                block_size=block, use_threads=False, encoding=_arrow_encoding(self._text)
            ),
            # A quoted value may contain line ends, also in ignored columns.
            parse_options=arrow_csv.ParseOptions(
                delimiter=_delimiter(self._file, self._text),
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
                f"values that contain {_mark(_delimiter(self._file, self._text))}"
            )
        if issubclass(problem, UnicodeError):
            return _not_text(self._file, self._text)
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


_SOURCES: dict[str, type[CSVSource | ParquetSource]] = {
    ".csv": CSVSource,
    ".tsv": CSVSource,
    ".csv.gz": CSVSource,
    ".tsv.gz": CSVSource,
    ".parquet": ParquetSource,
}


def open_file(path: str | os.PathLike[str], schema: Schema) -> ArrowSource:
    """The source of a .csv or .tsv file, or of one or several .parquet files."""
    if schema.patterns:  # they accept names that nobody wrote down, such as those of a record
        header_names(path, schema.text)
    return _SOURCES[_kind(Path(path))](schema, Path(path))


def file_schema(path: str | os.PathLike[str], text: TextFormat) -> Any:
    """The names and types of all columns of a file; text files have no types."""
    names = header_names(path, text)
    if is_text_file(path):
        return pa.schema([(name, pa.null()) for name in names])
    return _first_schema(Path(path))


def is_text_file(path: str | os.PathLike[str]) -> bool:
    """Whether a table is in a text file, whose first line has its names."""
    return _kind(Path(path)) != ".parquet"


def header_names(path: str | os.PathLike[str], text: TextFormat) -> tuple[str, ...]:
    """The names of all columns of a file, if they are distinct and do not look like a record."""
    path = Path(path)
    written = is_text_file(path)
    names = _header(path, text) if written else tuple(_first_schema(path).names)
    if written:
        check_delimiter(path, names, text, ())
    for place, name in enumerate(names, 1):
        # Error messages show nothing of the line, because it may be a record.
        if not name.strip():
            raise ValueError(
                f"column {place} of {path} has no name; write the names of all columns into the "
                "first line (pandas: to_csv(index=False))"
            )
        if written and _is_number(name):
            raise ValueError(
                f"{path} does not begin with a header: column {place} of its first line is a "
                "number; write the column names into the first line"
            )
        if (first := names.index(name) + 1) < place:
            raise ValueError(
                f"columns {first} and {place} of {path} have the same name; rename one"
            )
    return tuple(name for name in names if not is_index(name))


def check_delimiter(
    path: Path, names: Sequence[str], text: TextFormat, described: Sequence[str]
) -> None:
    """Refuse a first line that another delimiter than the declared one divides.

    Args:
      path: the file.
      names: what the declared delimiter makes of its first line.
      text: how the file is declared to be written.
      described: names of columns that the line should have; none if they are not known.
    """
    used = _delimiter(path, text)
    for other in _DELIMITERS:
        # The first line may be a record, so nothing of it is shown.
        parts = set(_header(path, replace(text, delimiter=other)))
        divides = len(names) == 1 and len(parts) > 1
        if other != used and (divides or (described and set(described) <= parts)):
            raise ValueError(
                f"{path} has {_mark(other)} between the names of its first line, not "
                f"{_mark(used)}; {_how_to_write('delimiter', other)}"
            )


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
    kind = "".join(path.suffixes[-2:]).lower()
    kind = kind if kind in _SOURCES else path.suffix.lower()
    if kind not in _SOURCES:
        raise ValueError(
            f"expected a .tsv, .csv or .parquet file, or .tsv.gz or .csv.gz, got {str(path)!r}; "
            "convert it"
        )
    if not path.exists():
        raise FileNotFoundError(f"no file at {path}")
    return kind


def _header(path: Path, text: TextFormat) -> tuple[str, ...]:
    """The names in the first record. What follows may be decoded, but is not used."""
    encoding = "utf-8-sig" if text.encoding == "utf-8" else text.encoding
    problem, names = None, None
    try:
        with _opened(path, encoding=encoding, errors="surrogateescape", newline="") as file:
            names = next(csv.reader(file, delimiter=_delimiter(path, text)), None)
    except csv.Error:
        names = []
    except UnicodeError:
        problem = _not_text(path, text)
    except (EOFError, OSError, zlib.error):
        problem = ValueError(f"{path} is damaged or not compressed by gzip; write it again")
    if problem is not None:  # raised here, so that an error that quotes the file is not its context
        raise problem
    if names is None:
        raise ValueError(f"{path} is empty; expected a header with the column names")
    if any("\udc80" <= letter <= "\udcff" for letter in "".join(names)):
        raise _not_text(path, text)
    if all(map(_is_number, names)):
        raise ValueError(
            f"{path} does not begin with a header; write the column names into the first line"
        )
    return tuple(names)


def _opened(path: Path, **settings: Any) -> Any:
    """A text file, or the text in a compressed one."""
    return gzip.open(path, "rt", **settings) if _is_compressed(path) else path.open(**settings)


def _is_compressed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _largest_size(path: Path) -> float:
    """A number of bytes that the text of a file does not exceed."""
    return math.inf if _is_compressed(path) else path.stat().st_size


def _delimiter(path: Path, text: TextFormat) -> str:
    tabs = ".tsv" in (suffix.lower() for suffix in path.suffixes[-2:])
    return text.delimiter or ("\t" if tabs else ",")


def _arrow_encoding(text: TextFormat) -> str:
    """The encoding that pyarrow converts from; it does not look at the bytes of UTF-8."""
    return "utf8" if text.encoding in ("utf-8", "utf-8-sig") else text.encoding


_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}


def _mark(delimiter: str) -> str:
    return _DELIMITERS.get(delimiter, repr(delimiter))


def _how_to_write(setting: str, value: str) -> str:
    """The remedy for a setting of a text file that is not the default."""
    return (
        f"pass --{setting} {value!r}, or write {setting} = {json.dumps(value)} below [file] in the "
        "bounds file"
    )


def _first_schema(path: Path) -> Any:
    """The names and types of the first Parquet file of a path."""
    return parquet_schema(parquet_files(path)[0])


def _not_text(path: Path, text: TextFormat) -> ValueError:
    if text.encoding != "utf-8":
        return ValueError(f"{path} is not {text.encoding} text; declare its encoding")
    return ValueError(
        f"{path} is not UTF-8 text; save it as UTF-8, or {_how_to_write('encoding', 'cp1252')}, "
        "or what it is"
    )


def _is_number(text: str) -> bool:
    try:
        float(text or "0")
    except ValueError:
        return False
    return True


def _has_records(path: Path) -> bool:
    with gzip.open(path) if _is_compressed(path) else path.open("rb") as file:
        file.readline()
        return bool(file.readline().strip())
