"""From delta to information, which only a finite number of values or of outputs allows.

The erasure channel (Example 2) tells which of N values a record has with probability delta: it
is (0, delta)-DP and tells delta ln N nats, without a bound if N has none.

`values` counts the values that one record may take (all columns of a table together), `outputs`
the outcomes of the mechanism; math.inf for what has no bound, but not for both.
"""

import math
from decimal import Decimal

from dpmic_jax.dp.accounting.events import ZCDP, ApproximateDP, Guarantee, PureDP
from dpmic_jax.dp.arithmetic.decimal_math import entropy, exactly, precise, up
from dpmic_jax.dp.arithmetic.exact_decimal import check_probability
from dpmic_jax.dp.information.binary_records import bit_to_mi
from dpmic_jax.dp.information.guarantees import MIDP, Count, VariationDP, cardinal, expect
from dpmic_jax.dp.information.implications import (
    concentrated_to_kl,
    kl_to_mi,
    pure_to_kl,
    pure_to_mi,
    to_variation,
)


def variation_to_mi(variation: VariationDP, *, values: Count, outputs: Count) -> MIDP:
    """(0, delta)-DP is MI-DP: h(t) + t ln(k - 1), k the lesser count and t = delta (1 - 1/values).

    Two laws on k points that are t apart have entropies at most f_k(t) = h(t) + t ln(k - 1)
    apart, from t = 1 - 1/k on ln k (Zhang 2007). f_k is concave and does not fall. A row W_x is
    within (1 - P(x)) delta of q = sum_x P(x) W_x, for x itself is part of the mixture; on
    average within t = delta (1 - sum_x P(x)^2) <= delta (1 - 1/values). So

        I = E_x[H(q) - H(W_x)] <= f_outputs(t), and
        I = E_y[H(P) - H(P given y)] <= f_values(t),

    the latter since both joint laws, P(x) W_x(y) and P(x) q(y), have the same law of y: they are
    t apart iff the laws of x given y are, on average. The first is (105) of Lemma 3, with delta
    for t; the second is below (126), 2 h(d) + 2 d ln(values) with d = delta/(1 + delta), which
    goes through a lemma on any two joint laws (whose (125) should have H_P, not H_p*, on its
    right). The statement (35) of Lemma 3 is about twice as much. For two values the erasure
    channel is the worst, delta ln 2.
    """
    expect("Lemma 3", VariationDP, variation)
    count = _lesser("Lemma 3", values, outputs)
    if values == 2:
        return bit_to_mi(variation)
    with precise(variation.delta):
        delta = exactly(variation.delta)
        apart = delta if values == math.inf else delta - delta / Decimal(values)
        return MIDP(up(_entropy_gap(apart, count)))


def near_mi(mi: MIDP, *, variation: float, values: Count, outputs: Count) -> MIDP:
    """What is within a total variation v of an MI-DP mechanism: h(v) + v ln k nats more.

    Rows R_x and M_x share a part of mass 1 - v, with law A_x, and I(X; .) is at most v ln k plus
    (1 - v) I(X; A) for R, if one is told which part it was; for M at least (1 - v) I(X; A) - h(v),
    since not being told costs at most h(v). k is the lesser count.
    """
    expect("the bound for what is near an MI-DP mechanism", MIDP, mi)
    if not check_probability("variation", variation):
        return mi
    count = _lesser("the bound for what is near an MI-DP mechanism", values, outputs)
    with precise(variation):
        off = exactly(variation)
        more = exactly(mi.nats) + entropy(off) + off * Decimal(count).ln()
        return MIDP(min(up(more), up(Decimal(count).ln())))


def approximate_to_mi(approximate: ApproximateDP, *, values: Count, outputs: Count) -> MIDP:
    """(epsilon, delta)-DP is MI-DP, by the lesser of two routes.

    The paper's is Property 3 to (0, delta')-DP, then Lemma 3: it pays for epsilon by the number
    of values. The other: a row W_x is (epsilon, delta)-close to the mixture q as to each of its
    parts. Cutting dW_x/dq off at e^epsilon and e^-epsilon, and moving what is cut, gives a row
    within delta of W_x that diverges from q by at most epsilon tanh(epsilon/2) (Property 1). So
    the mechanism is within delta of one that tells so little: `near_mi`.
    """
    expect("(epsilon, delta)-DP to MI-DP", ApproximateDP, approximate)
    if values == 2:
        return bit_to_mi(approximate)
    paper = variation_to_mi(to_variation(approximate), values=values, outputs=outputs)
    cut = near_mi(
        kl_to_mi(pure_to_kl(PureDP(approximate.epsilon))),
        variation=approximate.delta,
        values=values,
        outputs=outputs,
    )
    return min(paper, cut, key=lambda mi: mi.nats)


def to_mi(guarantee: Guarantee, *, values: Count, outputs: Count) -> MIDP:
    """Nats about one record that any guarantee of an event allows, by the best route here.

    Never more than ln(values) or ln(outputs).
    """
    cardinal("values", values)
    cardinal("outputs", outputs)
    match guarantee:
        case PureDP():
            found = bit_to_mi(guarantee) if values == 2 else pure_to_mi(guarantee)
        case ApproximateDP():
            found = approximate_to_mi(guarantee, values=values, outputs=outputs)
        case ZCDP():
            ideal = kl_to_mi(concentrated_to_kl(ZCDP(guarantee.rho)))
            found = near_mi(ideal, variation=guarantee.delta, values=values, outputs=outputs)
        case _:
            raise TypeError(f"expected a PureDP, ApproximateDP or ZCDP, got {guarantee!r}")
    return MIDP(min(found.nats, most_nats(min(values, outputs))))


def most_nats(count: Count) -> float:
    """ln(count), rounded up: no channel with so many inputs, or outputs, tells more."""
    if count == math.inf:
        return math.inf
    with precise(1.0):
        return up(Decimal(count).ln())


def _entropy_gap(apart: Decimal, count: Count) -> Decimal:
    if Decimal(count) * (1 - apart) <= 1:
        return Decimal(count).ln()
    return entropy(apart) + apart * Decimal(count - 1).ln()


def _lesser(theorem: str, values: Count, outputs: Count) -> Count:
    count = min(cardinal("values", values), cardinal("outputs", outputs))
    if count == math.inf:
        raise ValueError(
            f"{theorem} needs a finite number of values of a record or of outputs: the erasure "
            "channel tells delta ln(values); expected values or outputs below math.inf"
        )
    return count
