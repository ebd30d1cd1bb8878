"""What is public about a table: its columns, their bounds or categories, and missing values.

Nothing here is taken from data. A schema is written down by the caller, in Python or in a TOML
file with a table for each column:

    [columns.age]
    low = 18
    high = 90

    [columns.sex]
    categories = ["f", "m"]    # coded 0, 1, ... in this order

    [columns.income]
    low = 0
    high = 1e6
    missing = "bin"            # or { value = 0 }; without it they count as the midpoint

    [columns.patient_id]
    ignore = true              # not screened

What is no number in a column of numbers, and no declared category in a column of categories, is
missing there, and never an error: whether there is an error would tell something for free. Without
`missing` such values count as the midpoint of the bounds (`Midpoint`), and in categories have a
part of their own wherever there are more parts than categories (`SparePart`).
"""

from dpmic_jax.data.schema.description import Schema
from dpmic_jax.data.schema.reading import (
    Described,
    MissingRefusedWarning,
    NominalOrderWarning,
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
    Value,
)

__all__ = [
    "Categories",
    "Described",
    "FixedValue",
    "Midpoint",
    "Missing",
    "MissingBin",
    "MissingRefusedWarning",
    "NominalOrderWarning",
    "Number",
    "Rule",
    "Schema",
    "SparePart",
    "Value",
    "read_schema",
    "schema_of",
    "template",
]
