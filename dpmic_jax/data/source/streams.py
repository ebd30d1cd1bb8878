"""Tables that other libraries read for us, as Arrow record batches, as often as they are asked.

What a query or another library computes from records is not checked here: what it yields are the
records of the table. An error in it may depend on values, so its message is never shown.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import narwhals as nw

try:
    import pyarrow as pa
except ImportError:
    raise ImportError(
        'reading queries and streams needs pyarrow: pip install "dpmic_jax[files]"'
    ) from None

from dpmic_jax.data.schema import Schema
from dpmic_jax.data.source.arrow import check_type
from dpmic_jax.data.source.arrow_source import PIECE, ArrowBatches, ArrowSource
from dpmic_jax.data.source.query import Query

# What is selected of dates and times in SQL: infinite ones are missing, as Arrow has none.
FINITE = "CASE WHEN isfinite({0}) THEN {0} END"


class Reader(ABC):
    """What reads a table, anew for every pass.

    Attributes:
      where: what error messages call the table.
      schema: its names and types, which are known without reading a value.
      is_snapshot: whether every pass certainly sees the same records.
    """

    where: str = "data"
    schema: Any
    is_snapshot: bool = False

    @abstractmethod
    def count(self) -> int:
        """The number of records."""

    @abstractmethod
    def read(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches that have at least these columns."""

    def identity(self) -> list[str | int]:
        """As that of `Source`."""
        return ["in memory"]


class StreamSource(ArrowSource):
    """A table with a reader."""

    def __init__(self, schema: Schema, reader: Reader):
        super().__init__(schema, reader.schema.names, reader.where)
        self._reader = reader
        for name, rule in zip(self.names, self.rules, strict=True):
            check_type(reader.schema.field(name).type, rule, name)

    def identity(self) -> list[str | int]:
        """That of the reader."""
        return self._reader.identity()

    def _read(self, names: Sequence[str]) -> ArrowBatches:
        yield from self._reader.read(names)

    def _broken(self) -> Exception:
        return ValueError(
            f"reading {self._where} failed; run it by itself to see why (the message is not shown "
            "here, as it may quote values)"
        )

    def _count(self) -> int:
        found = self._count_once()
        if found is None:
            raise self._broken()
        if not self._reader.is_snapshot and self._count_once() != found:
            raise _read_once()
        return found

    def _count_once(self) -> int | None:
        """The number of records; None after an error."""
        try:
            return self._reader.count()
        except Exception:
            return None


def open_reader(data: Any) -> Reader:
    """What reads a table that is not in memory."""
    if isinstance(data, Query):
        from dpmic_jax.data.source.databases import query_reader

        return query_reader(data)
    data = nw.to_native(data, pass_through=True)
    if isinstance(data, pa.RecordBatchReader):
        raise _read_once()
    if nw.dependencies.is_polars_lazyframe(data):
        return LazyFrameReader(data)
    if nw.dependencies.is_duckdb_relation(data):
        return RelationReader(data)
    return ExportReader(data) if hasattr(data, "__arrow_c_stream__") else DatasetReader(data)


class LazyFrameReader(Reader):
    """A polars LazyFrame, which is collected in batches by the streaming engine."""

    def __init__(self, frame: Any):
        if not hasattr(frame, "collect_batches"):
            raise ImportError("reading a LazyFrame needs polars 1.34 or newer; or collect() it")
        import polars as pl

        self._frame, self._length = frame, frame.select(pl.len())
        self.schema = pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema

    def count(self) -> int:
        """The number of records."""
        return self._length.collect(engine="streaming").item()

    def read(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of these columns."""
        frame = self._frame.select(names)
        for batch in frame.collect_batches(chunk_size=PIECE, lazy=True, engine="streaming"):
            yield from batch.to_arrow().to_batches()


class RelationReader(Reader):
    """A DuckDB relation, which is run again for every pass."""

    def __init__(self, relation: Any):
        self._relation = relation
        with closing(pa.RecordBatchReader.from_stream(relation.limit(0))) as stream:
            self.schema = stream.schema

    def count(self) -> int:
        """The number of records."""
        return self._relation.aggregate("count(*)").fetchall()[0][0]

    def read(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of these columns."""
        chosen = self._relation.project(", ".join(map(self._read_as, names)))
        # Of this size: those of `__arrow_c_stream__` have a million records.
        with closing(chosen.to_arrow_reader(PIECE)) as stream:
            yield from stream

    def _read_as(self, name: str) -> str:
        kind, own = self.schema.field(name).type, quoted(name)
        instant = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
        return f"{FINITE.format(own)} AS {own}" if instant else own


class DatasetReader(Reader):
    """A pyarrow dataset."""

    def __init__(self, dataset: Any):
        self._dataset, self.schema = dataset, dataset.schema

    def count(self) -> int:
        """The number of records."""
        return self._dataset.count_rows()

    def read(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of these columns, of which only a few are read ahead."""
        from pyarrow import dataset

        return self._dataset.to_batches(
            columns={name: dataset.field(name) for name in names},
            batch_size=PIECE,
            batch_readahead=2,
            fragment_readahead=1,
        )


class ExportReader(Reader):
    """Anything else with `__arrow_c_stream__`, if that gives the same stream again."""

    def __init__(self, data: Any):
        self._data = data
        with closing(pa.RecordBatchReader.from_stream(data)) as stream:
            self.schema = stream.schema
        try:
            pa.RecordBatchReader.from_stream(data).close()
            return
        except Exception:
            pass
        # Raised outside of the `except` block, so that the first error is not its context.
        raise _read_once()

    def count(self) -> int:
        """The number of records, by reading all of them."""
        return sum(batch.num_rows for batch in self.read(()))

    def read(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of all columns."""
        with closing(pa.RecordBatchReader.from_stream(self._data)) as stream:
            yield from stream


def quoted(name: str) -> str:
    """The name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _read_once() -> TypeError:
    return TypeError(
        "data gives its records only once, and a run reads them several times; collect them into a "
        "table (pyarrow: reader.read_all()), or pass what the stream is made from: a dataset, a "
        "LazyFrame, a DuckDB relation or a Query"
    )
