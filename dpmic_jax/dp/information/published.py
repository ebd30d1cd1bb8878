"""Bounds as Cuff and Yu (2016) print them, for comparison: valid, but looser than those used here.

Docstrings note where the printed text differs from its proof.
"""

import math
from decimal import Decimal

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.arithmetic.decimal_math import entropy, exactly, precise, up
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_positive_int
from dpmic_jax.dp.information.cardinality import most_nats
from dpmic_jax.dp.information.guarantees import (
    KLDP,
    MIDP,
    Count,
    RenyiMIDP,
    VariationDP,
    cardinal,
    expect,
)


def equation_21(pure: PureDP) -> KLDP:
    """Lemma 1: epsilon-DP is min(epsilon, epsilon^2)-KL-DP."""
    expect("Lemma 1", PureDP, pure)
    return KLDP(min(pure.epsilon, ceil_to_float(as_fraction(pure.epsilon) ** 2)))


def pinsker(kl: KLDP) -> VariationDP:
    """Property 2: KL-DP is (0, sqrt(nats/2))-DP; from 2 nats on it guarantees nothing."""
    expect("Property 2", KLDP, kl)
    return VariationDP(_root(kl.nats, Decimal("0.5")))


def equation_27(mi: MIDP) -> VariationDP:
    """Lemma 2, loose: MI-DP is (0, sqrt(2 nats))-DP; from 1/2 nat on it guarantees nothing."""
    expect("Lemma 2", MIDP, mi)
    return VariationDP(_root(mi.nats, Decimal(2)))


def equation_35(variation: VariationDP, *, values: Count, outputs: Count) -> MIDP:
    """Lemma 3 as stated: 2 h(delta) + 2 delta ln(min(outputs, values + 1))."""
    expect("Lemma 3", VariationDP, variation)
    count = min(cardinal("outputs", outputs), cardinal("values", values) + 1)
    if count == math.inf:
        raise ValueError("Lemma 3 needs values or outputs below math.inf")
    with precise(variation.delta):
        delta = exactly(variation.delta)
        return MIDP(up(2 * entropy(delta) + 2 * delta * Decimal(count).ln()))


def equation_105(variation: VariationDP, *, outputs: int) -> MIDP:
    """Lemma 3 by outputs: h(delta) + delta ln(outputs - 1) nats.

    From delta = 1 - 1/outputs on it is ln(outputs).
    """
    expect("Lemma 3, (105)", VariationDP, variation)
    with precise(variation.delta):
        delta, count = exactly(variation.delta), Decimal(cardinal("outputs", outputs))
        if count * (1 - delta) <= 1:
            return MIDP(most_nats(outputs))
        return MIDP(up(entropy(delta) + delta * (count - 1).ln()))


def equation_126(variation: VariationDP, *, values: int) -> MIDP:
    """Lemma 3 by values: 2 h(d) + 2 d ln(values) nats, with d = delta / (1 + delta)."""
    expect("Lemma 3, (126)", VariationDP, variation)
    with precise(variation.delta):
        delta, count = exactly(variation.delta), Decimal(cardinal("values", values))
        d = delta / (1 + delta)
        return MIDP(up(2 * entropy(d) + 2 * d * count.ln()))


def corollary_5(mi: MIDP, *, records: int, values: Count, outputs: Count) -> MIDP:
    """MI-DP for k records: 2 h(t) + 2 t ln M, t = k sqrt(2 nats), M = min(outputs, values^k + 1).

    The formula has no meaning for t > 1, which the paper does not say. Its logarithm is natural.
    """
    expect("Corollary 5", MIDP, mi)
    apart = check_positive_int("records", records) * math.sqrt(2 * mi.nats)
    if not apart <= 1:
        raise ValueError(
            f"Corollary 5 needs records * sqrt(2 nats) <= 1, got {apart:g}: above 1, "
            "(0, delta)-DP guarantees nothing for the group"
        )
    group = VariationDP(min(math.nextafter(apart, 2), 1.0))
    return equation_35(group, values=cardinal("values", values) ** records, outputs=outputs)


def lemma_4(pure: PureDP, *, order: float) -> RenyiMIDP:
    """Lemma 4: epsilon-DP has at most epsilon nats about a record, of any order alpha >= 0."""
    expect("Lemma 4", PureDP, pure)
    if not order >= 0:
        raise ValueError(f"Lemma 4 is about orders alpha >= 0, got {order}")
    return RenyiMIDP(float(order), pure.epsilon)


def corollary_6(pure: PureDP, *, records: int, order: float) -> RenyiMIDP:
    """Corollary 6: epsilon-DP has at most n epsilon nats about n records, of any order >= 0."""
    expect("Corollary 6", PureDP, pure)
    total = ceil_to_float(check_positive_int("records", records) * as_fraction(pure.epsilon))
    return RenyiMIDP(lemma_4(pure, order=order).order, total)


def _root(nats: float, factor: Decimal) -> float:
    """min(sqrt(factor nats), 1), rounded up."""
    with precise(nats):
        return min(up((factor * exactly(nats)).sqrt()), 1.0)
