"""The programs for a GPU, run on a CPU: Triton's kernels by Pallas's interpreter."""

from functools import partial

from dpmic_jax.mic import backends, optimise_triton, prefix_triton

ORIGINALS = optimise_triton.best_information, prefix_triton.prefix_sums


def like_a_gpu(patch, *, triton):
    """Lay out for a CPU as for a GPU, with Triton's kernels or without."""
    patch.setitem(backends._BACKENDS, "cpu", backends.GPU._replace(triton=triton))
    optimise, prefix = (partial(function, interpret=True) for function in ORIGINALS)
    patch.setattr(optimise_triton, "best_information", optimise)
    patch.setattr(prefix_triton, "prefix_sums", prefix)
