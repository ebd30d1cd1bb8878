"""Mechanisms: a statistic, its sensitivity and noise."""

from dpmic_jax.mechanisms.additive_noise import MICeLap, MICrCube, MICrGauss, MICrLap
from dpmic_jax.mechanisms.bounds import (
    EqualCells,
    OctaveCells,
    PrivateBounds,
    QuantileBounds,
    private_bounds,
)
from dpmic_jax.mechanisms.debias import BetaPrior, debias, fitted_prior
from dpmic_jax.mechanisms.histogram import HistogramRelease, MICrHistogram
from dpmic_jax.mechanisms.mic_star import mic_star_estimate
from dpmic_jax.mechanisms.published import PublishedMICeLap, PublishedMICrGeom, PublishedMICrLap
from dpmic_jax.mechanisms.release import PrivateValue, Release
from dpmic_jax.mechanisms.variation import VariationLap

__all__ = [
    "BetaPrior",
    "EqualCells",
    "HistogramRelease",
    "MICeLap",
    "MICrCube",
    "MICrGauss",
    "MICrHistogram",
    "MICrLap",
    "OctaveCells",
    "PrivateBounds",
    "PrivateValue",
    "PublishedMICeLap",
    "PublishedMICrGeom",
    "PublishedMICrLap",
    "QuantileBounds",
    "Release",
    "VariationLap",
    "debias",
    "fitted_prior",
    "mic_star_estimate",
    "private_bounds",
]
