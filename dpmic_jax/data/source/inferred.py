"""A file or a query as an arrow table, with the types that its values suggest.

Not private: values are read, and decide on types and errors.
"""

import os
from pathlib import Path
from typing import Any

from dpmic_jax.data.schema import TextFormat
from dpmic_jax.data.source.query import Query


def read_table(table: str | os.PathLike[str] | Query, text: TextFormat) -> Any:
    """The arrow table of .parquet files, of a text file with a header, or of a query.

    Args:
      table: the file, a folder or pattern of .parquet files, or the query. A text file may be
        compressed by gzip.
      text: how it is written, if it is a text file.
    """
    if isinstance(table, Query):
        return _queried(table)
    path = Path(table)
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError('reading files needs pyarrow: pip install "dpmic_jax[files]"') from None
    from dpmic_jax.data.source.parquet import is_several, parquet_files

    if not is_several(path) and not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    if not is_several(path) and path.suffix.lower() != ".parquet":
        return _written(path, text)
    parts = [parquet.read_table(file) for file in parquet_files(path)]
    return pa.concat_tables(parts, promote_options="permissive")


def _queried(query: Query) -> Any:
    import pyarrow as pa

    from dpmic_jax.data.source.databases import query_reader

    reader = query_reader(query)
    batches = list(reader.read(reader.schema.names))
    return pa.Table.from_batches(batches, None if batches else reader.schema)


def _written(path: Path, text: TextFormat) -> Any:
    import pyarrow.csv as arrow_csv

    tabs = ".tsv" in path.suffixes
    return arrow_csv.read_csv(
        path,
        read_options=arrow_csv.ReadOptions(encoding=text.encoding),
        parse_options=arrow_csv.ParseOptions(
            delimiter=text.delimiter or ("\t" if tabs else ","), newlines_in_values=True
        ),
        convert_options=arrow_csv.ConvertOptions(
            null_values=["", *text.missing],
            strings_can_be_null=True,
            decimal_point=text.decimal,
            timestamp_parsers=[arrow_csv.ISO8601],
        ),
    )
