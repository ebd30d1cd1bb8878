"""Numbers without rounding: decimals as they are written, and intervals that enclose the truth."""
