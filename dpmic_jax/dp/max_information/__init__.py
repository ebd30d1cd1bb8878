"""Max-information of private results about their data, and corrected levels for later tests.

| guarantee | bound for independent records | as printed |
|---|---|---|
| epsilon-DP | `pure` | `pure_product`; `pure_any` for any distribution |
| (epsilon, delta)-DP | `approximate`, `profiled` | `approximate_product` |
| rho-zCDP | `concentrated`, and n rho nats of mutual information | |
| m nats of mutual information | `InformationTheorem` | `lemma_1_5`, `corollary_c_2`, `russo_zou` |
| one of m values, any distribution | `DescriptionLength` | `description_length` |

`corrected_level` and `max_information` use the best of them for a guarantee, and
`corrected_level_after` and `max_information_after` for the events of a ledger. Proofs are in
docs/max_information.md.
"""

from dpmic_jax.dp.max_information.bounds import Correction, Laws, MaxInformation
from dpmic_jax.dp.max_information.composition import compose
from dpmic_jax.dp.max_information.description_length import DescriptionLength
from dpmic_jax.dp.max_information.level_correction import (
    corrected_level,
    corrected_level_after,
    largest_epsilon,
    largest_rho,
    max_information,
    max_information_after,
)
from dpmic_jax.dp.max_information.mutual import (
    InformationTheorem,
    corollary_c_2,
    lemma_1_5,
    mutual_information,
    mutual_information_printed,
    russo_zou,
)
from dpmic_jax.dp.max_information.published import (
    approximate_product,
    description_length,
    pure_any,
    pure_product,
)
from dpmic_jax.dp.max_information.pure import pure
from dpmic_jax.dp.max_information.truncated import approximate, concentrated, profiled

__all__ = [
    "Correction",
    "DescriptionLength",
    "InformationTheorem",
    "Laws",
    "MaxInformation",
    "approximate",
    "approximate_product",
    "compose",
    "concentrated",
    "corollary_c_2",
    "corrected_level",
    "corrected_level_after",
    "description_length",
    "largest_epsilon",
    "largest_rho",
    "lemma_1_5",
    "max_information",
    "max_information_after",
    "mutual_information",
    "mutual_information_printed",
    "profiled",
    "pure",
    "pure_any",
    "pure_product",
    "russo_zou",
]
