"""Values of a column -> the numbers that are screened, or an error that shows none of them.

Whatever the values came in, they get here as a numpy array of numbers, NaN where one is missing,
or as codes of categories. What is done to a record depends on the schema and on that record
alone.
"""

import numpy as np
from jaxtyping import Bool, Int, Shaped

from dpmic_jax.mic.binning import Column, Limits, WithMissing
from dpmic_jax.schema import Categories, FixedValue, Number, OwnBin, Refused, Rule

UNDECLARED, MISSING = -1, -2
Codes = Int[np.ndarray, " n"]


def limits(rule: Rule) -> Limits:
    """Where `by_range` cuts a column; k categories are 0 .. k - 1 on (-1/2, k - 1/2)."""
    low, high = (
        (rule.low, rule.high) if isinstance(rule, Number) else (-0.5, len(rule.values) - 0.5)
    )
    return WithMissing(low, high) if isinstance(rule.missing, OwnBin) else (low, high)


def numbers(values: Shaped[np.ndarray, " n"], rule: Number, name: str) -> Column:
    """Numbers in their own dtype, or in float64 where something is done with missing ones."""
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    if values.dtype.kind not in "iuf" or values.dtype.itemsize > 8:
        raise wrong_type(name, rule, str(values.dtype))
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(
            f"column {name!r} has infinite values; give them as numbers, or as missing with "
            'missing = "bin" or missing = { value = ... }'
        )
    if isinstance(rule.missing, Refused):
        _none(missing, name)
        return values
    filler = rule.missing.value if isinstance(rule.missing, FixedValue) else -np.inf
    return np.where(missing, filler, values.astype(np.float64))


def whole_codes(
    values: Shaped[np.ndarray, " n"], missing: Bool[np.ndarray, " n"], rule: Categories
) -> Codes:
    """Codes of whole numbers or booleans, in any dtype of numbers; exact."""
    declared = np.array([int(value) for value in rule.values], np.int64)
    missing = missing | (values != values)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        fits = (values >= -(2.0**63)) & (values < 2.0**63)
        kept = np.where(fits, values, 0).astype(np.int64)
        fits &= kept == values
    else:
        fits = values <= np.iinfo(np.int64).max
        kept = np.where(fits, values, 0).astype(np.int64)
    order = np.argsort(declared)
    place = order[np.minimum(np.searchsorted(declared[order], kept), len(declared) - 1)]
    found = np.where(fits & (declared[place] == kept), place, UNDECLARED)
    return np.where(missing, MISSING, found)


def codes(found: Codes, rule: Categories, name: str) -> Column:
    """Codes in the smallest dtype, or in float64 where missing ones have their own bin."""
    if (found == UNDECLARED).any():
        raise ValueError(
            f"column {name!r} has values that are not among its categories; declare all that may "
            "occur, or ignore the column"
        )
    missing = found == MISSING
    if isinstance(rule.missing, OwnBin):
        return np.where(missing, -np.inf, found.astype(np.float64))
    if isinstance(rule.missing, FixedValue):
        found = np.where(missing, rule.values.index(rule.missing.value), found)
    else:
        _none(missing, name)
    return found.astype(np.min_scalar_type(len(rule.values) - 1))


def wrong_type(name: str, rule: Rule, given: str) -> TypeError:
    """What a column has to be, and what to do if it is something else."""
    if isinstance(rule, Number):
        expected, remedy = "numbers", "declare categories, or convert it to numbers"
    else:
        kind = {str: "texts", int: "whole numbers", bool: "booleans"}[rule.kind]
        expected, remedy = f"categories that are {kind}", "declare categories of its type"
    return TypeError(
        f"expected {expected} in column {name!r}, got {given}; {remedy}, or ignore the column"
    )


def _none(missing: Bool[np.ndarray, " n"], name: str) -> None:
    if missing.any():
        raise ValueError(
            f'column {name!r} has missing values (null or NaN); write missing = "bin" to give '
            "them a part of their own, or missing = { value = ... } to count them as a public "
            "value"
        )
