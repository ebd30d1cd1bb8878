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
    missing = "bin"            # or { value = 0 }; without it missing values are refused

    [columns.patient_id]
    ignore = true              # not screened
"""

from dpmic_jax.schema.description import Schema
from dpmic_jax.schema.reading import (
    Described,
    NominalOrderWarning,
    read_schema,
    schema_of,
    template,
)
from dpmic_jax.schema.rules import (
    Categories,
    FixedValue,
    Missing,
    Number,
    OwnBin,
    Refused,
    Rule,
    Value,
)

__all__ = [
    "Categories",
    "Described",
    "FixedValue",
    "Missing",
    "NominalOrderWarning",
    "Number",
    "OwnBin",
    "Refused",
    "Rule",
    "Schema",
    "Value",
    "read_schema",
    "schema_of",
    "template",
]
