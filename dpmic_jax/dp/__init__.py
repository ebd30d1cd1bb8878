"""Privacy only: keys, noise, events, budgets, audits. It knows no MIC."""

from dpmic_jax.dp.budget import Budget, BudgetExceeded, Ledger
from dpmic_jax.dp.events import Event, ReplaceOne
from dpmic_jax.dp.keys import is_secret, secret_key, seeded_key
from dpmic_jax.dp.ledger import LedgerFile

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Event",
    "Ledger",
    "LedgerFile",
    "ReplaceOne",
    "is_secret",
    "secret_key",
    "seeded_key",
]
