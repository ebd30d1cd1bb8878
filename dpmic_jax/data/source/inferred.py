"""A file as a data frame with the types that its values suggest. Not private: values are read."""

import os
from pathlib import Path
from typing import Any

from dpmic_jax.data.schema import TextFormat


def read_frame(path: str | os.PathLike[str], text: TextFormat) -> Any:
    """A .parquet file, or a text file with a header, as an arrow table.

    Args:
      path: the file; a text file may be compressed by gzip.
      text: how it is written, if it is a text file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    try:
        import pyarrow.csv as arrow_csv
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError('reading files needs pyarrow: pip install "dpmic_jax[files]"') from None
    if path.suffix.lower() in (".parquet", ".pq"):
        return parquet.read_table(path)
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
