"""Benchmarks, each run by `python -m benchmarks.NAME`."""
