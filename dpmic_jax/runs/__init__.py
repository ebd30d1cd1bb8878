"""Runs that cost privacy: one protocol for all of them, their folders, and how they end."""
