"""How the budget of a search is cut into releases, in epsilon or in rho."""

from dataclasses import dataclass
from fractions import Fraction

from dpmic_jax.dp.accounting.events import ZCDP, PureDP, zcdp_to_pure
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, floor_to_float
from dpmic_jax.dp.ledger.budget import Budget


@dataclass(frozen=True)
class Allowance:
    """What all releases of a search may cost together.

    Attributes:
      guarantee: PureDP if their epsilons are to add up, ZCDP if their rhos are.
    """

    guarantee: PureDP | ZCDP

    @classmethod
    def better(cls, epsilon: float, delta: float, releases: int) -> "Allowance":
        """The one that gives more to each of so many equal releases.

        rho is the largest that `Budget(epsilon, delta)` admits, so that a ledger of that budget
        can be charged for it.
        """
        pure = cls(PureDP(epsilon))
        if delta == 0:
            return pure
        concentrating = cls(ZCDP(Budget(epsilon, delta).rho))
        more = concentrating.each(releases) > pure.each(releases)
        return concentrating if more else pure

    def each(self, releases: int) -> Fraction:
        """The epsilon that each of so many releases may have: not too much, exactly."""
        if isinstance(self.guarantee, PureDP):
            return as_fraction(self.guarantee.epsilon) / releases
        return as_fraction(zcdp_to_pure(floor_to_float(as_fraction(self.guarantee.rho) / releases)))
