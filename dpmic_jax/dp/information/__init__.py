"""Mutual-information differential privacy: bounds, in nats, on the information about one record.

After Cuff and Yu (2016). The implications between guarantees, from strong to weak:

    PureDP -> KLDP -> MIDP -> VariationDP          `implications`
    PureDP, ApproximateDP -> VariationDP           `implications` (Property 3)
    VariationDP, ApproximateDP, ZCDP -> MIDP       `cardinality`: by numbers of values or outputs
    GaussianDP -> MIDP                             the same, through rho = mu^2/2
    the same for records of two values             `binary_records`: exact
    groups of k records                            `groups`
    several mechanisms together                    `composition`
    different budgets for groups of people         `personal`
    Rényi information of order alpha               `renyi`

`channels` computes the exact information of a finite mechanism, for comparison. `published` has the
looser forms that the paper prints.
"""

from dpmic_jax.dp.information import published
from dpmic_jax.dp.information.binary_records import bit_to_mi
from dpmic_jax.dp.information.cardinality import (
    approximate_to_mi,
    most_nats,
    near_mi,
    to_mi,
    variation_to_mi,
)
from dpmic_jax.dp.information.channels import (
    Capacity,
    Tabulated,
    WorstCapacity,
    capacity,
    radius,
    tabulate,
    worst_capacity,
)
from dpmic_jax.dp.information.composition import composed, disjoint, total_mi
from dpmic_jax.dp.information.groups import (
    approximate_group,
    mi_of_group,
    pure_group,
    variation_group,
)
from dpmic_jax.dp.information.guarantees import KLDP, MIDP, RenyiMIDP, VariationDP
from dpmic_jax.dp.information.implications import (
    concentrated_to_kl,
    kl_to_mi,
    kl_to_variation,
    mi_to_variation,
    pure_to_kl,
    pure_to_mi,
    to_variation,
    trade,
)
from dpmic_jax.dp.information.personal import Personal, composed_personal, pure_mixed_group, worst
from dpmic_jax.dp.information.renyi import pure_to_group_renyi, pure_to_renyi

__all__ = [
    "KLDP",
    "MIDP",
    "Capacity",
    "Personal",
    "RenyiMIDP",
    "Tabulated",
    "VariationDP",
    "WorstCapacity",
    "approximate_group",
    "approximate_to_mi",
    "bit_to_mi",
    "capacity",
    "composed",
    "composed_personal",
    "concentrated_to_kl",
    "disjoint",
    "kl_to_mi",
    "kl_to_variation",
    "mi_of_group",
    "mi_to_variation",
    "most_nats",
    "near_mi",
    "published",
    "pure_group",
    "pure_mixed_group",
    "pure_to_group_renyi",
    "pure_to_kl",
    "pure_to_mi",
    "pure_to_renyi",
    "radius",
    "tabulate",
    "to_mi",
    "to_variation",
    "total_mi",
    "trade",
    "variation_group",
    "variation_to_mi",
    "worst",
    "worst_capacity",
]
