"""The type checker that the tests wrap the package in: shapes, dtypes, and int for float."""

import functools
import itertools

import jaxtyping
from beartype import BeartypeConf, beartype

# What is traced is called a few times, what is numpy's thousands of times, and checking would take
# most of it: a function's first calls in a process are checked, and one in so many of the others.
FIRST, THEN = 500, 50

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
_jaxtyped = jaxtyping.jaxtyped


def sampled(*, typechecker):
    """`jaxtyping.jaxtyped`, which takes long by itself, around some of the calls only."""

    def decorated(function):
        strict, calls = _jaxtyped(function, typechecker=typechecker), itertools.count()
        if isinstance(function, type):
            return strict

        @functools.wraps(function)
        def often(*arguments, **named):
            number = next(calls)
            run = strict if number < FIRST or number % THEN == 0 else function
            return run(*arguments, **named)

        return often

    return decorated
