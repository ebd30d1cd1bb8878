"""The result of a screen: private values, their privacy statement, and ways to publish both."""

from dpmic_jax.results.axes import CategoryAxis, NumberAxis, SpareAxis, TimeAxis, WholeAxis
from dpmic_jax.results.histograms import Histograms
from dpmic_jax.results.screen_result import ScreenResult, backend_of
from dpmic_jax.results.statement import SEEDED, MICrSettings, Statement

__all__ = [
    "SEEDED",
    "CategoryAxis",
    "Histograms",
    "MICrSettings",
    "NumberAxis",
    "ScreenResult",
    "SpareAxis",
    "Statement",
    "TimeAxis",
    "WholeAxis",
    "backend_of",
]
