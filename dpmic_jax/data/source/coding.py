"""Values of a column -> the numbers that are screened. Whatever a cell holds, it has a code.

Whatever the values came in, they get here as a numpy array of floats, NaN where one is missing,
or as codes of categories. What is done to a record depends on the schema and on that record
alone, and nothing is refused for a value: who may ask as often as they like would learn from
refusals whether anyone has it.
"""

from typing import SupportsFloat

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Shaped

from dpmic_jax.data.limits import CategoryLimits, Column, Limits, WithMissing
from dpmic_jax.data.schema import Categories, FixedValue, Midpoint, MissingBin, Number, Rule
from dpmic_jax.data.source.cells import UNDECLARED

MISSING = -2  # among codes; what is not declared becomes the same
Codes = Int[np.ndarray, " n"]


def limits(rule: Rule) -> Limits:
    """Where `by_range` cuts a column; k categories are 0 .. k - 1 on (-1/2, k - 1/2)."""
    if isinstance(rule, Number):
        low, high = rule.low, rule.high
    elif isinstance(rule.missing, MissingBin | FixedValue):
        low, high = -0.5, len(rule.values) - 0.5
    else:
        return CategoryLimits(len(rule.values))
    return WithMissing(low, high) if isinstance(rule.missing, MissingBin) else (low, high)


def floats(values: Shaped[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Numbers of any dtype in float64, but shorter floats as they are.

    Integers, too: whether a column comes as integers or floats often depends on one value, and a
    float64 does not hold all integers. Nobody makes shorter floats without being told to.
    """
    if values.dtype.kind == "f" and values.dtype.itemsize < 8:
        return values
    return _wide(values)


def holding(
    values: Float[np.ndarray, " n"], low: SupportsFloat, high: SupportsFloat
) -> Float[np.ndarray, " n"]:
    """Floats in a dtype that has the bounds in it: in float64 if theirs ends before.

    Else the middle of the bounds may be infinite in it, and in another part than the middle is.
    """
    if values.dtype.itemsize == 8:
        return values
    largest = float(np.finfo(values.dtype).max)
    return values if -largest <= float(low) and float(high) <= largest else _wide(values)


def _wide(values: Shaped[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    # numpy warns of a long float that is too large, and of a NaN that is said to signal.
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float64, copy=False)


def numbers(values: Float[np.ndarray, " n"], rule: Number) -> Column:
    """Numbers, with what is missing, that is NaN, dealt with.

    Where missing ones have their own bin they are -inf, and a number that is -inf is the lowest
    finite one.
    """
    missing = np.isnan(values)
    if isinstance(rule.missing, Midpoint):
        values = holding(values, rule.low, rule.high)
        return np.where(missing, values.dtype.type(rule.midpoint), values)
    values = _wide(values)
    if isinstance(rule.missing, FixedValue):
        return np.where(missing, rule.missing.value, values)
    return np.where(missing, -np.inf, np.maximum(values, np.finfo(np.float64).min))


def whole_codes(
    values: Shaped[np.ndarray, " n"], missing: Bool[np.ndarray, " n"], rule: Categories
) -> Codes:
    """Codes of whole numbers or booleans, in any dtype of numbers; exact."""
    declared = np.array([int(value) for value in rule.values], np.int64)
    if values.dtype.kind == "f":
        values = _wide(values)
        missing = missing | np.isnan(values)
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


def codes(found: Codes, rule: Categories) -> Column:
    """Codes in the smallest dtype, or in float64 where missing ones have their own bin."""
    missing, count = found < 0, len(rule.values)
    if isinstance(rule.missing, MissingBin):
        return np.where(missing, -np.inf, found.astype(np.float64))
    if isinstance(rule.missing, FixedValue):
        found = np.where(missing, rule.values.index(rule.missing.value), found)
        return found.astype(np.min_scalar_type(count - 1))
    return np.where(missing, -1, found).astype(np.min_scalar_type(-count))


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
