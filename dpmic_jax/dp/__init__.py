"""Privacy only: keys, noise, events, budgets, audits. It knows no MIC."""
