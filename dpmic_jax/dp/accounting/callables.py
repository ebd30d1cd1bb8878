"""Names of functions for the settings of an event, with a digest of what the function does.

Equal events share their noise under a seeded key, and all lambdas have the same name, so a name
alone would not tell two functions apart.
"""

import functools
import hashlib
import types
from collections.abc import Callable
from numbers import Number
from typing import Any

_FIXED = (Number, str, bytes, type(None))


def callable_name(function: Callable[..., Any]) -> str:
    """The name of a function or class, followed by a digest unless it is one of this package.

    Classes and module-level functions of `dpmic_jax` are identified by their names. For everything
    else the digest covers the code, the defaults and the closed-over values, as far as they are
    immutable: a run that is resumed in another process has to find the same digest.
    """
    name = getattr(function, "__name__", type(function).__name__)
    plain = isinstance(function, type) or (
        isinstance(function, types.FunctionType)
        and function.__qualname__ == name != "<lambda>"
        and function.__closure__ is None
    )
    if plain and function.__module__.startswith("dpmic_jax."):
        return name
    return f"{name} {hashlib.sha256(repr(_identity(function)).encode()).hexdigest()[:32]}"


def _identity(value: Any) -> Any:
    """Nested tuples and lists whose repr identifies a value, and is the same in every process."""
    if isinstance(value, functools.partial):
        return "partial", _identity(value.func), _identity(value.args), _items(value.keywords)
    if isinstance(value, types.MethodType):
        return "method", _identity(value.__func__), _identity(value.__self__)
    if isinstance(value, types.FunctionType):
        closed = [cell.cell_contents for cell in value.__closure__ or ()]
        return (
            value.__module__,
            value.__qualname__,
            _identity(value.__code__),
            _identity(value.__defaults__),
            _items(value.__kwdefaults__ or {}),
            _identity(tuple(closed)),
        )
    if isinstance(value, types.CodeType):
        return value.co_code, _identity(value.co_consts), value.co_names
    if isinstance(value, type):
        return value.__module__, value.__qualname__
    if isinstance(value, tuple):
        return [_identity(each) for each in value]
    if isinstance(value, frozenset):  # what a set display in a condition is compiled to
        return "frozenset", sorted(repr(_identity(each)) for each in value)
    # Of other values only the type enters: their repr may hold an address, or change.
    params = getattr(value, "__dataclass_params__", None)
    fixed = isinstance(value, _FIXED) or (params is not None and params.frozen)
    return type(value).__qualname__, repr(value) if fixed else None


def _items(named: dict[str, Any]) -> Any:
    return _identity(tuple(sorted(named.items(), key=lambda item: item[0])))
