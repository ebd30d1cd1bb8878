"""Scores of a level's queries as integer points of a lattice, to which noise is added."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
from jaxtyping import Int64

from dpmic_jax.causal.queries import DependenceTest, Query
from dpmic_jax.dp.noise.lattice import Lattice

TOP = 2**28  # points are clipped here, so that a point plus noise fits int32
# The sensitivity has fewer steps than this. It is rounded up to whole steps, which adds 1 % to the
# noise at most, unless even 30 bits give it fewer than 128 steps.
_STEPS = 256
_BITS = range(30, 0, -1)

Built = TypeVar("Built")


class LevelRefused(Exception):  # noqa: N818 - a reason to stop, not a mistake of the caller
    """The noise of a level cannot be drawn, or the tables of its queries are too large."""


def level_lattice(sensitivity: Fraction) -> Lattice:
    """The finest lattice on which the sensitivity is below 256 steps, or else the coarsest one."""
    for bits in _BITS:
        steps = -(-(sensitivity * 2**bits) // 1)
        if steps < _STEPS or bits == _BITS[-1]:
            return Lattice(bits=bits, sensitivity=int(steps))
    raise AssertionError


def level_points(
    test: DependenceTest, queries: Sequence[Query], lattice: Lattice
) -> Int64[np.ndarray, " queries"]:
    """Points in 0 .. TOP. Clipping moves no two points further apart, so the sensitivity holds."""
    return np.clip(np.asarray(test.points(queries, lattice), np.int64), 0, TOP)


def point_of(value: Fraction, lattice: Lattice) -> int:
    """A public number, such as the threshold, as a lattice point, rounded down."""
    return min(int(value * 2**lattice.bits // 1), TOP)


def padded(
    points: Int64[np.ndarray, " queries"], size: int, filler: int
) -> Int64[np.ndarray, " size"]:
    """Pad to `size` points, so that one compiled program serves all rounds of a level."""
    return np.concatenate([points, np.full(size - len(points), filler, np.int64)])


def power_of_two(count: int) -> int:
    """The smallest power of two that is at least `count`."""
    return 1 << (count - 1).bit_length()


def build_or_refuse(build: Callable[[], Built]) -> Built:
    """Call `build`, and turn its ValueError into `LevelRefused`.

    Only public numbers decide whether `build` fails, so ending the search there reveals nothing.
    """
    try:
        return build()
    except ValueError as error:
        raise LevelRefused(str(error)) from error
