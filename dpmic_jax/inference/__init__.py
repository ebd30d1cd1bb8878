"""Tests of independence: of the pairs that a screen selected, not private; and private ones.

`independence_test` is private: it has a budget, and its result may be published. Everything else
here is computed without noise, and is for the analyst only.
"""

from dpmic_jax.inference.independence import CustomTest, IndependenceTest, PairTest, require_level
from dpmic_jax.inference.monte_carlo import draws_needed
from dpmic_jax.inference.multiple_testing import BenjaminiHochberg, FalseDiscovery, FamilyWise
from dpmic_jax.inference.null_table import NullTable
from dpmic_jax.inference.nulls import NullLaw, null_law
from dpmic_jax.inference.permutation import Permutation, permutation_p_values
from dpmic_jax.inference.post_selection import NOT_PRIVATE, PostSelection, post_selection
from dpmic_jax.inference.private_decisions import PrivateDecisions
from dpmic_jax.inference.private_p_values import PrivatePValues
from dpmic_jax.inference.private_result import IndependenceResult
from dpmic_jax.inference.private_test import independence_test
from dpmic_jax.inference.selection import Bonferroni, Correction, MaxInformationCorrection
from dpmic_jax.inference.tables import TableTest

__all__ = [
    "NOT_PRIVATE",
    "BenjaminiHochberg",
    "Bonferroni",
    "Correction",
    "CustomTest",
    "FalseDiscovery",
    "FamilyWise",
    "IndependenceResult",
    "IndependenceTest",
    "MaxInformationCorrection",
    "NullLaw",
    "NullTable",
    "PairTest",
    "Permutation",
    "PostSelection",
    "PrivateDecisions",
    "PrivatePValues",
    "TableTest",
    "draws_needed",
    "independence_test",
    "null_law",
    "permutation_p_values",
    "post_selection",
    "require_level",
]
