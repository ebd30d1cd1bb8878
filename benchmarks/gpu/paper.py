"""Costs of whole tasks on paper: `python -m benchmarks.gpu` prints them and keeps them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

from benchmarks.gpu import cubin, pallas, programs
from benchmarks.gpu.model import Cost, Device, cost_of
from benchmarks.gpu.programs import HERE, Step
from dpmic_jax.mic import backends

NONE = cubin.Compiled(0, 0)


class Row(NamedTuple):
    """A task on a device.

    Attributes:
      device, task, part: which; `part` is what is measured, or how.
      kernels: whether with the kernels of this library, or by XLA alone.
      pairs: how many.
      cost: of all pairs.
      memory: bytes of the program that takes most, with its arguments and results.
      registers: of a thread of the Pallas kernel that takes most.
      kernel_spills: bytes of memory that a thread of one takes for want of registers.
      spills: and one of any kernel, XLA's included.
    """

    device: str
    task: str
    part: str
    kernels: bool
    pairs: int
    cost: Cost
    memory: int
    registers: int
    kernel_spills: int
    spills: int

    @property
    def kept(self) -> dict[str, Any]:
        """As it is written to the results."""
        return self._asdict() | {"cost": self.cost._asdict()}


def rows(device: str, *, kernels: bool, tasks: list[str]) -> Iterator[Row]:
    """Of all parts of some tasks, in memory; of one also in streaming, and of its noise."""
    described = programs.described(device)
    with by_xla_alone() if not kernels else _nothing():
        for name in tasks:
            task = programs.TASKS[name]()
            for part, steps in programs.scoring(task, described).items():
                yield _row(device, described, name, part, kernels, task.pairs, steps)
            if name == programs.STREAMED:
                steps = programs.streaming_steps(task, described)
                yield _row(device, described, name, "streaming", kernels, task.pairs, steps)
                steps = programs.noise_steps(task.pairs)
                yield _row(device, described, name, "noise", kernels, task.pairs, steps)


def _row(
    device: str, described: Any, task: str, part: str, kernels: bool, pairs: int, steps: list[Step]
) -> Row:
    able, cost, memory, found = Device.read(HERE / f"{device}.txtpb"), Cost(), 0, []
    for step in steps:
        traced = programs.traced(step.call, described)
        done = traced.lower().compile()
        cost += cost_of(done.as_text(), pallas.work_of(traced), able).times(step.times)
        sizes = done.memory_analysis()
        memory = max(
            memory,
            sizes.temp_size_in_bytes + sizes.argument_size_in_bytes + sizes.output_size_in_bytes,
        )
        found += cubin.kernels(done.runtime_executable().serialize()).items()
    if not found:
        raise ValueError("expected machine code: its format has changed, see `cubin`")
    # Pallas names a kernel after its function.
    ours = [each for name, each in found if re.fullmatch(r"kernel(_\d+)?", name)] or [NONE]
    return Row(
        device,
        task,
        part,
        kernels,
        pairs,
        cost,
        memory,
        max(each.registers for each in ours),
        max(each.spilled for each in ours),
        max(each.spilled for _, each in found),
    )


@contextmanager
def by_xla_alone() -> Iterator[None]:
    """Without the kernels of this library."""
    with mock.patch.dict(backends._BACKENDS, gpu=backends.GPU._replace(triton=False)):
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield
