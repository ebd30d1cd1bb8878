"""What is chosen by the kind of device: how programs are laid out, and by what costs.

None of it changes a result. The costs of a CPU were measured on one of its cores; those of a GPU
are a model of an A100 on paper, as nothing has been measured on one yet. A TPU has the programs of
a GPU without its kernels, and its costs, for want of others.
"""

import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax

from dpmic_jax.mic.grids import Bucket, BucketShape, cpu_seconds

Device = Any  # jax.Device, which static checkers do not take for a type


class Backend(NamedTuple):
    """The choices for one kind of device.

    Attributes:
      lane_by_lane: whether its programs are those of `kernel`, not of `at_once`.
      triton: whether it has Triton's kernel for OptimizeAxis.
      lanes: how many XLA's programs optimise side by side, at most: what fills the vector units
        and caches of a core, or a GPU.
      seconds: the price of a bucket of grids for some pairs, which steers how grids are grouped.
      cell: what a cell of the refinement takes, to be summed up and read, in units of what a
        record takes to be counted: steers which way records are counted.
      memory: bytes, where a device does not say how many it has.
    """

    lane_by_lane: bool
    triton: bool
    lanes: int
    seconds: Callable[[Bucket | BucketShape, int], float]
    cell: int
    memory: int = 2**33

    def counts_directly(self, n: int, grids: int, cells: int) -> bool:
        """Whether counting grid by grid takes less than on a refinement of so many cells."""
        return n * grids < n + self.cell * cells


# An A100's, per second: operations and bytes, a fifth of which are lost to padding.
_OPERATIONS, _BYTES = 0.8 * 9.7e12, 0.8 * 1.55e12
_LAUNCH = 5e-6
_LAUNCHES = 8  # of a bucket, in a tile
_PHI = 18  # operations, with those around it
# Compiling a bucket's program takes half a second, but it is kept, and used for many tiles.
_COMPILING = 2e-3


def gpu_seconds(bucket: Bucket | BucketShape, pairs: int) -> float:
    """A price of a bucket on a GPU: its operations and bytes, its launches, and its program."""
    rows, master, parts = bucket.rows, bucket.master, bucket.parts
    steps = 2 * master if parts == 2 else master * (master + 16) / 2
    operations = steps * (_PHI * (rows + 1) + 4 * (parts - 2))
    moved = 4 * master * rows * 8  # bytes: counted, summed up and read
    each = operations / _OPERATIONS + moved / _BYTES
    return _COMPILING + _LAUNCHES * _LAUNCH + 2 * pairs * len(bucket.grids) * each


# What the counts of a CPU's tile should take at least, so that calling programs costs little beside
# running them, and at most. The tile of other devices is the largest that their memory holds.
TILE_BYTES = 2**23, 2**30
# On other devices: bytes of counts on the refinement that are made and read off at a time, cells of
# those that are added to (as indices have 32 bits), and lanes whose distances are found, each of
# which takes 10 kB for its splits.
REFINED_BYTES, MOST_CELLS, SPLIT_AT_ONCE = 2**29, 2**30, 8192

CPU = Backend(True, False, 64, cpu_seconds, cell=5)
GPU = Backend(False, True, 65_536, gpu_seconds, cell=2)
TPU = GPU._replace(triton=False, lanes=8192)
_BACKENDS = {"cpu": CPU, "gpu": GPU, "cuda": GPU}


def backend(platform: str) -> Backend:
    """The choices for a platform, as JAX names it."""
    chosen = _BACKENDS.get(platform, TPU)
    return chosen._replace(triton=chosen.triton and _has_triton())


def _has_triton() -> bool:
    """Whether this JAX has Triton, which JAX 0.11 deprecates, and the GPUs of this machine take it.

    Without it XLA's program is used. A GPU that is not there is one that takes it.
    """
    if find_spec("jax.experimental.pallas.triton") is None:
        return False
    try:
        return all(map(_takes_triton, jax.devices("gpu")))
    except RuntimeError:
        return True


def _takes_triton(device: Device) -> bool:
    """Whether a GPU is NVIDIA's, of compute capability 8.0 (Ampere) or later."""
    found = re.fullmatch(r"(\d+)\.\d+", str(getattr(device, "compute_capability", "")))
    return found is not None and int(found[1]) >= 8


def memory_of(device: Device) -> int:
    """Bytes that a device lets programs have."""
    try:
        stats = device.memory_stats() or {}
    except Exception:
        stats = {}
    return stats.get("bytes_limit", backend(device.platform).memory)
