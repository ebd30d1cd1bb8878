"""The base class of searches above a threshold: noise on each score, then a comparison in order."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Int, Int32

from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.noise.bounded import LARGEST
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.dp.selection.validation import check_scores


@dataclass(frozen=True, kw_only=True)
class ThresholdSearch(ABC):
    """A sparse vector technique in two steps: `noisy` for each candidate, `choose` for all.

    Attributes:
      epsilon: privacy loss of everything that is released.
      sensitivity: the most that one person's records change any score, up or down.
      threshold: T, in 0 .. top.
      at_most: the number of candidates to find before the search ends.
      top: scores are clipped to 0 .. top.
    """

    epsilon: float | Fraction
    sensitivity: int
    threshold: int
    at_most: int
    top: int

    def __post_init__(self):
        integer("top", self.top, 1, LARGEST)
        integer("threshold", self.threshold, 0, self.top)
        integer("sensitivity", self.sensitivity, 1, LARGEST // 2)
        self.certificate()

    @abstractmethod
    def certificate(self) -> NamedTuple:
        """The exact privacy loss, checked when the settings are made: it is at most epsilon."""

    @abstractmethod
    def noisy(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy scores. They are not private by themselves: release only the result of `choose`."""

    @abstractmethod
    def choose_padded(
        self, noisy: Int32[Array, " candidates"], *, key: AnyKey
    ) -> Int32[Array, " at_most"]:
        """As `choose`, padded with -1 to length `at_most`. Works under jit and vmap."""

    def release(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """The same as `noisy`, under the name that noise on a lattice has."""
        return self.noisy(points, key=key)

    def choose(
        self, noisy: Int32[Array, " candidates"], *, key: AnyKey
    ) -> Int[np.ndarray, " found"]:
        """The indices of the candidates found, in order. Not under jit: their number varies.

        Args:
          noisy: the results of `noisy` for all candidates, each with a key of its own.
          key: for the threshold; different from the keys of the noise.
        """
        found = np.asarray(self.choose_padded(noisy, key=key))
        return found[found >= 0]

    def select(
        self, scores: Int32[Array, " candidates"], *, key: AnyKey
    ) -> Int[np.ndarray, " found"]:
        """Both steps at once, for scores that are all at hand. Not under jit."""
        for_noise, for_threshold = jax.random.split(noise_key(key))
        noisy = self.noisy(check_scores(scores), key=for_noise)
        return self.choose(noisy, key=for_threshold)
