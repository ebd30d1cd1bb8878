"""The codes of a table, as the tile's programs take them, for either way of counting."""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Integer

from dpmic_jax.mic.backends import CPU, Backend
from dpmic_jax.mic.binning import Partitions, codes
from dpmic_jax.mic.padding import decade, decade_if_small, rung


# What follows is Any, as it may be in numpy, on a device, or only a shape.
class DirectCodes(NamedTuple):
    """Every column's part in every size, for counting grid by grid."""

    masters: Any  # Integer[Array, "sizes columns n"]
    rows: Any  # Integer[Array, "grids columns n"]


class FineCodes(NamedTuple):
    """Every column's bin in the two finest partitions, for counting once."""

    masters: Any  # Integer[Array, "columns n"]
    rows: Any  # Integer[Array, "columns n"]


class FineEdges(NamedTuple):
    """The fine bin at which each part of each size begins."""

    masters: Any  # Integer[Array, "sizes columns edges"]
    rows: Any  # Integer[Array, "grids columns row_edges"]


class RefinedCodes(NamedTuple):
    """What counting on the common refinement takes."""

    codes: FineCodes
    edges: FineEdges
    empty: Any  # Integer[Array, "columns 2 rows"]: counts of one pair in both orientations


# Codes of every size are kept up to here; beyond it only the finest ones are.
DIRECT_BYTES = 2**29
# Records that are counted on the refinement at a time.
BLOCK = 4096
_BOUNDARY = 64  # bytes: XLA copies arrays that begin elsewhere

Codes = DirectCodes | RefinedCodes


def direct_codes(masters: Partitions, rows: Partitions) -> DirectCodes:
    """Make ready for counting grid by grid."""
    shape = decade(rows.fine.shape[0]), rung(rows.fine.shape[1], 4)
    return DirectCodes(filled(codes(masters), *shape), filled(codes(rows), *shape))


def refined_codes(masters: Partitions, rows: Partitions) -> RefinedCodes:
    """Make ready for counting on the common refinement."""
    columns, n = rows.fine.shape
    each = masters.fine.itemsize + rows.fine.itemsize
    n_up = -(-decade_if_small(n, columns * each) // BLOCK) * BLOCK
    shape = decade_if_small(columns, n_up * each), n_up
    return RefinedCodes(
        FineCodes(filled(masters.fine, *shape), filled(rows.fine, *shape)),
        fine_edges(masters, rows, shape[0]),
        np.zeros(refined_shape(masters, rows), np.int32),
    )


def fine_edges(masters: Partitions, rows: Partitions, columns: int) -> FineEdges:
    """The edges of all columns, padded to `columns` columns and to a rung of rows."""
    height = rows.edges.shape[2]
    more = rung(height - 1, 4) + 1 - height  # edges past every record
    padded = np.pad(rows.edges, ((0, 0), (0, 0), (0, more)), mode="edge")
    return FineEdges(
        *(
            filled(np.moveaxis(edges, 1, 0), columns, edges.shape[2])
            for edges in (masters.edges, padded)
        )
    )


def refined_shape(masters: Partitions, rows: Partitions) -> tuple[int, int, int]:
    """Of one pair's counts on the common refinement."""
    columns, height = (rung(1 + max(map(len, one.cuts)), 5) for one in (masters, rows))
    return columns, 2, height


def filled(
    codes: Integer[np.ndarray, "*sizes columns n"], columns: int, n: int
) -> Integer[np.ndarray, "*sizes columns_up n_up"]:
    """Padded with zeros to a number of columns and records, where a CPU takes it without a copy."""
    shape = *codes.shape[:-2], columns, n
    size = math.prod(shape) * codes.itemsize
    memory = np.zeros(size + _BOUNDARY, np.uint8)
    start = -memory.ctypes.data % _BOUNDARY
    room = memory[start : start + size].view(codes.dtype).reshape(shape)
    room[..., : codes.shape[-2], : codes.shape[-1]] = codes
    return room


def cheaper_codes(masters: Partitions, rows: Partitions, backend: Backend = CPU) -> Codes:
    """Whichever way counts faster on a kind of device.

    The same way for all n of a rung, so that they share a program.
    """
    (columns, grids, _), n = rows.edges.shape, decade(rows.fine.shape[1])
    cells = (1 + max(map(len, masters.cuts))) * (1 + max(map(len, rows.cuts)))
    codes_fit = n * columns * (grids + masters.edges.shape[1]) <= DIRECT_BYTES
    if codes_fit and backend.counts_directly(n, grids, cells):
        return direct_codes(masters, rows)
    return refined_codes(masters, rows)
