"""Split the budget of a search into equal releases, by epsilon or by rho."""

from dataclasses import dataclass
from fractions import Fraction

from dpmic_jax.dp.accounting.events import ZCDP, PureDP, zcdp_to_pure
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, floor_to_float
from dpmic_jax.dp.ledger.budget import Budget


@dataclass(frozen=True)
class Allowance:
    """The privacy cost that all releases of a search share.

    Attributes:
      guarantee: `PureDP` if the releases compose by epsilon, `ZCDP` if they compose by rho.
    """

    guarantee: PureDP | ZCDP

    @classmethod
    def better(cls, epsilon: float, delta: float, releases: int) -> "Allowance":
        """The guarantee that leaves more epsilon to each of `releases` equal releases.

        rho is the largest that `Budget(epsilon, delta)` admits, so that a ledger of that budget
        can be charged for it.
        """
        pure = cls(PureDP(epsilon))
        if delta == 0:
            return pure
        concentrated = cls(ZCDP(Budget(epsilon, delta).rho))
        better = concentrated.each(releases) > pure.each(releases)
        return concentrated if better else pure

    def each(self, releases: int) -> Fraction:
        """Epsilon of each of `releases` equal releases, rounded down.

        By rho it is the largest epsilon for which epsilon-DP is (rho / releases)-zCDP.
        """
        if isinstance(self.guarantee, PureDP):
            return as_fraction(self.guarantee.epsilon) / releases
        return as_fraction(zcdp_to_pure(floor_to_float(as_fraction(self.guarantee.rho) / releases)))
