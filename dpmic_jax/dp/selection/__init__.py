"""Choosing among candidates by private scores: which is best, which are the best, which pass.

| to choose | selector | told |
|---|---|---|
| one | `PermuteAndFlip`, `ExponentialMechanism`, `NoisyMax` | its index |
| k of them | `OneShotTopK`, `PeeledTopK` | a set; a sequence |
| those above a threshold | `SparseVector` | the first so many, in order |
| the same, on subsamples first | `SieveAndExamine` (docs/sieve.md) | who was examined, who passed |

Scores are integers, of which one person can move each by `sensitivity`; the data are not seen
otherwise. Everything is exactly what its `guarantee` says, by proofs that start from the random
words (docs/selection.md), with delta_numerical = 0.
"""

from dpmic_jax.dp.selection.exponential import ExponentialMechanism
from dpmic_jax.dp.selection.iterative_top_k import PeeledTopK
from dpmic_jax.dp.selection.noisy_max import NoisyMax
from dpmic_jax.dp.selection.permute_and_flip import (
    PermuteAndFlip,
    SelectionCertificate,
    chosen,
    first,
    selected,
)
from dpmic_jax.dp.selection.sieve import SieveAndExamine
from dpmic_jax.dp.selection.sparse_vector import SparseVector
from dpmic_jax.dp.selection.top_k import OneShotTopK

__all__ = [
    "ExponentialMechanism",
    "NoisyMax",
    "OneShotTopK",
    "PeeledTopK",
    "PermuteAndFlip",
    "SelectionCertificate",
    "SieveAndExamine",
    "SparseVector",
    "chosen",
    "first",
    "selected",
]
