"""Compiled programs, each made once for its shapes and shared by all callers.

A program is a function of arrays, its static settings, and the devices it is split over. Programs
that are needed together are compiled side by side: XLA takes one core for each.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

EVERYWHERE, SPLIT = PartitionSpec(), PartitionSpec("pairs")
# Level 1 compiles a quarter faster and runs as fast: what matters is vectorised by XLA itself. A
# CPU that has wide vectors is told to use them. A tile runs on one core, and other tiles beside
# it, so that the order that takes the least memory is best.
OPTIONS = {
    "cpu": {
        "xla_backend_optimization_level": 1,
        "xla_cpu_prefer_vector_width": 512,
        "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
    }
}


class Program(NamedTuple):
    """What is compiled.

    Attributes:
      function: of arrays, and of static settings by name.
      settings: the static settings.
      inputs: how each argument is spread over the devices.
      outputs: how what is returned is.
      overwritten: numbers of the arguments whose memory is that of what is returned.
    """

    function: Callable[..., Any]
    settings: tuple[tuple[str, Any], ...]
    inputs: tuple[PartitionSpec, ...]
    outputs: PartitionSpec
    overwritten: tuple[int, ...] = ()

    def on(self, mesh: Mesh) -> jax.stages.Wrapped:
        """Jitted for some devices, each of which takes its part of the arguments."""
        run = partial(self.function, **dict(self.settings))
        if mesh.size > 1:
            run = jax.shard_map(
                run, mesh=mesh, in_specs=self.inputs, out_specs=self.outputs, check_vma=False
            )
        return jax.jit(
            run,
            in_shardings=tuple(NamedSharding(mesh, spec) for spec in self.inputs),
            out_shardings=NamedSharding(mesh, self.outputs),
            donate_argnums=self.overwritten,
        )


Call = tuple[Program, tuple[Any, ...]]


def compiled(program: Program, mesh: Mesh, *arguments: Any) -> Callable[..., Any]:
    """A program for arguments of these shapes."""
    leaves, tree = jax.tree.flatten(arguments)
    shapes = tuple((np.shape(leaf), np.dtype(leaf.dtype)) for leaf in leaves)
    return _compiled(program, mesh, tree, shapes)


def compiled_together(mesh: Mesh, calls: Sequence[Call]) -> list[Callable[..., Any]]:
    """Programs, each for its arguments, compiled side by side."""
    with ThreadPoolExecutor(min(len(calls), os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda call: compiled(call[0], mesh, *call[1]), calls))


@lru_cache(maxsize=1024)
def _compiled(program: Program, mesh: Mesh, tree: Any, shapes: Any) -> Callable[..., Any]:
    leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    lowered = program.on(mesh).lower(*jax.tree.unflatten(tree, leaves))
    try:
        return lowered.compile(compiler_options=OPTIONS.get(mesh.devices.flat[0].platform))
    except jax.errors.JaxRuntimeError:  # an XLA that does not know these options
        return lowered.compile()


def on_devices(mesh: Mesh, arrays: Any) -> Any:
    """A copy of some arrays on every device."""
    return jax.device_put(arrays, NamedSharding(mesh, EVERYWHERE))
