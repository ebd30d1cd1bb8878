"""The public description of a table: columns, bounds or categories, and missing values.

Nothing in it is computed from data. The caller writes a schema in Python, or in a TOML file with a
line for each column (docs/bounds_file.md):

    [columns]
    age = [18, 90]
    blood = ["A", "B", "AB", "0"]
    stage = { categories = ["I", "II", "III"], ordered = true }
    admitted = [2015-01-01, 2024-12-31]
    income = { bounds = [0, 1e6], scale = "sqrt", missing = "bin" }
    "tax*" = [0, 10000]
    patient_id = { ignore = true }

A value that is not a number, or not a declared category, is missing. It is never an error, because
an error would reveal that somebody has such a value, at no charge. Without `missing`, such values
count as the midpoint of the bounds (`Midpoint`); in a column of categories they have their own bin
wherever there are more bins than categories (`SparePart`).
"""

from dpmic_jax.data.schema.codebook import from_codebook
from dpmic_jax.data.schema.description import Schema
from dpmic_jax.data.schema.reading import (
    Described,
    MissingRefusedWarning,
    read_schema,
    schema_of,
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
from dpmic_jax.data.schema.template import template
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
    "from_codebook",
    "read_schema",
    "schema_of",
    "template",
]
