"""Scores of a level's queries as integer points, for noise to be added to."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
from jaxtyping import Int64

from dpmic_jax.causal.queries import DependenceTest, Query
from dpmic_jax.dp.noise.lattice import Lattice

TOP = 2**28  # points beyond count as this: noise of any law fits above it
_STEPS = 256  # fewer steps of sensitivity than this; to round them up costs a hundredth or less
_BITS = range(30, 0, -1)

Law = TypeVar("Law")


class LevelRefused(Exception):  # noqa: N818 - a reason to stop, not a mistake of the caller
    """The noise of a level cannot be drawn, or its queries cannot be asked."""


def level_lattice(sensitivity: Fraction) -> Lattice:
    """The finest one with fewer than 256 steps of sensitivity, if there is one."""
    for bits in _BITS:
        steps = -(-(sensitivity * 2**bits) // 1)
        if steps < _STEPS or bits == _BITS[-1]:
            return Lattice(bits=bits, sensitivity=int(steps))
    raise AssertionError


def level_points(
    test: DependenceTest, queries: Sequence[Query], lattice: Lattice
) -> Int64[np.ndarray, " queries"]:
    """Points in 0 .. TOP. Cutting off moves no two of them further apart."""
    return np.clip(np.asarray(test.points(queries, lattice), np.int64), 0, TOP)


def point_of(value: Fraction, lattice: Lattice) -> int:
    """A public number as a point."""
    return min(int(value * 2**lattice.bits // 1), TOP)


def padded(
    points: Int64[np.ndarray, " queries"], size: int, filler: int
) -> Int64[np.ndarray, " size"]:
    """`size` points, so that one compiled program serves all rounds of a level."""
    return np.concatenate([points, np.full(size - len(points), filler, np.int64)])


def power_of_two(count: int) -> int:
    """The least power of two that is not below `count`."""
    return 1 << (count - 1).bit_length()


def priced(build: Callable[[], Law]) -> Law:
    """What `build` makes; what it refuses, which public numbers decide, is `LevelRefused`."""
    try:
        return build()
    except ValueError as error:
        raise LevelRefused(str(error)) from error
