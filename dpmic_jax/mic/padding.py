"""The sizes that programs are compiled for: a few, so that one program serves many tables.

XLA compiles a program for every shape of its arguments. So sizes are rounded up to a rung, what is
beyond the true size is filled with what changes no result, and how much is true is an argument.
"""

import math

# Rounding up may waste so many bytes; a table for which it would is long worked on, and then
# compiling a program of its own does not matter.
MOST_WASTE = 2**25


def rung(size: int, bits: int) -> int:
    """The next number with `bits` significant bits: at most 2^(1 - bits) of it is waste."""
    step = 1 << max(0, (size - 1).bit_length() - bits)
    return -(-size // step) * step


def decade(size: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, ...: for what costs memory and no time."""
    ten = 10 ** (math.ceil(math.log10(size)) - 1) if size > 1 else 1
    return next(ten * digit for digit in (1, 2, 5, 10) if ten * digit >= size)


def decade_if_small(size: int, item_bytes: int) -> int:
    """`decade`, unless that wastes much memory."""
    return decade(size) if (decade(size) - size) * item_bytes <= MOST_WASTE else size
