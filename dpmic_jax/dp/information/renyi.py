"""Sibson's mutual information of order alpha (Cuff and Yu 2016, section 7).

    I_alpha(X; Y) = min over Q of D_alpha(P_XY || P_X Q)
                  = alpha/(alpha - 1) ln sum_y (sum_x P(x) W_x(y)^alpha)^(1/alpha)

Order 1 is mutual information. Order infinity, ln sum_y max_x W_x(y), bounds the factor by which any
guess about the record becomes likelier. For alpha > 0 the supremum over P is the same for Arimoto's
and Csiszár's definitions (71).
"""

import math
from decimal import Decimal

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.arithmetic.decimal_math import exactly, precise, up
from dpmic_jax.dp.information.groups import pure_group
from dpmic_jax.dp.information.guarantees import RenyiMIDP, expect
from dpmic_jax.dp.information.implications import pure_to_mi


def pure_to_renyi(pure: PureDP, *, order: float) -> RenyiMIDP:
    """Lemma 4, made tight: the most information that epsilon-DP allows at an order above 0.

    With Z = W_X(y) / q(y) as in `pure_to_mi`, the sum is q's mean of E[Z^alpha]^(1/alpha), and
    its worst case, least for alpha < 1 and most for alpha > 1, has Z at the ends of an interval
    [a, a e^epsilon] only: at the upper end with some probability s. So the information is at most

        max over s of (ln(1 + s A) - alpha ln(1 + s B)) / (alpha - 1),
        A = e^(alpha epsilon) - 1, B = e^epsilon - 1,

    attained at s = (A - alpha B) / ((alpha - 1) A B). It grows with alpha, from 0 to the epsilon
    of Lemma 4 (`published.lemma_4`), which is tight for alpha = infinity only. Channels with many
    inputs approach it, as for `pure_to_mi`.

    Args:
      pure: the guarantee of the mechanism.
      order: alpha, above 0; math.inf is allowed.
    """
    expect("Lemma 4", PureDP, pure)
    order = float(order)
    if not order > 0:
        raise ValueError(f"Lemma 4 is about orders alpha >= 0, tight for alpha > 0; got {order}")
    if order == 1:
        return RenyiMIDP(order, pure_to_mi(pure).nats)
    # e^(alpha epsilon) would have too many digits. Lemma 4 as printed is valid for every order.
    if order * pure.epsilon > 1e6:
        return RenyiMIDP(order, pure.epsilon)
    # Near order 0, order 1 and epsilon 0 the terms cancel: `precise` has digits for each of them.
    with precise(pure.epsilon, min(order, 1.0), abs(order - 1)):
        epsilon, alpha = exactly(pure.epsilon), exactly(order)
        a, b = (alpha * epsilon).exp() - 1, epsilon.exp() - 1
        s = (a - alpha * b) / ((alpha - 1) * a * b)
        nats = ((1 + s * a).ln() - alpha * (1 + s * b).ln()) / (alpha - 1)
        return RenyiMIDP(order, min(up(max(nats, Decimal(0))), pure.epsilon))


def pure_to_group_renyi(pure: PureDP, *, records: int, order: float) -> RenyiMIDP:
    """Corollary 6, made tight: the same for k records together, or for all n of them.

    Lemma 4 uses only that output distributions are epsilon-close, and for data sets that differ in
    k records they are (k epsilon)-close (Property 7). The printed n epsilon is the limit at
    alpha = infinity.
    """
    expect("Corollary 6", PureDP, pure)
    if math.isnan(order):
        raise ValueError("Corollary 6 is about orders alpha >= 0, got nan")
    return pure_to_renyi(pure_group(pure, records=records), order=order)
