"""What is kept of k records at once (Cuff and Yu 2016, section 5).

Neighbours of neighbours: the guarantees of `dp.accounting.events` and total variation have a
bound for k records by k steps of one. MI-DP has none. Example 5, the discrepancy: two records; with
probability e tell their common value if they are equal and "different" if not; else say nothing.
Whoever knows one record learns at most e ln 2 nats about the other. But both together have
|X| + 1 outcomes to tell: e ln(|X| + 1) nats, without a bound if |X| has none. Only by the number
of values or outputs is there something to say (`mi_of_group`), and better not to come by MI-DP:
from epsilon-DP, `pure_to_mi(pure_group(...))` needs no count.
"""

from decimal import Decimal

from dpmic_jax.dp.accounting.events import ApproximateDP, PureDP
from dpmic_jax.dp.arithmetic.decimal_math import exactly, precise, up
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_positive_int
from dpmic_jax.dp.information.cardinality import variation_to_mi
from dpmic_jax.dp.information.guarantees import MIDP, Count, VariationDP, cardinal, expect
from dpmic_jax.dp.information.implications import mi_to_variation


def pure_group(pure: PureDP, *, records: int) -> PureDP:
    """Property 7: epsilon-DP for one record is k epsilon-DP for k."""
    expect("Property 7", PureDP, pure)
    return PureDP(ceil_to_float(check_positive_int("records", records) * as_fraction(pure.epsilon)))


def variation_group(variation: VariationDP, *, records: int) -> VariationDP:
    """Property 8: (0, delta)-DP for one record is (0, k delta)-DP for k, delta 1 at most."""
    expect("Property 8", VariationDP, variation)
    total = check_positive_int("records", records) * as_fraction(variation.delta)
    return VariationDP(min(ceil_to_float(total), 1.0))


def approximate_group(approximate: ApproximateDP, *, records: int) -> ApproximateDP:
    """Property 9: (k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1))-DP for k records.

    Steps of one add delta (1 + e^epsilon + ... + e^((k-1) epsilon)). (The paper's text has
    k epsilon - 1 where e^(k epsilon) - 1 is meant.) Refused if that is 1 or more: where
    (epsilon, delta) promises nothing, `to_variation` and Property 8 may.
    """
    expect("Property 9", ApproximateDP, approximate)
    steps = check_positive_int("records", records) - 1
    with precise(approximate.epsilon):
        epsilon, delta = exactly(approximate.epsilon), exactly(approximate.delta)
        share = (1 - (-(steps + 1) * epsilon).exp()) / (1 - (-epsilon).exp())
        # 2000 nats are enough to exceed 1, whatever the delta.
        total = up(delta * min(steps * epsilon, Decimal(2000)).exp() * share)
    if not total < 1:
        raise ValueError(
            f"Property 9 gives records={records} a delta of 1 or more, which promises nothing: "
            "expected fewer records, or a smaller epsilon or delta"
        )
    return ApproximateDP(ceil_to_float(records * as_fraction(approximate.epsilon)), total)


def mi_of_group(mi: MIDP, *, records: int, values: Count, outputs: Count) -> MIDP:
    """Corollary 5: nats about k records together, by Lemma 2, Property 8 and Lemma 3.

    With the tight form of each, so below the printed (54) (`published.corollary_5`), and never
    more than k ln(values) or ln(outputs). A group of k records has values^k values.
    """
    expect("Corollary 5", MIDP, mi)
    group = variation_group(mi_to_variation(mi), records=records)
    return variation_to_mi(group, values=cardinal("values", values) ** records, outputs=outputs)
