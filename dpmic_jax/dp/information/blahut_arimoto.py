"""The capacity-achieving input distribution of a channel, by Blahut-Arimoto with longer steps.

For an input distribution P let q = sum_x P(x) W_x. The step P(x) <- P(x) e^(s D(W_x || q)) / norm
raises the information for s = 1 (Arimoto 1972, Blahut 1972), but slowly where the capacity is
small, as it is for private mechanisms. So s is doubled after each step that raises the information,
and a step that lowers it is undone and s reduced. Near the best P the change is far below the
rounding error of the information itself, so it is computed by its own formula,
sum_x (P'(x) - P(x)) D(W_x || q_P) - D(q_P' || q_P).
"""

from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_STEPS = 1000  # where more are needed, `channels` continues with Newton's method
# Input probabilities below e^-600 are raised to it, so that later steps can still recover them.
_FLOOR = -600.0


def best_inputs(
    channels: Float[np.ndarray, "groups rows outputs"], tolerance: float
) -> Float[np.ndarray, "groups rows"]:
    """An input distribution for each channel that attains the capacity up to `tolerance`.

    max_x D(W_x || q) exceeds the information there by at most `tolerance`, unless the search
    stopped at its limit of steps.
    """
    with _doubles():
        logs = _search(jnp.asarray(channels), jnp.asarray(tolerance, jnp.float64))
        return np.exp(np.asarray(logs))


def _doubles() -> AbstractContextManager[Any]:
    """A context with 64-bit floats; JAX 0.7 has it under another name than JAX 0.10."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # pyright: ignore

    return enable_x64()


@jax.jit
def _search(
    channels: Float[Array, "groups rows outputs"], tolerance: Float[Array, ""]
) -> Float[Array, "groups rows"]:
    """The logarithms of the best input distribution of each channel."""
    return jax.vmap(lambda channel: _search_one(channel, tolerance))(channels)


class _State(NamedTuple):
    log_inputs: Float[Array, " rows"]
    outputs: Float[Array, " outputs"]  # q
    divergences: Float[Array, " rows"]  # D(W_x || q)
    step: Float[Array, ""]  # s
    taken: Float[Array, ""]


def _search_one(
    channel: Float[Array, "rows outputs"], tolerance: Float[Array, ""]
) -> Float[Array, " rows"]:
    possible = channel > 0

    def divergences(outputs: Array) -> Array:
        # Both guards keep 0 log 0 and 0 / 0 out.
        ratio = jnp.where(possible, channel / jnp.where(outputs > 0, outputs, 1.0)[None, :], 1.0)
        return (channel * jnp.log(ratio)).sum(axis=1)

    def unfinished(state: _State) -> Array:
        information = (jnp.exp(state.log_inputs) * state.divergences).sum()
        gap = state.divergences.max() - information
        return (gap > tolerance) & (state.taken < _STEPS)

    def improve(state: _State) -> _State:
        inputs = jnp.exp(state.log_inputs)
        information = (inputs * state.divergences).sum()
        excess = state.divergences - information
        proposed = jnp.maximum(state.log_inputs + state.step * excess, _FLOOR)
        proposed = proposed - jax.scipy.special.logsumexp(proposed)
        change = inputs * jnp.expm1(proposed - state.log_inputs)
        shift = (change[:, None] * channel).sum(axis=0)
        relative = shift / jnp.where(state.outputs > 0, state.outputs, 1.0)
        gain = (change * excess).sum() - (state.outputs * _divergence_term(relative)).sum()
        # A step with s = 1 never lowers the information, so a negative gain there is rounding.
        good = (gain >= 0) | (state.step <= 1)
        outputs = (jnp.exp(proposed)[:, None] * channel).sum(axis=0)
        after = _State(proposed, outputs, divergences(outputs), 2 * state.step, state.taken)
        # A step that failed undoes two doublings, so that s does not fail again at once.
        before = state._replace(step=jnp.maximum(state.step / 4, 1.0))
        chosen = jax.tree.map(lambda new, old: jnp.where(good, new, old), after, before)
        return chosen._replace(taken=state.taken + 1)

    outputs = channel.mean(axis=0)
    one, rows = jnp.ones_like(tolerance), channel.shape[0]
    start = jnp.full_like(channel[:, 0], -np.log(rows))
    state = _State(start, outputs, divergences(outputs), one, 0 * one)
    return jax.lax.while_loop(unfinished, improve, state).log_inputs


def _divergence_term(relative: Array) -> Array:
    """(1 + r) ln(1 + r) - r, without cancellation for small r."""
    # Up to 1e-3 by its series: the first term left out is below 2^-53 of the sum.
    small = jnp.abs(relative) < 1e-3
    r = jnp.where(small, relative, 0.0)
    series = r**2 * (1 / 2 - r * (1 / 6 - r * (1 / 12 - r * (1 / 20 - r / 30))))
    # At r = -1 the limit is 1; the floor keeps the logarithm finite there.
    ratio = jnp.where(small, 1.0, jnp.maximum(1 + relative, 1e-300))
    return jnp.where(small, series, ratio * jnp.log(ratio) - relative)
