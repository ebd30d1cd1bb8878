"""Group privacy: guarantees for k records at once (Cuff and Yu 2016, section 5).

The guarantees of `dp.accounting.events` and total variation have a bound for k records, by k steps
between neighbours. MI-DP has none. Example 5, the discrepancy, has two records: with probability e
it reveals their common value if they are equal, and "different" if not; otherwise it reveals
nothing. Given one record, there are at most e ln 2 nats about the other. But about both together
there are |X| + 1 outcomes and e ln(|X| + 1) nats, which is unbounded if |X| is. A bound from MI-DP
needs the number of values or outputs (`mi_of_group`). A bound from epsilon-DP,
`pure_to_mi(pure_group(...))`, does not, and is better.
"""

from decimal import Decimal

from dpmic_jax.dp.accounting.events import ApproximateDP, PureDP
from dpmic_jax.dp.arithmetic.decimal_math import exactly, precise, up
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_positive_int
from dpmic_jax.dp.information.cardinality import variation_to_mi
from dpmic_jax.dp.information.guarantees import MIDP, Count, VariationDP, cardinal, expect
from dpmic_jax.dp.information.implications import mi_to_variation


def pure_group(pure: PureDP, *, records: int) -> PureDP:
    """Property 7: epsilon-DP for one record is (k epsilon)-DP for k records."""
    expect("Property 7", PureDP, pure)
    return PureDP(ceil_to_float(check_positive_int("records", records) * as_fraction(pure.epsilon)))


def variation_group(variation: VariationDP, *, records: int) -> VariationDP:
    """Property 8: (0, delta)-DP for one record is (0, min(k delta, 1))-DP for k records."""
    expect("Property 8", VariationDP, variation)
    total = check_positive_int("records", records) * as_fraction(variation.delta)
    return VariationDP(min(ceil_to_float(total), 1.0))


def approximate_group(approximate: ApproximateDP, *, records: int) -> ApproximateDP:
    """Property 9: (k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1))-DP for k records.

    k steps between neighbours add delta (1 + e^epsilon + ... + e^((k-1) epsilon)). (The paper's
    text has k epsilon - 1 where e^(k epsilon) - 1 is meant.)

    Raises:
      ValueError: if the new delta is 1 or more. There (epsilon, delta)-DP guarantees nothing, but
        `to_variation` and Property 8 may still give a bound.
    """
    expect("Property 9", ApproximateDP, approximate)
    steps = check_positive_int("records", records) - 1
    with precise(approximate.epsilon):
        epsilon, delta = exactly(approximate.epsilon), exactly(approximate.delta)
        share = (1 - (-(steps + 1) * epsilon).exp()) / (1 - (-epsilon).exp())
        # The exponent is capped, since e^2000 times any positive float exceeds 1 already.
        total = up(delta * min(steps * epsilon, Decimal(2000)).exp() * share)
    if not total < 1:
        raise ValueError(
            f"Property 9 gives records={records} a delta of 1 or more, which guarantees nothing: "
            "expected fewer records, or a smaller epsilon or delta"
        )
    return ApproximateDP(ceil_to_float(records * as_fraction(approximate.epsilon)), total)


def mi_of_group(mi: MIDP, *, records: int, values: Count, outputs: Count) -> MIDP:
    """Corollary 5: MI-DP for k records together, by Lemma 2, Property 8 and Lemma 3.

    It uses the tight form of each, so it is below the printed (54) (`published.corollary_5`), and
    never more than k ln(values) or ln(outputs). A group of k records has values^k values.
    """
    expect("Corollary 5", MIDP, mi)
    group = variation_group(mi_to_variation(mi), records=records)
    return variation_to_mi(group, values=cardinal("values", values) ** records, outputs=outputs)
