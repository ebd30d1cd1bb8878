"""Private selection: choose candidates by their scores.

| to choose | selector | what is released |
|---|---|---|
| one candidate | `PermuteAndFlip`, `ExponentialMechanism`, `NoisyMax` | its index |
| k candidates | `OneShotTopK`; `PeeledTopK`, `ZCDPTopK` | a set; a sequence |
| candidates above a threshold | `SparseVector` | the first `at_most` of them, in order |
| the same, with less noise | `SingleThresholdSparseVector` | the same |
| the same, by subsamples | `SieveAndExamine` (docs/sieve.md) | the examined and the passing ones |

Scores are integers. One person's records change each score by at most `sensitivity`, and a selector
sees nothing else of the data. Every `guarantee` holds exactly, with delta_numerical = 0: the proofs
start from the random words (docs/selection.md).
"""

from dpmic_jax.dp.selection.exponential import ExponentialMechanism
from dpmic_jax.dp.selection.iterative_top_k import PeeledTopK
from dpmic_jax.dp.selection.noisy_max import NoisyMax
from dpmic_jax.dp.selection.permute_and_flip import PermuteAndFlip, chosen, first, selected
from dpmic_jax.dp.selection.selector import SelectionCertificate
from dpmic_jax.dp.selection.sieve import SieveAndExamine
from dpmic_jax.dp.selection.single_threshold import SingleThresholdSparseVector
from dpmic_jax.dp.selection.sparse_vector import SparseVector
from dpmic_jax.dp.selection.top_k import OneShotTopK
from dpmic_jax.dp.selection.zcdp_top_k import ZCDPTopK

__all__ = [
    "ExponentialMechanism",
    "NoisyMax",
    "OneShotTopK",
    "PeeledTopK",
    "PermuteAndFlip",
    "SelectionCertificate",
    "SieveAndExamine",
    "SingleThresholdSparseVector",
    "SparseVector",
    "ZCDPTopK",
    "chosen",
    "first",
    "selected",
]
