"""What the Pallas kernels of a program do, off the traced program: XLA does not look into them."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

ARITHMETIC = frozenset(
    """
    add sub mul div max min and or xor not neg abs eq ne lt le gt ge select_n clamp cumsum
    shift_left shift_right_logical shift_right_arithmetic convert_element_type
    reduce_max reduce_sum
    """.split()  # noqa: SIM905 - a table
)


class Work(NamedTuple):
    """Of one launch: operations of an element each, and numbers that are looked up in a table."""

    operations: int
    lookups: int

    def times(self, number: int) -> "Work":
        """So often."""
        return Work(number * self.operations, number * self.lookups)


def work_of(program: Any) -> list[Work]:
    """Of every Pallas kernel of a traced program, in order."""
    return list(_kernels(program.jaxpr.jaxpr))


def _kernels(jaxpr: Any) -> Iterator[Work]:
    for equation in jaxpr.eqns:
        if equation.primitive.name == "pallas_call":
            mapping = equation.params["grid_mapping"]
            yield _work(equation.params["jaxpr"]).times(math.prod(mapping.grid))
        else:
            for inner in _inner(equation):
                yield from _kernels(inner)


def _inner(equation: Any) -> Iterator[Any]:
    for value in equation.params.values():
        inner = getattr(value, "jaxpr", value)
        if hasattr(inner, "eqns"):
            yield inner


def _work(jaxpr: Any) -> Work:
    total = Work(0, 0)
    for equation in jaxpr.eqns:
        found = _of(equation)
        total = Work(total.operations + found.operations, total.lookups + found.lookups)
    return total


def _of(equation: Any) -> Work:
    name, params = equation.primitive.name, equation.params
    if name in ("while", "cond"):
        raise ValueError(f"expected loops of known length in a kernel, got {name}")
    times = params.get("length", 1)
    nested = [_work(inner).times(times) for inner in _inner(equation)]
    sizes = [math.prod(var.aval.shape) for var in equation.outvars]
    if name.startswith("reduce_"):
        sizes = [math.prod(var.aval.shape) for var in equation.invars]
    own = sum(sizes) if name in ARITHMETIC or name in ("get", "masked_load") else 0
    # What is not a slice of a block is looked up, element by element.
    gathers = name == "get" and any(
        len(var.aval.shape) > 0 for var in equation.invars[1:] if hasattr(var, "aval")
    )
    return Work(
        own + sum(each.operations for each in nested),
        own * gathers + sum(each.lookups for each in nested),
    )
