"""Everything that keeps a schema from describing a table, by names and types alone."""

from typing import Any

from dpmic_jax.data.schema import Schema
from dpmic_jax.data.source import column_names, open_source
from dpmic_jax.data.source.base import mismatches


def problems_with(schema: Schema, data: Any) -> tuple[Schema, list[str]]:
    """The schema for the columns of a table, and all that does not fit, each with a remedy."""
    names = column_names(data, schema.text)
    try:
        schema = schema.for_columns(names)
    except ValueError as error:
        return schema, [str(error)]
    problems = mismatches(schema, names, "the table")
    return schema, problems or _wrong_types(schema, data, names)


def _wrong_types(schema: Schema, data: Any, names: tuple[str, ...]) -> list[str]:
    """What `open_source` refuses, one column at a time."""
    problems = []
    for name, rule in schema.columns:
        others = tuple(other for other in names if other != name)
        try:
            open_source(data, Schema(((name, rule),), others, text=schema.text))
        except (TypeError, ValueError) as error:
            problems.append(str(error))
    return problems
