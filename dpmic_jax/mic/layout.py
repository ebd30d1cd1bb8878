"""How a plan is laid out on a device: in which buckets, and how many pairs and lanes at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dpmic_jax.mic.grids import Bucket, Grid
from dpmic_jax.mic.optimise import lanes_in_one_thread
from dpmic_jax.mic.padding import rung


class Layout(NamedTuple):
    """How a plan is laid out on a device; it changes the speed, never the result."""

    buckets: tuple[Bucket, ...]
    pairs: int  # room in a tile
    lanes: int  # that are optimised side by side, at most
    lane_by_lane: bool  # so a CPU is three times faster; a GPU would starve: `at_once`
    triton: bool = False  # OptimizeAxis by its own kernel (`triton`)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of the plan, in the order in which their scores are returned."""
        return tuple(grid for bucket in self.buckets for grid in bucket.grids)

    @property
    def masters(self) -> tuple[int, ...]:
        """The distinct master sizes of the plan, ascending."""
        return tuple(sorted({grid.master for grid in self.grids}))

    def lanes_of(self, bucket: Bucket) -> int:
        """Lanes that are optimised side by side."""
        if not self.lane_by_lane:
            lanes = self._lanes(bucket)
            turns = 1 if self.triton and bucket.parts > 1 else -(-lanes // self.lanes)
            return -(-lanes // turns)
        if bucket.parts == 1:
            return self.lanes
        return lanes_in_one_thread(bucket.rows, bucket.master, bucket.parts, self.lanes)

    def room(self, bucket: Bucket) -> int:
        """Lanes that a bucket has room for; on a CPU on a rung, to share programs."""
        lanes = self.lanes_of(bucket)
        turns = -(-self._lanes(bucket) // lanes)
        return lanes * (rung(turns, 3) if self.lane_by_lane else turns)

    def shape(self, bucket: Bucket) -> tuple[int, int, int]:
        """Of what is found: turns, scores of a lane, and lanes side by side."""
        lanes = self.lanes_of(bucket)
        return self.room(bucket) // lanes, max(1, bucket.parts - 1), lanes

    def _lanes(self, bucket: Bucket) -> int:
        return 2 * self.pairs * len(bucket.grids)

    def cells_of(self, bucket: Bucket) -> int:
        """Of all counts of a bucket."""
        return self.room(bucket) * bucket.master * bucket.rows

    @property
    def cells(self) -> int:
        """Of all counts of a tile."""
        return sum(map(self.cells_of, self.buckets))

    def spots(self) -> Iterator[tuple[Bucket, Array, Array]]:
        """Each bucket, with where the tables of codes or edges have its masters and rows."""
        place = {size: index for index, size in enumerate(self.masters)}
        begin = 0
        for bucket in self.buckets:
            masters = np.array([place[grid.master] for grid in bucket.grids], np.int32)
            rows = np.arange(begin, begin + len(bucket.grids), dtype=np.int32)
            begin += len(bucket.grids)
            yield bucket, jnp.asarray(masters), jnp.asarray(rows)
