"""How long programs would take on a GPU, on paper.

A kernel takes the longest of

* its launch, 5 us: an assumption, as launches in a loop of known length cost 3 to 5 us;
* its bytes over the memory's bandwidth: what it reads and writes at least, each once, and a sector
  of 32 bytes for each number that is gathered. No cache is assumed to help, none to be missed;
* its operations over those of all cores, one for each element and clock (no fused multiply-add);

and a program the sum of its kernels: none overlap. `cautious` adds what is disputable: that an
update of a scatter (an atomic) takes a clock of one of 80 slices of the L2, and that a number that
is looked up in a table takes a clock of its multiprocessor, as if no two of a warp shared a line.

Nothing of this was measured. What only a GPU can settle is on the page (`docs/gpu.md`).
"""

import re
from pathlib import Path
from typing import NamedTuple

from benchmarks.gpu.hlo import Kernel, Module
from benchmarks.gpu.pallas import Work

LAUNCH = 5e-6  # seconds
SLICES = 80  # of an L2
TRITON = "__gpu$xla.gpu.triton"


class Device(NamedTuple):
    """What a device can do in a second, off its description."""

    bytes: float
    operations: float
    updates: float
    lookups: float
    memory: int

    @staticmethod
    def read(path: Path) -> "Device":
        """Of a description in XLA's format."""
        fields = dict(re.findall(r"(\w+): ([\d.]+)", path.read_text()))
        clock, cores = 1e9 * float(fields["clock_rate_ghz"]), int(fields["core_count"])
        return Device(
            float(fields["memory_bandwidth"]),
            clock * cores * int(fields["fpus_per_core"]),
            clock * SLICES,
            clock * cores,
            int(fields["device_memory_size"]),
        )


class Cost(NamedTuple):
    """Of a program, or of several.

    Attributes:
      launches: of kernels.
      unknown: loops whose length only the data says; the host is asked at every turn.
      bytes, operations, updates, lookups: of all launches.
      seconds: on paper.
      cautious: the same, with updates and lookups at their worst.
    """

    launches: int = 0
    unknown: int = 0
    bytes: int = 0
    operations: int = 0
    updates: int = 0
    lookups: int = 0
    seconds: float = 0.0
    cautious: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":  # type: ignore[override]
        return Cost(*(one + two for one, two in zip(self, other, strict=True)))

    def times(self, number: int) -> "Cost":
        """So often."""
        return Cost(*(number * each for each in self))


def cost_of(text: str, pallas: list[Work], device: Device) -> Cost:
    """Of a program: its optimised HLO, and what its Pallas kernels do."""
    module, left = Module(text), list(pallas)
    total = Cost()
    for kernel in module.kernels():
        work = left.pop(0) if kernel.kind == TRITON else Work(kernel.operations, 0)
        total += _cost(kernel, work, device)
    if left:
        raise ValueError(f"expected {len(pallas)} Pallas kernels, found {len(pallas) - len(left)}")
    return total._replace(unknown=len(module.unknown))


def _cost(kernel: Kernel, work: Work, device: Device) -> Cost:
    seconds = max(LAUNCH, kernel.bytes / device.bytes, work.operations / device.operations)
    cautious = max(seconds, kernel.updates / device.updates, work.lookups / device.lookups)
    once = 1, 0, kernel.bytes, work.operations, kernel.updates, work.lookups, seconds, cautious
    return Cost(*once).times(kernel.launches)
