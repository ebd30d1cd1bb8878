"""Data sets of known dependences on the unit square, all from seeds that are fixed here."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from scipy.special import ndtr, stdtr

from benchmarks.peers.setting import Data
from dpmic_jax.paper.dependences import other_shapes
from dpmic_jax.paper.family import data_sets, family
from dpmic_jax.paper.functions import Function
from dpmic_jax.paper.mixtures import POINTS, Mixture, draw, generating_points

SEED = 20_261_118
_FAMILY, _SHAPES, _LEFT_OUT, _COPULAS = range(4)
DEVIATIONS = (0.02, 0.05, 0.1)  # of the Gaussians of a shape
_MORE_DEVIATIONS = (*DEVIATIONS, 0.18)
_CORRELATIONS = (0.1, 0.2, 0.3, 0.5)
_FREEDOM = (1, 3)  # of t copulas that have no correlation


class Sets(NamedTuple):
    """Data sets, a row each.

    Attributes:
      names: the function or shape that each is of.
      x, y: the columns.
    """

    names: tuple[str, ...]
    x: Data
    y: Data

    def of(self, names: Sequence[str]) -> np.ndarray:
        """Which data sets are of these functions or shapes."""
        return np.isin(self.names, names)


def functions(n: int, repeats: int) -> Sets:
    """The 189 distributions."""
    of = family()
    x, y = data_sets(of, range(len(of)), n, range(repeats), seed=SEED + _FAMILY)
    return Sets(tuple(np.repeat(of.names, repeats).tolist()), x, y)


def shapes(n: int, repeats: int) -> Sets:
    """Nine shapes that are no functions, at three noise levels each."""
    return _mixtures(other_shapes(), DEVIATIONS, n, repeats, SEED + _SHAPES)


def left_out(n: int, repeats: int) -> Sets:
    """Functions, shapes and copulas that no choice of the statistic was made on."""
    new = _mixtures(_new_centres(), _MORE_DEVIATIONS, n, repeats, SEED + _LEFT_OUT)
    copulas = _copulas(n, repeats)
    return Sets(
        new.names + copulas.names,
        np.concatenate([new.x, copulas.x]),
        np.concatenate([new.y, copulas.y]),
    )


def _mixtures(
    centres: dict[str, np.ndarray],
    deviations: Sequence[float],
    n: int,
    repeats: int,
    seed: int,
) -> Sets:
    names = [name for name in centres for _ in range(len(deviations) * repeats)]
    mixtures = [Mixture(each, s) for each in centres.values() for s in deviations]
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), n), (len(mixtures), repeats))
    drawn = [
        draw(mixture, n, key=key)
        for mixture, own in zip(mixtures, keys, strict=True)
        for key in own
    ]
    x, y = (np.stack([np.asarray(pair[axis]) for pair in drawn]) for axis in (0, 1))
    return Sets(tuple(names), x, y)


def _new_centres() -> dict[str, np.ndarray]:
    """100 points of each function and shape."""
    new: dict[str, Function] = {
        "logistic": lambda x: 0.05 + 0.9 / (1 + np.exp(-20 * (x - 0.4))),
        "sawtooth": lambda x: 0.05 + 0.9 * (3 * x % 1),
        "staircase": lambda x: (np.floor(4 * x) + 0.5) / 4.0 * (x < 1) + 0.875 * (x == 1),
        "decay": lambda x: 0.05 + 0.9 * np.exp(-8 * x),
        "slowing wave": lambda x: 0.5 + 0.4 * np.sin(8 * np.pi * np.sqrt(x)),
    }
    t, half = np.arange(POINTS) / POINTS, POINTS // 2
    turn, arc = 2 * np.pi * t, np.pi * np.arange(half) / half
    radius = np.where(np.arange(POINTS) % 3, 0.42, 0.2)
    moons = [
        (0.35 + 0.3 * np.cos(arc), 0.4 + 0.4 * np.sin(arc)),
        (0.65 - 0.3 * np.cos(arc), 0.6 - 0.4 * np.sin(arc)),
    ]
    x = np.linspace(0.02, 0.98, half)
    fork = np.concatenate([0.5 + 0.9 * np.maximum(x - 0.5, 0), 0.5 - 0.9 * np.maximum(x - 0.5, 0)])
    along = np.repeat(np.linspace(0.05, 0.95, 10), 10)
    spread = 0.45 * np.sin(np.pi * along) * np.tile(np.linspace(-1, 1, 10), 10)
    return {name: generating_points(each) for name, each in new.items()} | {
        "two rings": np.stack([0.5 + radius * np.cos(turn), 0.5 + radius * np.sin(turn)], axis=1),
        "figure eight": np.stack(
            [0.5 + 0.42 * np.sin(turn), 0.5 + 0.42 * np.sin(2 * turn)], axis=1
        ),
        "two moons": np.concatenate([np.stack(each, axis=1) for each in moons]),
        "fork": np.stack([np.tile(x, 2), fork], axis=1),
        "spread that grows and falls": np.stack([along, 0.5 + spread], axis=1),
    }


def _copulas(n: int, repeats: int) -> Sets:
    """Normal copulas, and t copulas without correlation; columns are uniform."""
    names, x, y = [], [], []
    rng = np.random.default_rng([SEED + _COPULAS, n])
    for _ in range(repeats):
        for rho in _CORRELATIONS:
            one, other = rng.normal(size=(2, n))
            names.append("normal copula")
            x.append(ndtr(one))
            y.append(ndtr(rho * one + np.sqrt(1 - rho**2) * other))
        for freedom in _FREEDOM:
            both = rng.normal(size=(2, n)) / np.sqrt(rng.chisquare(freedom, n) / freedom)
            names.append(f"t copula of {freedom}")
            x.append(stdtr(freedom, both[0]))
            y.append(stdtr(freedom, both[1]))
    return Sets(tuple(names), np.array(x, np.float32), np.array(y, np.float32))
