"""Tests of independence for the pairs that a screen selected. Nothing here is private."""

from dpmic_jax.inference.independence import CustomTest, IndependenceTest, PairTest, require_level
from dpmic_jax.inference.monte_carlo import draws_needed
from dpmic_jax.inference.multiple_testing import FalseDiscovery, FamilyWise
from dpmic_jax.inference.null_table import NullTable
from dpmic_jax.inference.nulls import NullLaw, null_law
from dpmic_jax.inference.permutation import Permutation, permutation_p_values
from dpmic_jax.inference.post_selection import NOT_PRIVATE, PostSelection, post_selection
from dpmic_jax.inference.selection import Bonferroni, Correction, MaxInformationCorrection

__all__ = [
    "NOT_PRIVATE",
    "Bonferroni",
    "Correction",
    "CustomTest",
    "FalseDiscovery",
    "FamilyWise",
    "IndependenceTest",
    "MaxInformationCorrection",
    "NullLaw",
    "NullTable",
    "PairTest",
    "Permutation",
    "PostSelection",
    "draws_needed",
    "null_law",
    "permutation_p_values",
    "post_selection",
    "require_level",
]
