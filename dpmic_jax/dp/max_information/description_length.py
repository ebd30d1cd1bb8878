"""A choice among few: what an output of m values can say, however it was computed."""

import math
from dataclasses import dataclass

from dpmic_jax.dp.arithmetic.exact_decimal import check_positive_int
from dpmic_jax.dp.max_information.bounds import (
    Correction,
    Laws,
    MaxInformation,
    from_nats,
    significance,
    spare,
)


@dataclass(frozen=True)
class DescriptionLength:
    """One of `values` things was chosen by looking at the data in any way, private or not."""

    values: int

    def __post_init__(self):
        object.__setattr__(self, "values", check_positive_int("values", self.values))

    def at(self, beta: float) -> MaxInformation:
        """max(log2((m - 1)/(4 beta)), log2(m (1 - beta))) bits (Theorem F), for any distribution.

        As Z <= -ln P(a), beta is at most the sum of P(a) (1 - 2^k P(a))+ over the m values. For
        beta <= 1/2 no smaller number of bits holds for all outputs of m values.
        """
        spare("Theorem F", beta)
        most = math.log(self.values * (1 - beta))
        if self.values > 1:
            most = max(most, math.log((self.values - 1) / (4 * beta)))
        return from_nats(most, beta, Laws.ANY)

    def corrected(self, alpha: float) -> Correction:
        """Bonferroni: alpha / m, as if there were log2(m) bits at beta = 0.

        That is no max-information, but enough for tests: each of the m has its own p-value.
        """
        bits = math.log2(self.values)
        level = significance(alpha) / self.values * (1 - 2.0**-50)
        return Correction(level, bits, 0.0, "Bonferroni", Laws.ANY)
