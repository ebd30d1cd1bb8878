"""Personalised budgets: one guarantee for each group of records (Cuff and Yu 2016, section 6.1).

The guarantee of group i is for neighbours that differ in a record of group i. Every implication is
about such neighbours, so it holds group by group. So do the chain rule and composition.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_positive_int
from dpmic_jax.dp.information.composition import composed
from dpmic_jax.dp.information.guarantees import KLDP, MIDP

Budget = TypeVar("Budget")
Other = TypeVar("Other")
Nats = TypeVar("Nats", KLDP, MIDP)


@dataclass(frozen=True)
class Personal(Generic[Budget]):
    """One guarantee per group of records, as (name, guarantee) pairs sorted by name."""

    budgets: tuple[tuple[str, Budget], ...]

    def __post_init__(self):
        names = [name for name, _ in self.budgets]
        if not names:
            raise ValueError("expected a guarantee for at least one group, got none")
        if len(set(names)) < len(names):
            raise ValueError("expected every group once; two have the same name")
        kinds = {type(budget) for _, budget in self.budgets}
        if len(kinds) > 1:
            raise TypeError("expected guarantees of one kind; convert them by an implication")
        ordered = tuple(sorted(self.budgets, key=lambda pair: pair[0]))
        object.__setattr__(self, "budgets", ordered)

    def __getitem__(self, group: str) -> Budget:
        """The guarantee of a group."""
        for name, budget in self.budgets:
            if name == group:
                return budget
        raise KeyError(f"expected one of {[name for name, _ in self.budgets]}, got {group!r}")

    def each(self, implication: Callable[[Budget], Other]) -> "Personal[Other]":
        """Apply an implication to every group: `personal.each(pure_to_mi)`."""
        return Personal(tuple((name, implication(budget)) for name, budget in self.budgets))


def worst(personal: Personal[Nats]) -> Nats:
    """The guarantee that holds for every record: that of the group with the most nats."""
    return max((budget for _, budget in personal.budgets), key=lambda budget: budget.nats)


def composed_personal(releases: Iterable[Personal[Nats]]) -> Personal[Nats]:
    """Corollaries 2 and 3, group by group; all releases must have the same groups."""
    listed = list(releases)
    groups = [tuple(name for name, _ in release.budgets) for release in listed]
    if len(set(groups)) != 1:
        raise ValueError(
            "expected at least one release and the same groups in each; name every group in every "
            "release, also in one that does not use its records"
        )
    return Personal(tuple((g, composed([release[g] for release in listed])) for g in groups[0]))


def pure_mixed_group(personal: Personal[PureDP], *, records: Mapping[str, int]) -> PureDP:
    """Property 7 for k_g records of each named group: (sum_g k_g epsilon_g)-DP."""
    if not records:
        raise ValueError("Property 7 needs records of at least one group, got none")
    losses = (
        check_positive_int(g, k) * as_fraction(personal[g].epsilon) for g, k in records.items()
    )
    return PureDP(ceil_to_float(sum(losses, Fraction())))
