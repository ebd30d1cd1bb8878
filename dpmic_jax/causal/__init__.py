"""Find direct dependences: conditional independence tests, PC, and private searches built on PC."""

from dpmic_jax.causal.binning import binned
from dpmic_jax.causal.contingency import ChiSquare, GTest
from dpmic_jax.causal.em_pc import EMPC
from dpmic_jax.causal.kendall import Kendall, SignedKendall
from dpmic_jax.causal.marginal import MarginalMICr
from dpmic_jax.causal.median import SmoothMedian
from dpmic_jax.causal.pc import pc, pc_original
from dpmic_jax.causal.preview import SearchPreview, preview_search
from dpmic_jax.causal.priv_pc import PrivPC
from dpmic_jax.causal.queries import Coded, DependenceTest, Query
from dpmic_jax.causal.reading import TableCodes, read_coded
from dpmic_jax.causal.result import CausalResult
from dpmic_jax.causal.search import discover
from dpmic_jax.causal.skeleton import p_value_above, score_at_most
from dpmic_jax.causal.spearman import SignedSpearman, Spearman
from dpmic_jax.causal.subsampled import SubsampledTest
from dpmic_jax.causal.svt_pc import SVTPC

__all__ = [
    "EMPC",
    "SVTPC",
    "CausalResult",
    "ChiSquare",
    "Coded",
    "DependenceTest",
    "GTest",
    "Kendall",
    "MarginalMICr",
    "PrivPC",
    "Query",
    "SearchPreview",
    "SignedKendall",
    "SignedSpearman",
    "SmoothMedian",
    "Spearman",
    "SubsampledTest",
    "TableCodes",
    "binned",
    "discover",
    "p_value_above",
    "pc",
    "pc_original",
    "preview_search",
    "read_coded",
    "score_at_most",
]
