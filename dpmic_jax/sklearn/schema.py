"""One schema of features and target, from bounds in any form."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from dpmic_jax.data.schema import Rule, Schema, schema_of
from dpmic_jax.data.schema.rules import Moment

_FORMS = (
    "a (low, high) for all features, one for each of them, bounds by name, a Schema, or the path "
    "of a bounds file"
)


def public_schema(names: Sequence[str], bounds: Any, target: str, target_bounds: Any) -> Schema:
    """The schema of a table of the features and the target.

    Args:
      names: names of the features.
      bounds: as for `PrivateMICSelector`.
      target: the name of the target.
      target_bounds: bounds of the target; None if `bounds` have them.
    """
    if target in names:
        raise ValueError(f"X has a column {target!r}, the name of the target; pass another target=")
    described = names if target_bounds is not None else (*names, target)
    found = _features(names, bounds).for_columns(described)
    rules = dict(found.columns)
    if (target in rules) == (target_bounds is not None):
        raise ValueError(
            f"expected the target's bounds once: in bounds, under its name {target!r}, or as "
            "target_bounds=(low, high) or Categories([...])"
        )
    if target_bounds is not None:
        rules[target] = schema_of({target: target_bounds})[target]
    # A bounds file describes a whole table, of which X may lack the ignored columns.
    ignored = tuple(name for name in found.ignored if name in names)
    return replace(found, columns=tuple(rules.items()), ignored=ignored)


def _features(names: Sequence[str], bounds: Any) -> Schema:
    if isinstance(bounds, Schema | Mapping | str | os.PathLike):
        return schema_of(bounds)
    if isinstance(bounds, Rule) or _is_pair(bounds):
        bounds = [bounds] * len(names)
    if not isinstance(bounds, Sequence | np.ndarray):
        raise TypeError(f"expected bounds as {_FORMS}, got {type(bounds).__name__}")
    if len(bounds) != len(names):
        raise ValueError(
            f"expected bounds as {_FORMS}; got {len(bounds)} for {len(names)} features"
        )
    return schema_of(dict(zip(names, bounds, strict=True)))


def _is_pair(bounds: Any) -> bool:
    if not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        return False
    return all(isinstance(end, Real | Moment) for end in bounds)
