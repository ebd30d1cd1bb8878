"""A table that is read in batches of records, after its structure was checked."""

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from dpmic_jax.data.limits import Column, Limits
from dpmic_jax.data.schema import Rule, Schema
from dpmic_jax.data.source.coding import limits
from dpmic_jax.data.table import FEWEST_RECORDS

Batch = tuple[Column, ...]


class Source(ABC):
    """A table with a schema: its screened columns as numbers, one batch of records at a time.

    Attributes:
      schema: the public description of the table.
      present: names of all columns of the table.
      names: names of the screened columns, in the order of the table.
      bounds: limits of the screened columns, as for `by_range`.
      path: where the table's files are, if it is in files, so that other processes can open them.
    """

    path: Path | None = None

    def __init__(self, schema: Schema, present: Sequence[str], where: str):
        """Match a schema with the columns of the table; `where` names it in error messages."""
        present = [name for name in present if name in schema.described or not is_index(name)]
        schema = schema.for_columns(present)
        rules = dict(schema.columns)
        _match(schema, present, where)
        self.schema = schema
        self.present = tuple(present)
        self.names = tuple(name for name in present if name in rules)
        self.rules: tuple[Rule, ...] = tuple(rules[name] for name in self.names)
        self.bounds: tuple[Limits, ...] = tuple(map(limits, self.rules))
        self._where = where
        self._records: int | None = None

    @abstractmethod
    def _count(self) -> int:
        """The number of records, from the structure of the table alone: no cell is parsed."""

    @abstractmethod
    def _pieces(self) -> Iterator[Batch]:
        """All records in order, as numbers, in batches of any size."""

    def validate(self) -> int:
        """Check the structure of the table, and return its number of records.

        Cells are not read here, and their content is never an error: see `data.source.coding`.
        """
        records = self._count()
        if records < FEWEST_RECORDS:
            raise ValueError(
                f"expected {self._where} to have at least {FEWEST_RECORDS} records, got {records}"
            )
        self._records = records
        return records

    def keyed(self, key: bytes) -> "Source":
        """The same table with a key of 32 bytes, for sources that draw records (`persons`)."""
        return self

    def identity(self) -> list[str | int]:
        """Where the table is and when it was written, to detect that it is another than before.

        It is stored unencrypted, so it contains nothing that depends on values, such as the size of
        a file.
        """
        if self.path is None:
            return ["in memory"]
        return [str(self.path.resolve()), self.path.stat().st_mtime_ns]

    def batches(self, rows: int) -> Iterator[Batch]:
        """Columns of `rows` records at a time, fewer in the last batch.

        Values and dtypes depend only on the table and its schema. If the number of records differs
        from that of `validate`, a `ValueError` is raised.
        """
        if isinstance(rows, bool) or operator.index(rows) < 1:
            raise ValueError(f"expected rows >= 1, got {rows}")
        return self._counted(_resliced(self._pieces(), operator.index(rows)))

    def _counted(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same batches, or an error if the number of records has changed."""
        seen, expected = 0, self._records
        for batch in batches:
            seen += len(batch[0])
            if expected is not None and seen > expected:  # no record beyond n is used
                break
            yield batch
        if expected is not None and seen != expected:
            raise ValueError(
                f"{self._where} has changed since it was checked: it had {expected} records; do "
                "not change it during a run, and start again"
            )


def _resliced(pieces: Iterable[Batch], rows: int) -> Iterator[Batch]:
    """The same records in batches of exactly `rows`, except for the last."""
    held, count = [], 0
    for piece in pieces:
        start, size = 0, len(piece[0])
        while size - start >= rows - count:
            stop = start + rows - count
            yield _joined([*held, _slice(piece, start, stop)])
            held, count, start = [], 0, stop
        if start < size:
            held.append(_slice(piece, start, size))
            count += size - start
    if held:
        yield _joined(held)


def _slice(piece: Batch, start: int, stop: int) -> Batch:
    return tuple(column[start:stop] for column in piece)


def _joined(pieces: list[Batch]) -> Batch:
    if len(pieces) == 1:
        return pieces[0]
    return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))


def is_index(name: str) -> bool:
    """Whether a column is an index that pandas stored in a Parquet file."""
    return re.fullmatch(r"__index_level_\d+__", name) is not None


def _match(schema: Schema, present: Sequence[str], where: str) -> None:
    """Refuse a schema of other columns than these."""
    if problems := mismatches(schema, present, where):
        raise ValueError(problems[0])


def mismatches(schema: Schema, present: Sequence[str], where: str) -> list[str]:
    """What keeps a schema from describing a table with these columns, each with a remedy.

    They show names of the table only if it has all names of the schema: the first line of a file
    without a header is data.
    """
    described = schema.described
    absent = [name for name in described if name not in present]
    if absent:
        return [
            f"bounds name a column {name!r} that is not in {where}; remove it, or correct its "
            "name (a file needs a header with the names of its columns)"
            for name in absent
        ]
    again = [name for name in described if list(present).count(name) > 1]
    unknown = [name for name in present if name not in described]
    return [f"{where} has two columns {name!r}; rename one of them" for name in again] + [
        f"{where} has a column {name!r} without bounds; give its low and high or its "
        "categories, or ignore it (ignore = true)"
        for name in dict.fromkeys(unknown)
    ]
