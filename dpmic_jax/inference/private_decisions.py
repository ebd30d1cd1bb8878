"""Private permutation tests: a decision for each pair, at a level that is fixed beforehand.

After Kim and Schrab (arXiv 2310.19043). Of pair i, T_0i is the distance from independence, and T_bi
that after a permutation p_b of y, b = 1 .. B, uniform and independent of the records. Z_0, ..., Z_B
are independent vectors of cube noise over the d pairs, all of one distribution. With N = T + Z,

    pair i is called dependent if 1 + #{b >= 1 : N_bi >= N_0i} <= k,   k = floor((B + 1) alpha / d).

**Level.** If x and y of pair i are independent, and the records independent and of one
distribution, T_0i, ..., T_Bi are exchangeable given x and the values of y
(`inference.permutation`), and so are N_0i, ..., N_Bi. At most k of B + 1 numbers, tied or not, have
at most k of them at or above themselves. So a pair is falsely called dependent with a probability
of at most k / (B + 1) <= alpha / d, whatever n and the distributions of x and y are, and any pair
with one of at most alpha.

**Privacy.** Take the p_b and Z_b for b >= 1 as given. Then the decision of pair i is whether
Z_0i > V_i - T_0i, where V_i, the k-th largest of N_1i, ..., N_Bi, is a function of the records. A
record moves T_0i by at most 1/n. In a permuted copy its x and its y stand in two places, so two
records of the copy are replaced, and T_bi moves by at most 2/n. An order statistic moves no more
than the number that moves most. So the vector of all T_0i - V_i moves by at most 3/n in the maximum
norm, and with one cube of noise for d values of that sensitivity added to it, its signs are
epsilon-DP: all decisions together, whatever B is. This holds for all p_b and Z_b, hence on average.

Each Z_b needs a radius of its own. With a shared one, what is given would tell the radius of Z_0.

The ranks are not released, nor decisions at a second level, which the proof does not cover: given
the copies both tell between which two of them N_0i is, and that interval may vanish.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction
from dpmic_jax.dp.noise.cube import random_bits
from dpmic_jax.dp.rng.keys import fold
from dpmic_jax.inference import monte_carlo, shuffling
from dpmic_jax.inference.private_noise import DistanceNoise
from dpmic_jax.inference.private_result import Found
from dpmic_jax.mic.statistics import BinnedTable

# Words folded into the event's key.
_OBSERVED, _COPIES, _SHUFFLES = 1, 2, 3

_USUAL_RANK = 20  # k: with more copies their quantile gets hardly more accurate
_MOST_COPIES = 100_000  # of all pairs, as far as k >= 1 allows
_TOO_MANY_COPIES = 1_000_000  # take minutes to hours, which is left to who asks for them

DrawsRule = Callable[[float, int], int]


def default_draws(alpha: float, pairs: int) -> int:
    """The number of permutations for which (B + 1) alpha / d is a whole number of 20, or fewer.

    Fewer, but at least 1, if the copies of all pairs would be more than 100 000. More than a
    million are refused.
    """
    level = as_fraction(alpha) / pairs
    rank = min(max(math.floor(_MOST_COPIES * level / pairs), 1), _USUAL_RANK)
    draws = math.ceil(rank / level) - 1
    if draws * pairs > _TOO_MANY_COPIES:
        raise ValueError(
            f"a level of {float(level):.3g} for each of {pairs} pairs takes {draws} permutations: "
            "use method=PrivatePValues() (--method p-values), which needs none, or ask for them "
            "with PrivateDecisions(draws=...) (--draws)"
        )
    return draws


@dataclass(frozen=True, kw_only=True)
class PrivateDecisions:
    """Whether each pair is dependent, by a permutation test with noise. Its level is exact.

    No p-values: these would not be private. `alpha` has to be fixed beforehand.

    Attributes:
      draws: number of permutations, or a rule (alpha, pairs) -> number.
    """

    draws: int | DrawsRule = default_draws

    # One record moves a distance by 1/n, and the distance of a permuted copy by 2/n.
    moved: ClassVar[int] = 3
    name: ClassVar[str] = "decisions by a permutation test with cube noise"
    error: ClassVar[str] = "chance of any false discovery"

    def __post_init__(self):
        if not callable(self.draws):
            monte_carlo.checked_draws(self.draws)

    def resolved(self, alpha: float, pairs: int) -> int:
        """The number of permutations."""
        found = self.draws(alpha, pairs) if callable(self.draws) else self.draws
        return monte_carlo.checked_draws(found)

    def settings(self, alpha: float, pairs: int) -> dict[str, str]:
        """What is compared, for the event."""
        draws = self.resolved(alpha, pairs)
        return {"draws": str(draws), "rank": str(largest_rank(draws, alpha, pairs))}

    def smallest_found(self, noise: DistanceNoise, alpha: float, sure: float) -> float:
        """The distance that is found with probability `sure` if all copies have a distance of 0."""
        level = float(as_fraction(alpha)) / noise.pairs
        return noise.quantile(min(level, 0.5)) + noise.quantile(1 - sure)

    def found(
        self,
        binned: BinnedTable,
        pairs: Int[np.ndarray, "pairs 2"],
        noise: DistanceNoise,
        alpha: float,
        key: Key[Array, ""],
    ) -> Found:
        """The decisions on a table.

        Args:
          binned: the columns, cut by `MICrAndDistance(micr=None)`.
          pairs: the two columns of each pair.
          noise: for `len(pairs)` pairs.
          alpha: the level of all pairs together.
          key: the event's key.
        """
        draws = self.resolved(alpha, len(pairs))
        shuffled = shuffling.distances(binned, pairs, range(draws + 1), key=_folded(key, _SHUFFLES))
        dependent = decisions(
            itertools.chain.from_iterable(some.tolist() for some in shuffled),
            noise,
            largest_rank(draws, alpha, len(pairs)),
            observed=noise.draw(random_bits(_folded(key, _OBSERVED))),
            copies=noise.draws(random_bits(_folded(key, _COPIES))),
        )
        return Found(dependent=dependent)


def largest_rank(draws: int, alpha: float, pairs: int) -> int:
    """k, the largest rank at which a pair is called dependent."""
    level = as_fraction(alpha) / pairs
    rank = math.floor((draws + 1) * level)
    if rank < 1:
        raise ValueError(
            f"{draws} permutations cannot show anything at a level of {float(level):.3g} for each "
            f"of {pairs} pairs: pass draws={math.ceil(Fraction(1) / level) - 1} or more"
        )
    return rank


def decisions(
    distances: Iterable[int],
    noise: DistanceNoise,
    rank: int,
    *,
    observed: list[int],
    copies: Iterator[int],
) -> tuple[bool, ...]:
    """Whether each pair is called dependent.

    Args:
      distances: D of every pair, then of every pair in the first copy, and so on.
      noise: the noise, for its lattice.
      rank: k.
      observed: Z_0.
      copies: Z_1, then Z_2, ..., one number at a time.
    """
    distances, m = iter(distances), noise.multiplier
    original = [m * next(distances) + drawn for drawn in observed]
    as_large = [0] * len(original)
    # Lane by lane in Python integers, which noise of any size fits.
    for lane, distance in enumerate(distances):
        pair = lane % len(original)
        # Ties count against the test.
        as_large[pair] += m * distance + next(copies) >= original[pair]
    return tuple(1 + larger <= rank for larger in as_large)


def _folded(key: Key[Array, ""], word: int) -> Key[Array, ""]:
    return fold(key, jnp.asarray([word], jnp.uint32))
