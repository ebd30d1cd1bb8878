"""Records of two values: then every guarantee has one worst mechanism, and information is exact.

Two output laws are (epsilon, delta)-close iff both come, by one post-processing, from the
mechanism that tells the bit with probability delta and else gives a randomised response with
odds e^epsilon (Kairouz, Oh and Viswanath 2015). Post-processing adds no information.
"""

from dpmic_jax.dp.accounting.events import ApproximateDP, PureDP
from dpmic_jax.dp.arithmetic.decimal_math import exactly, precise, symmetric_information, up
from dpmic_jax.dp.information.guarantees import MIDP, VariationDP, expect


def bit_to_mi(guarantee: PureDP | ApproximateDP | VariationDP) -> MIDP:
    """delta ln 2 + (1 - delta)(ln 2 - h(1/(1 + e^epsilon))) nats about a record of two values.

    For epsilon-DP that is randomised response; for (0, delta)-DP it is delta ln 2, the erasure
    channel. Both attain it.
    """
    expect("the bound for records of two values", (PureDP, ApproximateDP, VariationDP), guarantee)
    if isinstance(guarantee, VariationDP):
        with precise(guarantee.delta):
            return MIDP(up(exactly(guarantee.delta) * exactly(2).ln()))
    with precise(guarantee.epsilon):
        delta, odds = exactly(guarantee.delta), (-exactly(guarantee.epsilon)).exp()
        response = symmetric_information((1 - odds) / (1 + odds))
        return MIDP(up(delta * exactly(2).ln() + (1 - delta) * response))
