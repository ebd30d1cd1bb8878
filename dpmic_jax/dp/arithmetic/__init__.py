"""Exact arithmetic: decimals as they are written, enclosing intervals, and bisection."""
