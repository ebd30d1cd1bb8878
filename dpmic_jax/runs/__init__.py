"""Runs that are charged to a ledger: their protocol, their folders, and how they end."""
