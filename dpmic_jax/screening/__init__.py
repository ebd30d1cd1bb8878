"""Screens of a whole table for one privacy budget: any size, any number of devices."""

from dpmic_jax.runs.data_set import create_ledger
from dpmic_jax.screening.histograms import release_histograms
from dpmic_jax.screening.planning import default_screen_statistic
from dpmic_jax.screening.preview import Preview, preview
from dpmic_jax.screening.private_bounds import LearnedBounds, learn_bounds
from dpmic_jax.screening.queries import Above, Against, AllPairs, Ask, Between, TopK
from dpmic_jax.screening.screen import screen
from dpmic_jax.screening.solve import fewest_records, largest_k, smallest_epsilon
from dpmic_jax.screening.tiles import Resources
from dpmic_jax.screening.verification import Check, verify

__all__ = [
    "Above",
    "Against",
    "AllPairs",
    "Ask",
    "Between",
    "Check",
    "LearnedBounds",
    "Preview",
    "Resources",
    "TopK",
    "create_ledger",
    "default_screen_statistic",
    "fewest_records",
    "largest_k",
    "learn_bounds",
    "preview",
    "release_histograms",
    "screen",
    "smallest_epsilon",
    "verify",
]
