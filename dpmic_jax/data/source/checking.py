"""Everything that keeps a schema from describing a table, by names and types alone."""

from collections.abc import Callable
from functools import partial
from typing import Any

from dpmic_jax.data.schema import Schema
from dpmic_jax.data.source import Source, column_names, open_source
from dpmic_jax.data.source.base import is_index, mismatches
from dpmic_jax.data.source.streamed import is_streamed

Names = tuple[str, ...]
Opened = Callable[[Schema], Source]


def problems_with(schema: Schema, data: Any) -> tuple[Schema, list[str]]:
    """The schema for the columns of a table, and all that does not fit, each with a remedy."""
    names, opened = _table(schema, data)
    try:
        schema = schema.for_columns(names)
    except ValueError as error:
        return schema, [str(error)]
    problems = mismatches(schema, names, "the table") or _wrong_types(schema, names, opened)
    # With the type of the ids of persons, who are in no schema of one column.
    return schema, problems or _refused(partial(open_source, data), schema)


def _table(schema: Schema, data: Any) -> tuple[Names, Opened]:
    """The names of a table, and what opens it with a schema of some of its columns."""
    if not is_streamed(data):
        return column_names(data, schema.text), partial(open_source, data)
    from dpmic_jax.data.source.streams import StreamSource, open_reader

    reader = open_reader(data)  # one connection for all columns
    names = tuple(name for name in reader.schema.names if not is_index(name))
    return names, lambda some: StreamSource(some, reader)


def _wrong_types(schema: Schema, names: Names, opened: Opened) -> list[str]:
    """What is refused, one column at a time."""
    problems: list[str] = []
    for name, rule in schema.columns:
        others = tuple(other for other in names if other != name)
        problems += _refused(opened, Schema(((name, rule),), others, text=schema.text))
    return problems


def _refused(opened: Opened, schema: Schema) -> list[str]:
    """Why a table is not opened, if it is not."""
    try:
        opened(schema)
    except (TypeError, ValueError) as error:
        return [str(error)]
    return []
