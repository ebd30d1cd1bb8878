"""How a plan is laid out on a device: in which buckets, and how many pairs and lanes at a time."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dpmic_jax.mic.backends import SPLIT_AT_ONCE
from dpmic_jax.mic.grids import Bucket, Grid, masters
from dpmic_jax.mic.optimise import lanes_in_one_thread
from dpmic_jax.mic.padding import rung


class Layout(NamedTuple):
    """How a plan is laid out on a device; it changes the speed, never the result."""

    buckets: tuple[Bucket, ...]
    pairs: int  # room in a tile
    lanes: int  # that are optimised side by side, at most
    lane_by_lane: bool  # so a CPU is three times faster; a GPU would starve: `at_once`
    triton: bool = False  # OptimizeAxis by its own kernel (`triton`)
    edges: bool = False  # columns that are merged are counted up to their edges (`at_once`)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of the plan, in the order in which their scores are returned."""
        return tuple(grid for bucket in self.buckets for grid in bucket.grids)

    def lanes_of(self, bucket: Bucket) -> int:
        """Lanes that are optimised side by side."""
        if not self.lane_by_lane:
            lanes, most = self._lanes(bucket), self.lanes
            if bucket.parts <= 1:
                most = min(most, SPLIT_AT_ONCE)
            turns = 1 if self.triton and bucket.parts > 1 else -(-lanes // most)
            return -(-lanes // turns)
        if bucket.parts <= 1:
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

    def counted(self, bucket: Bucket) -> tuple[int, int]:
        """Of what is counted of a lane: its cells, or rows and their sum up to each edge."""
        if self.edges and bucket.parts > 1:
            return bucket.rows + 1, bucket.master + 1
        return bucket.master, bucket.rows

    def _lanes(self, bucket: Bucket) -> int:
        return 2 * self.pairs * len(bucket.grids)

    def cells_of(self, bucket: Bucket) -> int:
        """Of all counts of a bucket."""
        return self.room(bucket) * math.prod(self.counted(bucket))

    @property
    def cells(self) -> int:
        """Of all counts of a tile."""
        return sum(map(self.cells_of, self.buckets))

    def spots(self) -> Iterator[tuple[Bucket, Array, Array]]:
        """Each bucket, with where the tables of codes or edges have its masters and rows."""
        place = {size: index for index, size in enumerate(masters(self.grids))}
        begin = 0
        for bucket in self.buckets:
            columns = np.array([place[grid.columns] for grid in bucket.grids], np.int32)
            rows = np.arange(begin, begin + len(bucket.grids), dtype=np.int32)
            begin += len(bucket.grids)
            yield bucket, jnp.asarray(columns), jnp.asarray(rows)
