"""The best input law of a channel, by Blahut and Arimoto, with longer steps.

For a law P of the inputs let q = sum_x P(x) W_x. The step P(x) <- P(x) e^(s D(W_x || q)) / norm
raises the information for s = 1 (Arimoto 1972, Blahut 1972), but slowly where the capacity is
small, as private mechanisms have it. So s is doubled after each step that raises it and taken
back otherwise. Near the best P the change is far below the rounding error of the information
itself, so its own formula is used, sum_x (P'(x) - P(x)) D(W_x || q_P) - D(q_P' || q_P).
"""

from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_STEPS = 1000
# Chances below e^-600 count as that, so that no input is out of reach of later steps.
_FLOOR = -600.0


def best_inputs(
    channels: Float[np.ndarray, "groups rows outputs"], tolerance: float
) -> Float[np.ndarray, "groups rows"]:
    """An input law for each channel; max_x D(W_x || q) and the information there are
    `tolerance` apart, unless the steps ran out."""
    with _doubles():
        logs = _search(jnp.asarray(channels), jnp.asarray(tolerance, jnp.float64))
        return np.exp(np.asarray(logs))


def _doubles() -> AbstractContextManager[Any]:
    """Doubles here and nowhere else; JAX 0.7 has this under another name than JAX 0.10."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # pyright: ignore

    return enable_x64()


@jax.jit
def _search(
    channels: Float[Array, "groups rows outputs"], tolerance: Float[Array, ""]
) -> Float[Array, "groups rows"]:
    """Logs of the best input law of each channel."""
    return jax.vmap(lambda channel: _search_one(channel, tolerance))(channels)


class _State(NamedTuple):
    log_inputs: Float[Array, " rows"]
    law: Float[Array, " outputs"]
    divergences: Float[Array, " rows"]
    step: Float[Array, ""]
    taken: Float[Array, ""]


def _search_one(
    channel: Float[Array, "rows outputs"], tolerance: Float[Array, ""]
) -> Float[Array, " rows"]:
    possible = channel > 0

    def divergences(law: Array) -> Array:
        ratio = jnp.where(possible, channel / jnp.where(law > 0, law, 1.0)[None, :], 1.0)
        return (channel * jnp.log(ratio)).sum(axis=1)

    def unfinished(state: _State) -> Array:
        information = (jnp.exp(state.log_inputs) * state.divergences).sum()
        gap = state.divergences.max() - information
        return (gap > tolerance) & (state.taken < _STEPS)

    def improve(state: _State) -> _State:
        inputs = jnp.exp(state.log_inputs)
        information = (inputs * state.divergences).sum()
        over = state.divergences - information
        moved = jnp.maximum(state.log_inputs + state.step * over, _FLOOR)
        moved = moved - jax.scipy.special.logsumexp(moved)
        change = inputs * jnp.expm1(moved - state.log_inputs)
        shift = (change[:, None] * channel).sum(axis=0)
        relative = shift / jnp.where(state.law > 0, state.law, 1.0)
        gain = (change * over).sum() - (state.law * _excess(relative)).sum()
        # A step of 1 needs no test, and rounding may not stop it.
        good = (gain >= 0) | (state.step <= 1)
        law = (jnp.exp(moved)[:, None] * channel).sum(axis=0)
        after = _State(moved, law, divergences(law), 2 * state.step, state.taken)
        before = state._replace(step=jnp.maximum(state.step / 4, 1.0))
        chosen = jax.tree.map(lambda new, old: jnp.where(good, new, old), after, before)
        return chosen._replace(taken=state.taken + 1)

    law = channel.mean(axis=0)
    one, rows = jnp.ones_like(tolerance), channel.shape[0]
    start = jnp.full_like(channel[:, 0], -np.log(rows))
    state = _State(start, law, divergences(law), one, 0 * one)
    return jax.lax.while_loop(unfinished, improve, state).log_inputs


def _excess(relative: Array) -> Array:
    """(1 + r) ln(1 + r) - r, without cancellation for small r."""
    small = jnp.abs(relative) < 1e-3
    r = jnp.where(small, relative, 0.0)
    series = r**2 * (1 / 2 - r * (1 / 6 - r * (1 / 12 - r * (1 / 20 - r / 30))))
    ratio = jnp.where(small, 1.0, jnp.maximum(1 + relative, 1e-300))
    return jnp.where(small, series, ratio * jnp.log(ratio) - relative)
