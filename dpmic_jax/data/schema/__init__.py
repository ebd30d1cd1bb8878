"""The public description of a table: columns, bounds or categories, and missing values.

Nothing in it is computed from data. The caller writes a schema in Python, or in a TOML file with a
table for each column:

    [columns.age]
    low = 18
    high = 90

    [columns.blood]
    categories = ["A", "B", "AB", "0"]

    [columns.stage]
    categories = ["I", "II", "III"]
    ordered = true             # coded 0, 1, ... in this order

    [columns.admitted]
    low = 2015-01-01
    high = 2024-12-31

    [columns.income]
    low = 0
    high = 1e6
    scale = "sqrt"             # or breakpoints = [...]
    missing = "bin"            # or { value = 0 }; the default is the midpoint

    [columns.patient_id]
    ignore = true              # not screened

A value that is not a number, or not a declared category, is missing. It is never an error, because
an error would reveal that somebody has such a value, at no charge. Without `missing`, such values
count as the midpoint of the bounds (`Midpoint`); in a column of categories they have their own bin
wherever there are more bins than categories (`SparePart`).
"""

from dpmic_jax.data.schema.description import Schema
from dpmic_jax.data.schema.reading import (
    Described,
    MissingRefusedWarning,
    read_schema,
    schema_of,
    template,
)
from dpmic_jax.data.schema.rules import (
    Categories,
    FixedValue,
    Midpoint,
    Missing,
    MissingBin,
    Number,
    Rule,
    SparePart,
    Times,
    Value,
)
from dpmic_jax.data.schema.text_format import TextFormat

__all__ = [
    "Categories",
    "Described",
    "FixedValue",
    "Midpoint",
    "Missing",
    "MissingBin",
    "MissingRefusedWarning",
    "Number",
    "Rule",
    "Schema",
    "SparePart",
    "TextFormat",
    "Times",
    "Value",
    "read_schema",
    "schema_of",
    "template",
]
