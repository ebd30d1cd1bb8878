"""Composition of max-information, in the order in which it holds."""

import math
from collections.abc import Sequence

from dpmic_jax.dp.max_information.bounds import MARGIN, Laws, MaxInformation


def compose(steps: Sequence[MaxInformation]) -> MaxInformation:
    """Bits and betas add up (Theorem A.3), each step knowing what came out of those before.

    After the first step the data have the law that its output leaves, in which records depend
    on each other. So only the first step may have a bound for independent records alone; the
    whole then holds for independent records. Steps that are differentially private are better
    composed as such first: `corrected_level_after` and `max_information_after` do so.
    """
    if not steps:
        raise ValueError("expected at least one step")
    for number, step in enumerate(steps):
        if number and step.laws is Laws.PRODUCT:
            raise ValueError(
                f"step {number + 1} is bounded for independent records only, and comes after "
                "another: Theorem 3.9 has a choice among few values, then an (epsilon, delta)-DP "
                "step, that together tell the whole data. Put it first, compose private steps as "
                "differential privacy, or pay for a choice among m values by testing at alpha / m"
            )
    beta = math.fsum(step.beta for step in steps) * (1 + MARGIN)
    if not beta < 1:
        raise ValueError(f"the betas of the steps add up to {beta:g}, expected below 1")
    bits = math.fsum(step.bits for step in steps) * (1 + MARGIN)
    return MaxInformation(bits, beta, steps[0].laws)
