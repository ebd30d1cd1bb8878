"""The laws of integer noise, each with its certificate: what a mechanism picks from.

`DiscreteLaplace`, `Geometric` and `DiscreteGaussian` are laws of noise alone (`distributions`);
`TruncatedGeometric` is the first of them on a count, clipped to its range (`bounded`).
"""

from dpmic_jax.dp.noise.bounded import TruncatedGeometric
from dpmic_jax.dp.noise.distributions import DiscreteGaussian, DiscreteLaplace, Geometric

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Geometric", "TruncatedGeometric"]
