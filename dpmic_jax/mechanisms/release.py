"""What a mechanism gives back, and noise for many pairs from one key."""

import hashlib
from dataclasses import dataclass, field
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int32, PRNGKeyArray

from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.ledger.file import Receipt
from dpmic_jax.dp.noise.lattice import Lattice, LatticeGauss, LatticeLaplace
from dpmic_jax.dp.rng.keys import SecretKey, is_secret, pair_key
from dpmic_jax.mic.characteristic import VALUE_BITS
from dpmic_jax.mic.grids import MasterRule, Sizes, all_sizes, cells, definition, ladder, reshef
from dpmic_jax.mic.statistics import Statistic
from dpmic_jax.runs.charged import ChargedRun

Key = SecretKey | PRNGKeyArray

_OURS = (all_sizes, definition, reshef)


@dataclass(frozen=True)
class PrivateValue:
    """Private values of one pair of columns, or of many.

    Attributes:
      value: in [0, 1]: a number, or an array with one a pair.
      event: what it cost.
      key_is_secret: whether the noise came from a secret key. If not, whoever guesses the seed can
        take the noise off again: the release is for research, not for publication.
      receipt: of the charge, if `ledger=` was given.
    """

    value: float | Float[np.ndarray, " pairs"]
    event: Event
    key_is_secret: bool
    receipt: Receipt | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Release(PrivateValue):
    """Private values with noise of a known law on them.

    Attributes:
      scale: of the noise before clipping, in the units of `value`: b of Laplace noise, whose
        standard deviation is sqrt(2) b, or the standard deviation of Gaussian noise.
      lattice: the points that `value` can have.
    """

    scale: float
    lattice: Lattice


def release_of(
    noisy: Int[np.ndarray, " pairs"], law: LatticeLaplace | LatticeGauss, run: ChargedRun
) -> Release:
    """Noised points of a lattice, as what a run that is paid for releases."""
    top = law.lattice.top
    secret, receipt = is_secret(run.key), run.receipt
    return Release(noisy / top, run.event, secret, law.scale, law.lattice, receipt=receipt)


class Law(Protocol):
    """Noise on points of a lattice."""

    def release(
        self, values: Int32[Array, "*shape"], /, *, key: PRNGKeyArray
    ) -> Int32[Array, "*shape"]: ...


def event_settings(statistic: Statistic, n: int) -> tuple[tuple[str, str], ...]:
    """A statistic's public settings, as an event keeps them."""
    rules = {"master": statistic.master, "sizes": statistic.sizes}
    named = {name: _told(rule, statistic, n) for name, rule in rules.items()}
    numbers = {"B": str(cells(statistic.B, n)), "c": str(statistic.c)}
    return tuple(sorted({**numbers, **named}.items()))


def _told(rule: MasterRule | Sizes, statistic: Statistic, n: int) -> str:
    """A rule by its name if it is one of ours, else with the plan of grids that it leads to.

    Names do not tell functions apart: two lambdas share theirs, and events that are equal share
    their noise.
    """
    name = getattr(rule, "__name__", repr(rule))
    if rule in _OURS or isinstance(rule, ladder):
        return name
    plan = hashlib.sha256(repr(statistic.grids(n)).encode()).hexdigest()
    return f"{name}, grids {plan[:32]}"


_pair_keys = jax.jit(jax.vmap(pair_key, in_axes=(None, 0, 0)))
_TOGETHER = 4096  # pairs that get their noise in one call: memory stays flat


def add_noise(
    law: Law,
    points: Int[np.ndarray, "pairs *shape"],
    pairs: Int[np.ndarray, "pairs 2"],
    key: PRNGKeyArray,
) -> Int[np.ndarray, "pairs *shape"]:
    """Noise for every pair (i, j) from `key` folded with i, then j.

    So the noise of a pair does not depend on which other pairs are released with it.
    """
    noisy = jax.vmap(lambda key, point: law.release(point, key=key))
    done = []
    for start in range(0, len(pairs), _TOGETHER):
        part, values = pairs[start : start + _TOGETHER], points[start : start + _TOGETHER]
        # Filled up, so that few programs are compiled: 16, 256 or 4096 numbers, which take no
        # time, or the next power of two where each pair has many.
        bits = (len(part) - 1).bit_length()
        width = 1 << (bits if values.ndim > 1 else 4 * max(1, -(-bits // 4)))
        keys = _pair_keys(key, *jnp.asarray(np.resize(part, (width, 2)).T, jnp.uint32))
        filled = np.resize(values, (width, *values.shape[1:]))
        done.append(np.asarray(noisy(keys, jnp.asarray(filled, jnp.int32)))[: len(part)])
    return np.concatenate(done)


def on_lattice(lattice: Lattice, values: Int[np.ndarray, " pairs"]) -> Int[np.ndarray, " pairs"]:
    """`characteristic.integer_mic` rounded down to the lattice: exact, so not private."""
    return np.clip(values >> (VALUE_BITS - lattice.bits), 0, lattice.top)
