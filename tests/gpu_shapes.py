"""The shapes (rows, master, parts) for which OptimizeAxis runs on a GPU.

`python gpu_shapes.py a100` compiles the kernel for all of them, and prints what each takes.
"""

import json
import sys
from pathlib import Path

import numpy as np

from dpmic_jax import mechanisms
from dpmic_jax.mic import backends
from dpmic_jax.mic.grids import (
    Bucket,
    Grid,
    all_sizes,
    buckets,
    definition,
    ladder,
    plan,
    reshef,
)
from dpmic_jax.mic.kernel import optimising_program
from dpmic_jax.mic.optimise_triton import chunk_of
from dpmic_jax.mic.xlogx import exact_gains, fast_gains

_TUNED = Path(mechanisms.__file__).parent / "tuned.json"


def shapes():
    """Of screens and of README's cases, and of tuned settings one for each other layout.

    Nothing but the length of a loop depends on the number of rows.
    """
    settings = [(n**0.6, 15, all_sizes, reshef) for n in (50, 337, 1000, 4381)]
    settings += [(B, 5, ladder(1.25), reshef) for B in (12, 24, 40, 80, 150)]
    settings += [(150, 1, all_sizes, reshef), (40, 5, all_sizes, definition)]
    found = _of(settings)
    known = set(map(_laid_out, found))
    return [*found, *(shape for shape in _of(_tuned()) if _is_new(_laid_out(shape), known))]


def _is_new(layout, known):
    return layout not in known and not known.add(layout)


def _tuned():
    """All settings of `defaults` and `cheap_defaults`."""
    for entry in json.loads(_TUNED.read_text())["settings"]:
        for kind in (entry["accurate"], entry["cheap"]):
            sizes = ladder(kind["ratio"]) if kind["ratio"] > 1 else all_sizes
            yield kind["B"], kind["c"], sizes, reshef


def _of(settings):
    found = set()
    for B, c, sizes, master in settings:
        grids = plan(B=B, c=c, master=master, sizes=sizes)
        for pairs in (66, 4096):
            for bucket in buckets(grids, pairs, backends.gpu_seconds):
                found.add((bucket.rows, bucket.master, bucket.parts))
    return sorted(found)


def _laid_out(shape):
    _, master, parts = shape
    chunk = chunk_of(master + 1, parts)
    return chunk, -(-(master + 1) // chunk), parts


def kernels(device):
    """Of every shape, with float and with integer gains: registers, and bytes spilled."""
    from benchmarks.gpu import cubin, programs

    described = programs.described(device)
    for rows, master, parts in shapes():
        bucket = Bucket((Grid(rows, master, parts),))
        program = optimising_program(bucket, 64, together=True, by_triton=True, edges=True)
        counts = np.zeros((64, rows + 1, master + 1), np.int32)
        for gains in (exact_gains(1000), fast_gains(1000)):
            done = programs.compiled((program, (counts, np.zeros(1, np.int32), gains)), described)
            found = cubin.kernels(done.runtime_executable().serialize())
            (kernel,) = (each for name, each in found.items() if name.startswith("kernel"))
            yield (rows, master, parts), type(gains).__name__, *kernel


if __name__ == "__main__":
    for found in kernels(sys.argv[1]):
        print(json.dumps(found), flush=True)
