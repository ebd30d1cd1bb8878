"""Composition of max-information, which depends on the order of the steps."""

import math
from collections.abc import Sequence

from dpmic_jax.dp.max_information.bounds import MARGIN, Laws, MaxInformation


def compose(steps: Sequence[MaxInformation]) -> MaxInformation:
    """Bits and betas add up (Theorem A.3), where each step may use the outputs of earlier ones.

    Given the output of the first step, the records are no longer independent. So only the first
    step may have a bound that is for independent records alone, and the result then holds for
    independent records. It is better to compose differentially private steps as such first, as
    `corrected_level_after` and `max_information_after` do.
    """
    if not steps:
        raise ValueError("expected at least one step")
    for number, step in enumerate(steps):
        if number and step.laws is Laws.PRODUCT:
            raise ValueError(
                f"step {number + 1} is bounded for independent records only, and comes after "
                "another: in Theorem 3.9 a choice among few values, then an (epsilon, delta)-DP "
                "step, together reveal the whole data. Put it first, compose private steps as "
                "differential privacy, or test at alpha / m after a choice among m values"
            )
    beta = math.fsum(step.beta for step in steps) * (1 + MARGIN)
    if not beta < 1:
        raise ValueError(f"the betas of the steps add up to {beta:g}, expected below 1")
    bits = math.fsum(step.bits for step in steps) * (1 + MARGIN)
    return MaxInformation(bits, beta, steps[0].laws)
