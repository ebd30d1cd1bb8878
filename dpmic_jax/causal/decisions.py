"""How noise decides one query of a search: the probability that a score removes its edge.

A query removes its edge if its noisy score is at most a threshold, which may be noisy, too. With
Laplace noise X of scale a on the score and Y of scale b < a on the threshold, for z >= 0

    P(X - Y >= z) = (a^2 e^(-z/a) - b^2 e^(-z/b)) / (2 (a^2 - b^2)),

and e^(-z/a) / 2 without Y. Noise of the searches is of this form, up to steps of their lattices.
"""

from dataclasses import dataclass
from math import exp, prod
from typing import NamedTuple

SURE = 0.95  # the probability of a right decision that is asked for
_HALVINGS = 60


class Comparison(NamedTuple):
    """Whether share * score + X <= limit + Y.

    Attributes:
      limit: the threshold without noise.
      noise: scale of X.
      limit_noise: scale of Y, smaller than that of X; 0 if the threshold has no noise.
      share: what is left of the score on all records, if it is computed on a subsample.
    """

    limit: float
    noise: float
    limit_noise: float = 0.0
    share: float = 1.0

    def passed(self, score: float) -> float:
        """The probability that this score is found to be at most the threshold."""
        gap = self.share * score - self.limit
        beyond = self._tail(abs(gap))
        return beyond if gap >= 0 else 1 - beyond

    def _tail(self, z: float) -> float:
        a, b = self.noise, self.limit_noise
        if b == 0:
            return exp(-z / a) / 2
        return (a * a * exp(-z / a) - b * b * exp(-z / b)) / (2 * (a * a - b * b))


@dataclass(frozen=True)
class Decision:
    """The decision on one query: its edge is removed if all comparisons are passed.

    Attributes:
      comparisons: comparisons with noise of their own, in their order.
    """

    comparisons: tuple[Comparison, ...]

    @property
    def noise(self) -> float:
        """Scale of the noise on the score that decides in the end."""
        return self.comparisons[-1].noise

    def removed(self, score: float) -> float:
        """The probability that a query of this score removes its edge; it falls with the score."""
        return prod(each.passed(score) for each in self.comparisons)

    @property
    def smallest_kept(self) -> float:
        """The smallest score whose edge is kept with 95 % probability."""
        if self.removed(0.0) <= 1 - SURE:
            return 0.0
        low, high = 0.0, 1.0
        while self.removed(high) > 1 - SURE:
            high *= 2
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.removed(middle) > 1 - SURE else (low, middle)
        return high
