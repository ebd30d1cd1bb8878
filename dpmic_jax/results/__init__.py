"""The result of a screen: private values, their privacy statement, and ways to publish both."""

from dpmic_jax.results.histograms import CategoryAxis, Histograms, NumberAxis
from dpmic_jax.results.screen_result import ScreenResult, backend_of
from dpmic_jax.results.statement import SEEDED, MICrSettings, Statement

__all__ = [
    "SEEDED",
    "CategoryAxis",
    "Histograms",
    "MICrSettings",
    "NumberAxis",
    "ScreenResult",
    "Statement",
    "backend_of",
]
