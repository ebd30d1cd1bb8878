"""Max-information of a result that takes one of m values, however it was computed."""

import math
from dataclasses import dataclass

from dpmic_jax.dp.arithmetic.exact_decimal import check_positive_int
from dpmic_jax.dp.max_information.bounds import (
    Correction,
    Laws,
    MaxInformation,
    check_alpha,
    check_beta,
    from_nats,
)


@dataclass(frozen=True)
class DescriptionLength:
    """A choice among `values` options that depends on the data in any way, private or not."""

    values: int

    def __post_init__(self):
        object.__setattr__(self, "values", check_positive_int("values", self.values))

    def at(self, beta: float) -> MaxInformation:
        """max(log2((m - 1)/(4 beta)), log2(m (1 - beta))) bits (Theorem F), for any distribution.

        As the loss Z is at most -ln P(a), the least beta for k bits is at most the sum of
        P(a) (1 - 2^k P(a))+ over the m values. For beta <= 1/2 no smaller number of bits holds for
        all results of m values.
        """
        check_beta("Theorem F", beta)
        most = math.log(self.values * (1 - beta))
        if self.values > 1:
            most = max(most, math.log((self.values - 1) / (4 * beta)))
        return from_nats(most, beta, Laws.ANY)

    def corrected(self, alpha: float) -> Correction:
        """Bonferroni: alpha / m, as if there were log2(m) bits at beta = 0.

        log2(m) bits at beta = 0 are not a bound on max-information, but the level holds: each of
        the m options has its own p-value, and errors add up.
        """
        bits = math.log2(self.values)
        level = check_alpha(alpha) / self.values * (1 - 2.0**-50)
        return Correction(level, bits, 0.0, "Bonferroni", Laws.ANY)
