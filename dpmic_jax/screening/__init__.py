"""Screening a whole table: one budget, all pairs, any size, any number of devices."""

from dpmic_jax.runs.data_set import create_ledger
from dpmic_jax.screening.histograms import buy_histograms
from dpmic_jax.screening.planning import bulk
from dpmic_jax.screening.preview import Preview, preview
from dpmic_jax.screening.private_bounds import LearntBounds, learn_bounds
from dpmic_jax.screening.queries import Above, Against, AllPairs, Ask, Between, TopK
from dpmic_jax.screening.screen import screen
from dpmic_jax.screening.tiles import Resources

__all__ = [
    "Above",
    "Against",
    "AllPairs",
    "Ask",
    "Between",
    "LearntBounds",
    "Preview",
    "Resources",
    "TopK",
    "bulk",
    "buy_histograms",
    "create_ledger",
    "learn_bounds",
    "preview",
    "screen",
]
