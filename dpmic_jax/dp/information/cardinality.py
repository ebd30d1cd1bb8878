"""From delta to mutual information, for a finite number of record values or of outputs.

The erasure channel (Example 2) reveals which of N values a record has with probability delta: it is
(0, delta)-DP, and its information is delta ln N nats, which is unbounded if N is.

`values` is the number of values that one record may take (all columns of a table together),
`outputs` the number of outcomes of the mechanism. One of them may be math.inf.
"""

import math
from decimal import Decimal

from dpmic_jax.dp.accounting.events import ZCDP, ApproximateDP, GaussianDP, Guarantee, PureDP
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
    """(0, delta)-DP is MI-DP: h(t) + t ln(k - 1) nats, with k = min(values, outputs).

    Here t = delta (1 - 1/values).

    Two distributions on k points at total variation t have entropies at most
    f_k(t) = h(t) + t ln(k - 1) apart, and at most ln k from t = 1 - 1/k on (Zhang 2007). f_k is
    concave and non-decreasing. A row W_x is within (1 - P(x)) delta of q = sum_x P(x) W_x, since x
    itself is part of the mixture; on average within t = delta (1 - sum_x P(x)^2)
    <= delta (1 - 1/values). So

        I = E_x[H(q) - H(W_x)] <= f_outputs(t), and
        I = E_y[H(P) - H(P given y)] <= f_values(t).

    The latter holds since both joint distributions, P(x) W_x(y) and P(x) q(y), have the same
    marginal of y: they are t apart iff the distributions of x given y are, on average. The first
    is (105) of Lemma 3, with delta for t. The second is below (126), 2 h(d) + 2 d ln(values) with
    d = delta/(1 + delta), which uses a lemma on any two joint distributions (whose (125) should
    have H_P, not H_p*, on its right). The statement (35) of Lemma 3 is about twice as large. For
    two values the erasure channel is the worst, with delta ln 2.
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
    """MI-DP of a mechanism within total variation v of an MI-DP one: h(v) + v ln k nats more.

    Rows R_x and M_x share a component of mass 1 - v, with distribution A_x. If it is revealed
    which component was drawn, I(X; R) is at most v ln k + (1 - v) I(X; A). I(X; M) is at least
    (1 - v) I(X; A) - h(v), since the component carries at most h(v). k = min(values, outputs).
    """
    expect("the bound near an MI-DP mechanism", MIDP, mi)
    if not check_probability("variation", variation):
        return mi
    count = _lesser("the bound near an MI-DP mechanism", values, outputs)
    with precise(variation):
        apart = exactly(variation)
        nats = exactly(mi.nats) + entropy(apart) + apart * Decimal(count).ln()
        return MIDP(min(up(nats), up(Decimal(count).ln())))


def approximate_to_mi(approximate: ApproximateDP, *, values: Count, outputs: Count) -> MIDP:
    """(epsilon, delta)-DP is MI-DP, by the lesser of two bounds.

    The paper goes by Property 3 to (0, delta')-DP, then by Lemma 3; its bound on the effect of
    epsilon grows with the number of values. The other bound: a row W_x is (epsilon, delta)-close
    to the mixture q, as it is to each component. Truncating dW_x/dq at e^epsilon and e^-epsilon,
    and moving the mass that is cut off, gives a row within delta of W_x that diverges from q by at
    most epsilon tanh(epsilon/2) (Property 1). So the mechanism is within delta of one that has
    MI-DP with that many nats, and `near_mi` applies.
    """
    expect("(epsilon, delta)-DP to MI-DP", ApproximateDP, approximate)
    if values == 2:
        return bit_to_mi(approximate)
    printed = variation_to_mi(to_variation(approximate), values=values, outputs=outputs)
    truncated = near_mi(
        kl_to_mi(pure_to_kl(PureDP(approximate.epsilon))),
        variation=approximate.delta,
        values=values,
        outputs=outputs,
    )
    return min(printed, truncated, key=lambda mi: mi.nats)


def to_mi(guarantee: Guarantee, *, values: Count, outputs: Count) -> MIDP:
    """The MI-DP that a guarantee of an event implies, by the best bound of this package.

    It is never more than ln(values) or ln(outputs) nats.
    """
    cardinal("values", values)
    cardinal("outputs", outputs)
    match guarantee:
        case PureDP():
            found = bit_to_mi(guarantee) if values == 2 else pure_to_mi(guarantee)
        case ApproximateDP():
            found = approximate_to_mi(guarantee, values=values, outputs=outputs)
        case ZCDP() | GaussianDP():
            # `delta` is the total variation to a mechanism that is exactly rho-zCDP.
            ideal = kl_to_mi(concentrated_to_kl(ZCDP(guarantee.rho)))
            found = near_mi(ideal, variation=guarantee.delta, values=values, outputs=outputs)
        case _:
            raise TypeError(
                f"expected a PureDP, ApproximateDP, ZCDP or GaussianDP, got {guarantee!r}"
            )
    return MIDP(min(found.nats, most_nats(min(values, outputs))))


def most_nats(count: Count) -> float:
    """ln(count), rounded up: the most information of a channel with `count` inputs or outputs."""
    if count == math.inf:
        return math.inf
    with precise(1.0):
        return up(Decimal(count).ln())


def _entropy_gap(apart: Decimal, count: Count) -> Decimal:
    """f_k(t) of `variation_to_mi`, for t = apart and k = count."""
    if Decimal(count) * (1 - apart) <= 1:
        return Decimal(count).ln()
    return entropy(apart) + apart * Decimal(count - 1).ln()


def _lesser(theorem: str, values: Count, outputs: Count) -> Count:
    """The lesser of both counts, which has to be finite."""
    count = min(cardinal("values", values), cardinal("outputs", outputs))
    if count == math.inf:
        raise ValueError(
            f"{theorem} needs a finite number of values of a record or of outputs: the erasure "
            "channel has delta ln(values) nats; expected values or outputs below math.inf"
        )
    return count
