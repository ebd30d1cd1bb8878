"""Figures 2 and 4: the published mechanisms and ours on samples of the 189 distributions."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float32, PRNGKeyArray
from tqdm import tqdm

from dpmic_jax.mechanisms import (
    MICeLap,
    MICrLap,
    PublishedMICeLap,
    PublishedMICrGeom,
    PublishedMICrLap,
    VariationLap,
    tuned_defaults,
)
from dpmic_jax.mechanisms.mic_star import posterior_median
from dpmic_jax.mechanisms.release import Release
from dpmic_jax.mic import batch
from dpmic_jax.mic.characteristic import characteristic, mic
from dpmic_jax.mic.grids import Grid
from dpmic_jax.mic.statistics import MICe
from dpmic_jax.mic.xlogx import gains_for
from dpmic_jax.paper import family, scoring
from dpmic_jax.paper.calibration import variations
from dpmic_jax.paper.geometric import noisy_grids
from dpmic_jax.paper.store import Store

RECORDS = (25, 250, 500, 1000, 5000, 10_000)
EPSILONS = (1.0, 0.1)
LARGE = 5000

Values = Float[np.ndarray, "distributions iterations"]
Data = tuple[Float32[np.ndarray, "sets n"], Float32[np.ndarray, "sets n"]]


@dataclass(frozen=True, kw_only=True)
class Study:
    """The sizes of a study.

    Attributes:
      iterations: data sets of each distribution, each released once by each mechanism.
      large_iterations: the same for n >= 5000.
      mice_sets: for n >= 5000, the number of these on which MICe is computed, which takes longest.
        MICe-Lap releases their values repeatedly; its noise is a hundred times wider than the
        spread of MICe over data sets.
      seed: not the seed of the tuning, so that settings are judged on data they were not tuned on.
    """

    iterations: int = 50
    large_iterations: int = 15
    mice_sets: int = 5
    seed: int = 1

    def sets(self, n: int) -> int:
        """Number of data sets of each distribution at n records."""
        return self.iterations if n < LARGE else self.large_iterations

    def mice(self, n: int) -> int:
        """Number of data sets of each distribution on which MICe is computed."""
        return self.iterations if n < LARGE else min(self.large_iterations, self.mice_sets)


def released(study: Study, n: int, epsilon: float, store: Store) -> dict[str, Values]:
    """The releases of every mechanism, read from the store or computed and kept there.

    "ours, noiseless" is MICr at the setting of "ours". "ours, MIC*" is the estimate of MIC* from
    that release, and "variation, MIC*" the estimate from `VariationLap`'s; the tables of both leave
    out the function that is estimated.
    """
    return store.part(f"released-{n}-{epsilon}", lambda: _released(study, n, epsilon, store))


def _released(study: Study, n: int, epsilon: float, store: Store) -> dict[str, Values]:
    which, repeats = range(len(family.family())), range(study.sets(n))
    data = family.data_sets(family.family(), which, n, repeats, seed=study.seed)
    key = jax.random.fold_in(jax.random.key(study.seed), round(1000 * epsilon))
    keys = jax.random.split(jax.random.fold_in(key, n), 5)
    published, ours = PublishedMICrLap(epsilon=epsilon), MICrLap(epsilon=epsilon)
    plans = [mechanism.resolve(n).grids(n) for mechanism in (published, ours)]
    exact = [_shaped(values) for values in _micr(data, plans, f"n = {n}, epsilon = {epsilon}")]
    mice = store.part(f"mice-{n}", lambda: {"mice": _mice(data, study.mice(n))})["mice"]
    mice = np.resize(mice.T, exact[0].T.shape).T
    found = simulated_release(ours, n, exact[1], keys[0])
    cut = VariationLap(epsilon=epsilon)
    apart = simulated_release(cut, n, _shaped(variations(*data, cut.resolve(n))), keys[4])
    return {
        "MICe-Lap": np.asarray(
            simulated_release(PublishedMICeLap(epsilon=epsilon), n, mice, keys[1]).value
        ),
        "MICr-Lap": np.asarray(simulated_release(published, n, exact[0], keys[2]).value),
        "MICr-Geom": _shaped(_geom(data, PublishedMICrGeom(epsilon=epsilon), keys[3])),
        "ours": np.asarray(found.value),
        "ours, MIC*": leave_one_function_out(found, tuned_defaults.family(n)),
        "variation, MIC*": leave_one_function_out(apart, tuned_defaults.variation_family(n)),
        "ours, noiseless": exact[1],
    }


def leave_one_function_out(release: Release, of: tuned_defaults.Family) -> Values:
    """Estimates of MIC* from tables that leave out the function that is estimated."""
    names = np.array(of.functions)
    values, found = np.asarray(release.value), np.empty(np.shape(release.value))
    for name in dict.fromkeys(of.functions):
        here, others = names == name, names != name
        kept = tuned_defaults.Family(tuple(names[others]), of.stars[others], of.values[others])
        one = Release(values[here], release.event, False, release.noise)
        found[here] = posterior_median(one, kept)
    return found


def _shaped(values: Float[np.ndarray, " sets"]) -> Values:
    return values.reshape(len(family.family()), -1).astype(float)


def simulated_release(
    mechanism: MICeLap | MICrLap | VariationLap, n: int, values: Values, key: PRNGKeyArray
) -> Release:
    """Release exact values with a mechanism's noise, as for a study."""
    noise = mechanism.noise(n)
    points = jnp.asarray(np.floor(values * noise.lattice.top).astype(np.int32))
    value = noise.lattice.values(noise.release(points, key=key))
    return Release(value, mechanism.event(n), False, noise)


def _mice(data: Data, sets: int) -> Values:
    """MICe of the first `sets` data sets of each distribution."""
    columns = [v.reshape(len(family.family()), -1, v.shape[1])[:, :sets] for v in data]
    columns = [column for side in columns for column in side.reshape(-1, side.shape[2])]
    total = len(columns) // 2
    pairs = np.stack([np.arange(total), total + np.arange(total)], axis=1)
    cut = MICe().cut(columns)
    found = []
    with tqdm(total=total, desc=f"MICe, n = {cut.n}", disable=None, delay=2) as bar:
        for tile in batch.score_pairs(cut, pairs, gains_for(cut.n)):
            found.append(mic(characteristic(cut.grids, tile)))
            bar.update(tile.shape[2])
    return _shaped(np.concatenate(found))


def _micr(
    data: Data, plans: Sequence[tuple[Grid, ...]], title: str
) -> list[Float32[np.ndarray, " sets"]]:
    entries = _entries(data, sorted({grid for plan in plans for grid in plan}), title, None)
    return [scoring.micr(entries, plan) for plan in plans]


def _geom(
    data: Data, mechanism: PublishedMICrGeom, key: PRNGKeyArray
) -> Float32[np.ndarray, " sets"]:
    n = data[0].shape[1]
    grids = mechanism.resolve(n).grids(n)
    level = np.float32(mechanism.epsilon), np.int32(n)

    def noise(counts, lanes, stride, part):
        own = jax.random.fold_in(key, part)
        return noisy_grids(counts, lanes, np.int32(stride), own, *level)

    return scoring.micr(_entries(data, grids, f"MICr-Geom, n = {n}", noise), grids)


def _entries(data: Data, grids: Sequence[Grid], title: str, noise: scoring.Noise | None):
    total = 2 * len(grids) * len(data[0])
    with tqdm(total=total, desc=title, unit="grid", unit_scale=True, disable=None, delay=2) as bar:
        return scoring.best_entries(*data, grids, noise=noise, done=bar.update)
