"""Functions as settings of an event: told apart by what they do, not by their names alone.

Events that are equal share their noise under a seeded key, and two lambdas share their name.
"""

import functools
import hashlib
import types
from collections.abc import Callable
from numbers import Number
from typing import Any

_FIXED = (Number, str, bytes, type(None))


def callable_name(function: Callable[..., Any]) -> str:
    """The name of a function or class; of all but classes and functions of modules with a digest.

    The digest is of the code, the defaults and the values that are closed over, as far as these
    cannot change: a run that goes on later has to find the same.
    """
    name = getattr(function, "__name__", type(function).__name__)
    plain = isinstance(function, type) or (
        isinstance(function, types.FunctionType)
        and function.__qualname__ == name != "<lambda>"
        and function.__closure__ is None
    )
    if plain and function.__module__.startswith("dpmic_jax."):
        return name
    return f"{name} {hashlib.sha256(repr(_told(function)).encode()).hexdigest()[:32]}"


def _told(value: Any) -> Any:
    """What tells a value from others, as something whose repr does."""
    if isinstance(value, functools.partial):
        return "partial", _told(value.func), _told(value.args), _items(value.keywords)
    if isinstance(value, types.MethodType):
        return "method", _told(value.__func__), _told(value.__self__)
    if isinstance(value, types.FunctionType):
        closed = [cell.cell_contents for cell in value.__closure__ or ()]
        return (
            value.__module__,
            value.__qualname__,
            _told(value.__code__),
            _told(value.__defaults__),
            _items(value.__kwdefaults__ or {}),
            _told(tuple(closed)),
        )
    if isinstance(value, types.CodeType):
        return value.co_code, _told(value.co_consts), value.co_names
    if isinstance(value, type):
        return value.__module__, value.__qualname__
    if isinstance(value, tuple):
        return [_told(each) for each in value]
    params = getattr(value, "__dataclass_params__", None)
    fixed = isinstance(value, _FIXED) or (params is not None and params.frozen)
    return type(value).__qualname__, repr(value) if fixed else None


def _items(named: dict[str, Any]) -> Any:
    return _told(tuple(sorted(named.items(), key=lambda item: item[0])))
