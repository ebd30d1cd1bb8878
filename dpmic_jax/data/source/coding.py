"""Values of a column as the numbers that are screened. Every value has a code.

All sources convert their values to an array of floats, NaN where one is missing, or to codes of
categories. The code of a record depends only on the schema and on that record, and no value is
refused: refusals are not charged, so repeated queries would learn from them whether anyone has it.
"""

from typing import SupportsFloat

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Shaped

from dpmic_jax.data.limits import (
    CategoryLimits,
    Column,
    Limits,
    NominalLimits,
    ScaledBounds,
    WithMissing,
)
from dpmic_jax.data.schema import Categories, FixedValue, Midpoint, MissingBin, Number, Rule, Times
from dpmic_jax.data.source.cells import MISSING, UNDECLARED
from dpmic_jax.data.source.ids import PersonId

Codes = Int[np.ndarray, " n"]


def limits(rule: Rule | PersonId) -> Limits:
    """The limits of a column for `by_range`; k categories are 0 .. k - 1 on (-1/2, k - 1/2)."""
    if isinstance(rule, PersonId):  # it is never binned
        return CategoryLimits(1)
    own = isinstance(rule.missing, MissingBin)
    if isinstance(rule, Number | Times):
        number = rule.number
        bounds, scale = number.cut_between, number.cut_scale
        if own:
            return WithMissing(*bounds, scale)
        return bounds if scale == "linear" else ScaledBounds(*bounds, scale)
    count, fixed = len(rule.values), isinstance(rule.missing, FixedValue)
    if rule.nominal:
        return NominalLimits(count, not fixed)
    if own:
        return WithMissing(-0.5, count - 0.5)
    return (-0.5, count - 0.5) if fixed else CategoryLimits(count)


def floats(values: Shaped[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Numbers of any dtype as float64, except that shorter floats keep their dtype.

    Integers are converted even though float64 does not hold all of them: whether a column is of
    integers or floats often depends on one value. Shorter floats are always chosen by the user.
    """
    if values.dtype.kind == "f" and values.dtype.itemsize < 8:
        return values
    return _wide(values)


def holding(
    values: Float[np.ndarray, " n"], low: SupportsFloat, high: SupportsFloat
) -> Float[np.ndarray, " n"]:
    """The floats in their dtype if it can hold the bounds, else in float64.

    Otherwise the midpoint of the bounds might be infinite in it, and fall into another bin.
    """
    if values.dtype.itemsize == 8:
        return values
    largest = float(np.finfo(values.dtype).max)
    return values if -largest <= float(low) and float(high) <= largest else _wide(values)


def _wide(values: Shaped[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    # numpy would warn of a long float that is too large, and of a signalling NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float64, copy=False)


def numbers(values: Float[np.ndarray, " n"], rule: Number) -> Column:
    """Numbers with missing values, which are NaN, replaced by the rule of the column.

    Missing values with their own bin become -inf. Then a number that is -inf becomes the lowest
    finite one.
    """
    missing = np.isnan(values)
    if isinstance(rule.missing, Midpoint):
        values = holding(values, rule.low, rule.high)
        return np.where(missing, values.dtype.type(rule.midpoint), values)
    values = _wide(values)
    if isinstance(rule.missing, FixedValue):
        return np.where(missing, _wide(np.asarray(rule.missing.value)), values)
    return np.where(missing, -np.inf, np.maximum(values, np.finfo(np.float64).min))


def whole_codes(
    values: Shaped[np.ndarray, " n"], missing: Bool[np.ndarray, " n"], rule: Categories
) -> Codes:
    """Codes of integers or booleans in any numeric dtype, compared exactly."""
    declared = np.array([int(value) for value in rule.values], np.int64)
    if values.dtype.kind == "f":
        values = _wide(values)
        missing = missing | np.isnan(values)
        # Both ends are exact in float64; casting a float outside of int64 is undefined.
        fits = (values >= -(2.0**63)) & (values < 2.0**63)
        kept = np.where(fits, values, 0).astype(np.int64)
        fits &= kept == values
    else:  # only uint64 has larger integers
        fits = values <= np.iinfo(np.int64).max
        kept = np.where(fits, values, 0).astype(np.int64)
    order = np.argsort(declared)
    place = order[np.minimum(np.searchsorted(declared[order], kept), len(declared) - 1)]
    found = np.where(fits & (declared[place] == kept), place, UNDECLARED)
    return np.where(missing, MISSING, found)


def codes(found: Codes, rule: Categories) -> Column:
    """Codes in the smallest dtype, or in float64 if missing values have their own bin."""
    if rule.other is not None:
        found = np.where(found == UNDECLARED, rule.values.index(rule.other), found)
    missing, count = found < 0, len(rule.values)
    if isinstance(rule.missing, MissingBin) and not rule.nominal:
        return np.where(missing, -np.inf, found.astype(np.float64))
    if isinstance(rule.missing, FixedValue):
        found = np.where(missing, rule.values.index(rule.missing.value), found)
        return found.astype(np.min_scalar_type(count - 1))
    # The dtype depends on the number of categories alone, and has room for -1.
    return np.where(missing, -1, found).astype(np.min_scalar_type(-count))


def wrong_type(name: str, rule: Rule | PersonId, given: str) -> TypeError:
    """The error for a column whose type does not fit its rule."""
    if isinstance(rule, PersonId):
        return TypeError(
            f"expected ids of persons in column {name!r}, numbers or texts, got {given}; convert it"
        )
    if isinstance(rule, Times):
        expected, remedy = f"{rule.kind}s", "declare low and high of its type, or convert it"
        expected = expected.replace("timestamp with time zones", "timestamps with a time zone")
    elif isinstance(rule, Number):
        expected, remedy = "numbers", "declare categories, or convert it to numbers"
        if given in ("dates", "durations"):
            remedy = f"declare low and high as {given}, or convert it to numbers"
    else:
        kind = {str: "texts", int: "whole numbers", bool: "booleans"}[rule.kind]
        expected, remedy = f"categories that are {kind}", "declare categories of its type"
    return TypeError(
        f"expected {expected} in column {name!r}, got {given}; {remedy}, or ignore the column"
    )
