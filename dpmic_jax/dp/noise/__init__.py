"""Distributions of integer noise, each with a certificate of the exact sampled distribution.

`DiscreteLaplace`, `Geometric` and `DiscreteGaussian` are distributions of noise (`distributions`).
`TruncatedGeometric` adds discrete Laplace noise to a count and clips it to its range (`bounded`).
`CubeNoise` is for many values that one person moves together (`cube`).
"""

from dpmic_jax.dp.noise.bounded import TruncatedGeometric
from dpmic_jax.dp.noise.cube import CubeNoise
from dpmic_jax.dp.noise.distributions import DiscreteGaussian, DiscreteLaplace, Geometric

__all__ = ["CubeNoise", "DiscreteGaussian", "DiscreteLaplace", "Geometric", "TruncatedGeometric"]
