"""The paper's distributions: equal Gaussians along a graph, conditioned on the unit square.

Appendix E.2.1 puts 100 Gaussians of one variance at points evenly spaced along the graph of a
function, and chooses the variance so that the noisy relationship has a given R^2.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, PRNGKeyArray
from scipy.optimize import root_scalar
from scipy.special import ndtr

from dpmic_jax.paper.functions import Function

POINTS = 100
_FINE = 100_001  # points of a graph, to measure its length
_CELLS = 4000  # cells of an axis, to integrate moments
_WIDEST = 2.0  # standard deviation at which nothing of a function is left


class Mixture(NamedTuple):
    """Equal Gaussians N(centre, deviation^2 I), conditioned on the unit square."""

    centres: Float[np.ndarray, "points 2"]
    deviation: float


def generating_points(function: Function) -> Float[np.ndarray, "points 2"]:
    """100 points of a graph, evenly spaced along the part of it inside the unit square.

    They are spaced by arc length: even steps of x would miss the spike of F21 and put one point on
    the steep part of F9. Points outside the square would be lost when the mixture is conditioned
    on the square; F8 would keep 28 of 100.
    """
    x = np.linspace(0, 1, _FINE)
    y = function(x)
    inside = (y >= 0) & (y <= 1)
    step = np.hypot(np.diff(x), np.diff(y)) * (inside[1:] & inside[:-1])
    length = np.append(0, np.cumsum(step))
    # Stretches outside the square add no length, so each target is first reached inside it.
    at = np.searchsorted(length, np.linspace(0, length[-1], POINTS))
    first = np.flatnonzero(inside)[0]
    at = np.maximum(at, first)
    return np.stack([x[at], y[at]], axis=1)


def mixture_with_r_squared(function: Function, r_squared: float) -> Mixture:
    """The mixture along a graph with the given R^2."""
    centres = generating_points(function)

    def excess(deviation: float) -> float:
        return correlation_squared(function, Mixture(centres, deviation)) - r_squared

    found = root_scalar(excess, bracket=(1e-4, _WIDEST), xtol=1e-7)
    return Mixture(centres, float(found.root))


def correlation_squared(function: Function, mixture: Mixture) -> float:
    """R^2 of a noisy functional relationship (Reshef et al. 2018): corr(f(X), Y)^2.

    X is noisy too. The shorter formula Var f / (Var f + s^2) ignores this, and would allow so much
    noise that hardly any dependence is left: the faster a function oscillates, the sooner noise
    along x destroys it.

    Given the centre, X and Y are independent, so moments are sums of products over the centres,
    E[f(X)^a Y^b] = sum_i E_i[f(X)^a] E_i[Y^b], each integrated over narrow cells.
    """
    edges = np.linspace(0, 1, _CELLS + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    x, y = (cell_masses(mixture, axis, edges) for axis in (0, 1))

    def moment(a: int, b: int) -> float:
        return float((function(middle) ** a @ x) @ (middle**b @ y))

    total = moment(0, 0)
    mean_f, mean_y = moment(1, 0) / total, moment(0, 1) / total
    covariance = moment(1, 1) / total - mean_f * mean_y
    variances = (moment(2, 0) / total - mean_f**2) * (moment(0, 2) / total - mean_y**2)
    return covariance**2 / variances


def cell_masses(
    mixture: Mixture, axis: int, edges: Float[np.ndarray, " edges"]
) -> Float[np.ndarray, "cells points"]:
    """The mass of each Gaussian between neighbouring edges of one axis, before conditioning."""
    return np.diff(ndtr((edges[:, None] - mixture.centres[:, axis]) / mixture.deviation), axis=0)


def draw(
    mixture: Mixture, n: int, *, key: PRNGKeyArray
) -> tuple[Float32[Array, " n"], Float32[Array, " n"]]:
    """Sample n records of a mixture, as x and y."""
    centres = mixture.centres.astype(np.float32)
    inside = np.prod(
        [cell_masses(mixture, axis, np.array([0.0, 1.0]))[0] for axis in (0, 1)], axis=0
    )
    return _draw(
        jnp.asarray(centres),
        jnp.asarray(np.log(np.maximum(inside, 1e-30)), jnp.float32),
        jnp.float32(mixture.deviation),
        key,
        n=n,
    )


@partial(jax.jit, static_argnames="n")
def _draw(
    centres: Float32[Array, "points 2"],
    log_inside: Float32[Array, " points"],
    deviation: Float32[Array, ""],
    key: PRNGKeyArray,
    *,
    n: int,
) -> tuple[Float32[Array, " n"], Float32[Array, " n"]]:
    """Sample a centre by its mass inside the square, then a truncated Gaussian on each axis.

    This samples the conditioned mixture exactly, without rejection.
    """
    which, along = jax.random.split(key)
    # Inverse transform sampling: jax.random.categorical would draw a number for every centre.
    below = jnp.cumsum(jax.nn.softmax(log_inside))
    uniform = jax.random.uniform(which, (n,), maxval=below[-1])
    centre = centres[jnp.minimum(jnp.searchsorted(below, uniform, side="right"), POINTS - 1)]
    noise = jax.random.truncated_normal(
        along, (0 - centre) / deviation, (1 - centre) / deviation, (n, 2)
    )
    records = jnp.clip(centre + deviation * noise, 0, 1)
    return records[:, 0], records[:, 1]
