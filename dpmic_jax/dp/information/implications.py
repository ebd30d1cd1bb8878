"""Implications that hold for any records: epsilon-DP => KL-DP => MI-DP => (0, delta)-DP.

Cuff and Yu (2016), "Differential privacy as a mutual information constraint". Each function is
one implication in its tightest form; the looser forms that the paper also prints are in
`published`. All results are rounded upwards.
"""

import math

from dpmic_jax.dp.accounting.events import ZCDP, ApproximateDP, PureDP
from dpmic_jax.dp.arithmetic.decimal_math import (
    exactly,
    precise,
    symmetric_divergence_and_slope,
    symmetric_information_and_slope,
    up,
    variation_by,
)
from dpmic_jax.dp.arithmetic.exact_decimal import check_positive
from dpmic_jax.dp.information.guarantees import KLDP, MIDP, VariationDP, expect


def pure_to_kl(pure: PureDP) -> KLDP:
    """Property 1, equation (11): epsilon-DP is epsilon tanh(epsilon/2)-KL-DP.

    Z = dP/dQ lies in [e^-epsilon, e^epsilon] and has mean 1 under Q. E[Z ln Z] is largest if Z
    is at the ends only. Randomised response attains it. (The paper's step (82), which relaxes
    this to min(epsilon, epsilon^2), lacks the factor epsilon on its left.)
    """
    expect("Property 1", PureDP, pure)
    # rho of an epsilon-DP mechanism is also epsilon tanh(epsilon/2).
    return KLDP(pure.rho)


def concentrated_to_kl(concentrated: ZCDP) -> KLDP:
    """rho-zCDP is rho-KL-DP: its Rényi divergences of order alpha > 1 are at most rho alpha."""
    expect("zCDP to KL-DP", ZCDP, concentrated)
    if concentrated.delta:
        raise ValueError(
            "zCDP up to a total variation bounds no divergence: expected ZCDP with delta = 0; "
            "with delta > 0 use near_mi, which needs the number of values or outputs"
        )
    return KLDP(concentrated.rho)


def kl_to_mi(kl: KLDP) -> MIDP:
    """Lemma 1, equation (22): KL-DP is MI-DP with the same nats.

    The output distribution q is a mixture of rows, and D(W_x || .) is convex: no row is further
    from q than from the furthest other row. This is tight: for N inputs that are reported
    truthfully with probability t, and as any of the others otherwise, the ratio of capacity and
    divergence goes to 1 as N grows.
    """
    expect("Lemma 1", KLDP, kl)
    return MIDP(kl.nats)


def pure_to_mi(pure: PureDP) -> MIDP:
    """epsilon-DP is (u - 1 - ln u)-MI-DP, with u = epsilon / (1 - e^-epsilon).

    For an output y let Z = W_X(y) / q(y), with mean 1. All its values are within a factor
    e^epsilon of each other: in some [a, a e^epsilon]. Below its chord there, z ln z at the mean
    is at most ln a + u (1 - a), which is largest at a = 1/u. The mutual information is the mean
    over y of E[Z ln Z].

    It is about epsilon^2/8 for small epsilon, a quarter of the bound of Lemma 1. Channels with many
    inputs approach it: output y is e^epsilon times likelier for a fraction (u - 1)/(e^epsilon - 1)
    of them. For records of two values `binary_records.bit_to_mi` is lower.
    """
    expect("the bound on information by epsilon-DP", PureDP, pure)
    with precise(pure.epsilon):
        epsilon = exactly(pure.epsilon)
        u = epsilon / (1 - (-epsilon).exp())
        return MIDP(up(u - 1 - u.ln()))


def kl_to_variation(kl: KLDP) -> VariationDP:
    """KL-DP is (0, delta)-DP, with delta ln((1 + delta)/(1 - delta)) = nats.

    Take the event that distinguishes two distributions best, with probabilities a and b,
    delta = a - b. The pair (1 - b, 1 - a) has the two divergences exchanged. Divergence is convex,
    so that of the equal mixture, (1 + delta)/2 against (1 - delta)/2, is at most the mean of both,
    which KL-DP bounds. Randomised response attains it. It is below Property 2
    (`published.pinsker`), which uses only one of the two divergences.
    """
    expect("KL-DP to (0, delta)-DP", KLDP, kl)
    # Pinsker's inequality, with a margin for rounding, bounds the root from above.
    pinsker = min(1.0, math.sqrt(kl.nats / 2) * (1 + 2**-50))
    with precise(pinsker):
        nats = exactly(kl.nats)
        return VariationDP(variation_by(symmetric_divergence_and_slope, nats, most=pinsker))


def mi_to_variation(mi: MIDP) -> VariationDP:
    """Lemma 2, equation (28): MI-DP is (0, 1 - 2 h^-1(ln 2 - nats))-DP.

    Mixing a binary channel with its mirror image keeps the variation delta and does not raise
    the capacity: the binary symmetric channel has the least, ln 2 - h((1 - delta)/2), and
    attains the bound. From ln 2 nats on, delta is 1, which guarantees nothing.
    """
    expect("Lemma 2", MIDP, mi)
    # Equation (27), with a margin for rounding, bounds the root from above.
    root = min(1.0, math.sqrt(2 * mi.nats) * (1 + 2**-50))
    with precise(root):
        nats = exactly(mi.nats)
        return VariationDP(variation_by(symmetric_information_and_slope, nats, most=root))


def to_variation(guarantee: PureDP | ApproximateDP) -> VariationDP:
    """Property 3 for epsilon' = 0: delta' = 1 - 2 (1 - delta) / (e^epsilon + 1)."""
    expect("Property 3", (PureDP, ApproximateDP), guarantee)
    return VariationDP(_traded(guarantee, 0.0))


def trade(guarantee: PureDP | ApproximateDP, *, epsilon: float) -> ApproximateDP:
    """Property 3: a smaller epsilon' for delta' = 1 - (e^epsilon' + 1)(1 - delta)/(e^epsilon + 1).

    The mechanism that reveals everything with probability delta, and is randomised response
    otherwise, attains it. There is no converse: a larger epsilon does not lower delta.

    Args:
      guarantee: the guarantee of the mechanism.
      epsilon: epsilon', above 0 (for 0 see `to_variation`) and below that of the guarantee.
    """
    expect("Property 3", (PureDP, ApproximateDP), guarantee)
    if check_positive("epsilon", epsilon) >= guarantee.epsilon:
        raise ValueError(
            f"Property 3 trades for a smaller epsilon: expected 0 < epsilon < "
            f"{guarantee.epsilon:g}, got {epsilon:g}"
        )
    delta = _traded(guarantee, epsilon)
    if delta == 1:
        raise ValueError(
            f"Property 3 gives delta = 1 to 16 digits, which guarantees nothing: expected epsilon "
            f"closer to {guarantee.epsilon:g}, got {epsilon:g}"
        )
    return ApproximateDP(epsilon, delta)


def _traded(guarantee: PureDP | ApproximateDP, smaller: float) -> float:
    """delta' of Property 3, for epsilon' = `smaller`."""
    with precise(guarantee.epsilon):
        epsilon, kept = exactly(guarantee.epsilon), 1 - exactly(guarantee.delta)
        odds = (-epsilon).exp()
        return min(up(1 - ((exactly(smaller) - epsilon).exp() + odds) * kept / (1 + odds)), 1.0)
