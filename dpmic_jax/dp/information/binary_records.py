"""Information about records of two values, where every guarantee has one worst mechanism.

Two output distributions are (epsilon, delta)-close iff both come, by one post-processing, from the
mechanism that reveals the bit with probability delta and otherwise gives a randomised response with
odds e^epsilon (Kairouz, Oh and Viswanath 2015). Post-processing adds no information.
"""

from dpmic_jax.dp.accounting.events import ApproximateDP, PureDP
from dpmic_jax.dp.arithmetic.decimal_math import exactly, precise, symmetric_information, up
from dpmic_jax.dp.information.guarantees import MIDP, VariationDP, expect


def bit_to_mi(guarantee: PureDP | ApproximateDP | VariationDP) -> MIDP:
    """MI-DP for records of two values: delta ln 2 + (1 - delta)(ln 2 - h(1/(1 + e^epsilon))) nats.

    Randomised response attains it for epsilon-DP. For (0, delta)-DP it is delta ln 2, which the
    erasure channel attains.
    """
    expect("the bound for records of two values", (PureDP, ApproximateDP, VariationDP), guarantee)
    if isinstance(guarantee, VariationDP):
        with precise(guarantee.delta):
            return MIDP(up(exactly(guarantee.delta) * exactly(2).ln()))
    with precise(guarantee.epsilon):
        delta, odds = exactly(guarantee.delta), (-exactly(guarantee.epsilon)).exp()
        response = symmetric_information((1 - odds) / (1 + odds))
        return MIDP(up(delta * exactly(2).ln() + (1 - delta) * response))
