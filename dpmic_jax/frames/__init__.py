"""Exact dependence of all pairs of columns of a data frame, with p-values. Not private."""

from dpmic_jax.data.frame import pair_by_pair, refuse_missing
from dpmic_jax.frames.pairwise import pairwise
from dpmic_jax.frames.plots import PairPlots
from dpmic_jax.frames.result import Pairwise

__all__ = ["PairPlots", "Pairwise", "pair_by_pair", "pairwise", "refuse_missing"]
