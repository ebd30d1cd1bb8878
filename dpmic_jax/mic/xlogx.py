"""phi(a) = a log2 a of counts, in two ways: fast in float32, or exact in integers.

Both are pytrees with three methods. `prepare` brings counts into the form in which
differences and phi are taken; `phi` is right for a >= 0 and does no harm for a < 0; `units`
divides a sum of phi by n and gives it in units of 2^-26 bits, as int32. So the recursion
only adds and compares integers, and gives the same bits in any order.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from dpmic_jax.mic.padding import decade_if_small

# A table of n records has at most log2(n) < 32 bits, so int32 holds it.
UNIT = 2**26
_CHUNK = 2**15  # counts whose phi is computed at a time: they stay in cache


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FastGains:
    """phi by a polynomial in float32: information within 2e-6 bits, for n up to 2^24.

    Counts are scaled by a power of two to at most 1. That is exact, and keeps the terms of
    a sum small, so that nothing large cancels. n is no constant of a program, but data.

    Attributes:
      shrink: the power of two.
      grow: brings a gain back, in units, and divides it by n.
    """

    shrink: Any  # Float32[Array, ""]; inside jax.tree it also holds placeholders
    grow: Any
    # Less than this many units is rounding: a constant column has to say exactly nothing.
    least = 8
    # Rows that are evaluated in one kernel: more of them are faster, until compiling takes long.
    unrolled = 128

    @staticmethod
    def of(n: int) -> "FastGains":
        """Scaled for n records, so that float32 keeps its precision whatever n is."""
        power = 2.0 ** (n - 1).bit_length()
        return FastGains(np.float32(1 / power), np.float32(UNIT / EXPONENT * power / n))

    def prepare(self, counts: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Counts as fractions of the power of two above n."""
        return counts.astype(jnp.float32) * self.shrink

    def phi(self, counts: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """a log2 a of prepared counts, in float32."""
        return xlog2x(counts)

    def units(self, gain: Float[Array, "*shape"]) -> Int[Array, "*shape"]:
        """A sum of phi in units of 2^-26 bits."""
        return (gain * self.grow).astype(jnp.int32)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ExactGains:
    """phi(a) / n from a table of integers: the same bits on any device."""

    table: Any  # Int[Array, " n_plus_1_up"]
    least = 0
    unrolled = 32

    def prepare(self, counts: Int[Array, "*shape"]) -> Int[Array, "*shape"]:
        """Counts as they are: they index the table."""
        return counts

    def phi(self, counts: Int[Array, "*shape"]) -> Int[Array, "*shape"]:
        """The table's integer for each count; a difference of edges may have either sign."""
        return self.table.at[jnp.abs(counts)].get(mode="promise_in_bounds")

    def units(self, gain: Int[Array, "*shape"]) -> Int[Array, "*shape"]:
        """Table entries are in units of 2^-26 bits already."""
        return gain


@runtime_checkable
class Gains(Protocol):
    """What the recursion needs of either, or of another way to evaluate phi."""

    @property
    def least(self) -> int:
        """Information below this many units is rounding, and counts as none."""
        ...

    @property
    def unrolled(self) -> int:
        """How many rows are evaluated in one kernel."""
        ...

    def prepare(self, counts: Any) -> Any:
        """Bring counts into the form that `phi` takes."""
        ...

    def phi(self, counts: Any) -> Any:
        """a log2 a of prepared counts, up to a constant factor."""
        ...

    def units(self, gain: Any) -> Any:
        """Convert a sum of `phi` to units of 2^-26 bits."""
        ...


def fast_gains(n: int) -> FastGains:
    """Gains for the statistics that are not released."""
    if n > 2**24:
        raise ValueError(
            f"float32 counts are exact up to {2**24} records, got n={n}; pass gains=exact_gains"
        )
    return FastGains.of(n)


def exact_gains(n: int) -> ExactGains:
    """Gains for everything that is released: round(2^26 phi(a) / n) for a = 0 .. n."""
    if n >= 2**31:
        raise ValueError(f"counts are 32-bit integers, got n={n}; use at most {2**31 - 1} records")
    # As long as for other n: the same programs serve them. No count is beyond n.
    filled = np.zeros(1 + decade_if_small(n, 4), np.int32)
    for begin in range(0, n + 1, _CHUNK):
        filled[begin : begin + _CHUNK][: n + 1 - begin] = _rounded_phi(begin, n)
    return ExactGains(filled)


def _rounded_phi(begin: int, n: int) -> Int[np.ndarray, " some"]:
    """round(2^26 phi(a) / n) of a run of counts a."""
    count = np.arange(begin, min(begin + _CHUNK, n + 1), dtype=np.float64)
    scaled = count * np.log2(np.maximum(count, 1)) * (UNIT / n)
    table = np.rint(scaled)
    # float64 is within 1e-6 units of the truth. Where that could tip the rounding, decide by
    # arithmetic of 40 digits, so that every platform builds the same table.
    for at in np.flatnonzero(np.abs(scaled - np.floor(scaled) - 0.5) < 1e-5):
        a = begin + int(at)
        with localcontext(prec=40):
            bits = Decimal(a).ln() / Decimal(2).ln()
            table[at] = int((bits * a * UNIT / n).to_integral_value())
    return table.astype(np.int32)


def gains_for(n: int) -> Gains:
    """Float gains where they keep their promise of 2e-6, integer gains beyond."""
    return fast_gains(n) if n <= 2**24 else exact_gains(n)


def _coefficients(degree: int) -> tuple[np.float32, ...]:
    """log2(1 + u) / u on sqrt(1/2) <= 1 + u <= sqrt(2), by least squares at Chebyshev nodes.

    Weighted by |u|, since the error of the logarithm is u times that of the ratio: 3.4e-7 at
    most for degree 6, near the best that is possible (3.0e-7).
    """
    low, high = np.sqrt(0.5) - 1, np.sqrt(2) - 1
    u = (low + high + (high - low) * np.cos(np.pi * (np.arange(1000) + 0.5) / 1000)) / 2
    fit = np.polynomial.Chebyshev.fit(
        u, np.log1p(u) / u / np.log(2), degree, domain=[low, high], w=np.abs(u)
    )
    return tuple(np.float32(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


# One unit in the exponent of a float32 adds this to its bits.
EXPONENT = 2**23
_SQRT_HALF = np.int32(0x3F3504F3)  # the bits of sqrt(1/2)
_LOG2 = tuple(np.float32(EXPONENT) * c for c in _coefficients(6))


def xlog2x(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """2^23 x log2 x for x >= 0 in float32, without branches, and exactly 0 at 0.

    x = 2^e (1 + u) with sqrt(1/2) <= 1 + u < sqrt(2) is taken apart by its bits. Their
    exponent field holds e in units of 2^23, and leaving that factor in saves a shift.
    """
    bits = lax.bitcast_convert_type(x, jnp.int32)
    exponent = (bits - _SQRT_HALF) & np.int32(-EXPONENT)
    u = lax.bitcast_convert_type(bits - exponent, jnp.float32) - np.float32(1)
    series = jnp.full_like(x, _LOG2[-1])
    for coefficient in _LOG2[-2::-1]:
        series = series * u + coefficient
    return x * (exponent.astype(jnp.float32) + u * series)
