"""A statistic, a sensitivity and a noise law make something that may be released."""
