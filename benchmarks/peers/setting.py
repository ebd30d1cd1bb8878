"""What every peer is given: the records, the pairs, and one budget for all of them."""

from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Float32

FALSE_ALARMS = (
    0.05  # the share of tables of independent pairs in which any pair is called dependent
)

Data = Float32[np.ndarray, "sets n"]  # a column of each data set, on [0, 1]
Values = Float[np.ndarray, "sets"] | Float[np.ndarray, "sets copies"]
Probabilities = Float[np.ndarray, " sets"]


class Setting(NamedTuple):
    """Tables of n records, whose pairs share one budget.

    Attributes:
      n: number of records.
      pairs: number of pairs that are tested.
      epsilon, delta: of all pairs together.
    """

    n: int
    pairs: int
    epsilon: float
    delta: float = 0.0


class Statistic(Protocol):
    """What a peer computes of a data set before noise. Equal statistics have equal values."""

    def values(self, x: Data, y: Data) -> Values:
        """The statistic of each data set; noise is not in it, so it serves every budget."""
        ...


class Peer(Protocol):
    """A private test of all pairs of a table, with `FALSE_ALARMS` over independent pairs."""

    @property
    def name(self) -> str:
        """The name of the peer in tables."""
        ...

    def statistic(self, setting: Setting, /) -> Statistic:
        """The statistic at a setting; often the same at many settings."""
        ...

    def power(self, values: Values, setting: Setting) -> Probabilities:
        """The probability, over the noise, that each data set is called dependent."""
        ...

    def false_alarms(self, values: Values, setting: Setting) -> float:
        """The probability that any pair of a table is called dependent.

        The pairs of the table are drawn from the data sets that `values` was computed of, which
        are to be independent pairs.
        """
        ...
