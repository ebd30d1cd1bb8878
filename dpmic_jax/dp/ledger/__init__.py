"""Privacy budgets, and the ledgers that keep to them."""
