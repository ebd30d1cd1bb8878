"""Runs that charge a ledger."""
