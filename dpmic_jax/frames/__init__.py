"""Exact dependence of all pairs of columns of a data frame, with p-values. Not private."""

from dpmic_jax.data.frame import pair_by_pair, refuse_missing
from dpmic_jax.frames.joint import JointMIC, joint_mic
from dpmic_jax.frames.lags import pairwise_lagged
from dpmic_jax.frames.pairwise import pairwise
from dpmic_jax.frames.plots import PairPlots
from dpmic_jax.frames.result import Pairwise
from dpmic_jax.frames.strata import pairwise_given

__all__ = [
    "JointMIC",
    "PairPlots",
    "Pairwise",
    "joint_mic",
    "pair_by_pair",
    "pairwise",
    "pairwise_given",
    "pairwise_lagged",
    "refuse_missing",
]
