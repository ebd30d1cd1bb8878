"""Relationships that are not functions: the error of MIC* estimates outside their tables."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from dpmic_jax.mechanisms import MICrLap, VariationLap, tuned_defaults
from dpmic_jax.mechanisms.mic_star import posterior_median
from dpmic_jax.paper import scoring, synthetic
from dpmic_jax.paper.calibration import variations
from dpmic_jax.paper.mic_star import mic_star
from dpmic_jax.paper.mixtures import POINTS, Mixture, draw

_DEVIATIONS = (0.02, 0.05, 0.1)


def shapes() -> dict[str, Float[np.ndarray, "points 2"]]:
    """The centres of each shape, 100 points in the unit square."""
    t = np.arange(POINTS) / POINTS
    half, turn = POINTS // 2, 2 * np.pi * t
    rising = np.linspace(0.05, 0.95, half)
    falling = rising[::-1]
    both = np.concatenate([rising, rising])
    return {
        "circle": np.stack([0.5 + 0.4 * np.cos(turn), 0.5 + 0.4 * np.sin(turn)], axis=1),
        "cross": np.stack([both, np.concatenate([rising, falling])], axis=1),
        "two parallels": np.stack([both, np.append(0.5 * rising, 0.5 * rising + 0.5)], axis=1),
        "two sines": np.stack(
            [both, 0.5 + 0.4 * np.sin(2 * np.pi * both) * np.repeat([1, -1], half)], axis=1
        ),
        "three clusters": np.repeat([[0.2, 0.2], [0.5, 0.8], [0.8, 0.3]], [33, 33, 34], axis=0),
        "spiral": np.stack(
            [0.5 + 0.45 * t * np.cos(2 * turn), 0.5 + 0.45 * t * np.sin(2 * turn)], axis=1
        ),
    }


def errors(records: tuple[int, ...], sets: int, *, seed: int) -> list[dict[str, Any]]:
    """Mean absolute error against MIC* for every shape, over noise widths and data sets.

    Args:
      records: every n.
      sets: data sets of each shape and width.
      seed: of the data sets and the noise.
    """
    mixtures = [Mixture(centres, s) for centres in shapes().values() for s in _DEVIATIONS]
    stars = mic_star(mixtures).reshape(-1, len(_DEVIATIONS), 1)
    rows = []
    for n in records:
        x, y = _data(mixtures, n, sets, seed)
        for epsilon in synthetic.EPSILONS:
            keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), n), 2)
            found = _estimates(x, y, epsilon, keys)
            for name, values in found.items():
                gap = np.abs(values.reshape(*stars.shape[:2], sets) - stars).mean(axis=(1, 2))
                by_shape = dict(zip(shapes(), gap.tolist(), strict=True))
                rows.append({"n": n, "epsilon": epsilon, "mechanism": name, **by_shape})
    return rows


def _data(mixtures, n, sets, seed):
    root = jax.random.fold_in(jax.random.key(seed), n)
    keys = jax.random.split(root, (len(mixtures), sets))
    drawn = [
        draw(mixture, n, key=key)
        for mixture, own in zip(mixtures, keys, strict=True)
        for key in own
    ]
    return tuple(np.stack([np.asarray(pair[axis]) for pair in drawn]) for axis in (0, 1))


def _estimates(x, y, epsilon, keys) -> dict[str, Float[np.ndarray, " sets"]]:
    n = x.shape[1]
    ours, apart = MICrLap(epsilon=epsilon), VariationLap(epsilon=epsilon)
    grids = ours.resolve(n).grids(n)
    micr = scoring.micr(scoring.best_entries(x, y, grids), grids).astype(float)
    noisy = synthetic.simulated_release(ours, n, micr, keys[0])
    cut = synthetic.simulated_release(apart, n, variations(x, y, apart.resolve(n)), keys[1])
    return {
        "ours": np.asarray(noisy.value),
        "ours, MIC*": posterior_median(noisy, tuned_defaults.family(n)),
        "variation, MIC*": posterior_median(cut, tuned_defaults.variation_family(n)),
    }
