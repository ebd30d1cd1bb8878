"""Figures 2 and 4: the mechanisms on data of the 189 distributions, published and ours."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float32, PRNGKeyArray
from tqdm import tqdm

from dpmic_jax.mechanisms import (
    MICrLap,
    PublishedMICeLap,
    PublishedMICrGeom,
    PublishedMICrLap,
    VariationLap,
    tuned_defaults,
)
from dpmic_jax.mechanisms.additive_noise import Additive
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
    """How much is drawn.

    Attributes:
      iterations: data sets of each distribution, each released once by each mechanism.
      large_iterations: the same where n >= 5000.
      mice_sets: on how many of those MICe is computed, which takes the longest; its releases
        repeat them with new noise, which is a hundred times wider than they are.
      seed: other than that of the tuning, so that settings are judged on data they have not seen.
    """

    iterations: int = 50
    large_iterations: int = 15
    mice_sets: int = 5
    seed: int = 1

    def sets(self, n: int) -> int:
        """Data sets of each distribution at n records."""
        return self.iterations if n < LARGE else self.large_iterations

    def mice(self, n: int) -> int:
        """How many of them MICe is computed on."""
        return self.iterations if n < LARGE else min(self.large_iterations, self.mice_sets)


def released(study: Study, n: int, epsilon: float, store: Store) -> dict[str, Values]:
    """What every mechanism released for every data set, from the store or computed into it.

    "ours, noiseless" is MICr at the setting of "ours"; "ours, MIC*" the estimate of MIC* from the
    release, and "variation, MIC*" from that of `VariationLap`, both by a table in which the
    function at hand is left out.
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
    found = noisy(ours, n, exact[1], keys[0])
    cut = VariationLap(epsilon=epsilon)
    apart = noisy(cut, n, _shaped(variations(*data, cut.resolve(n))), keys[4])
    return {
        "MICe-Lap": np.asarray(noisy(PublishedMICeLap(epsilon=epsilon), n, mice, keys[1]).value),
        "MICr-Lap": np.asarray(noisy(published, n, exact[0], keys[2]).value),
        "MICr-Geom": _shaped(_geom(data, PublishedMICrGeom(epsilon=epsilon), keys[3])),
        "ours": np.asarray(found.value),
        "ours, MIC*": left_out(found, tuned_defaults.family(n)),
        "variation, MIC*": left_out(apart, tuned_defaults.variation_family(n)),
        "ours, noiseless": exact[1],
    }


def left_out(release: Release, of: tuned_defaults.Family) -> Values:
    """Estimates of MIC* that have not seen the function they are for."""
    names = np.array(of.functions)
    values, found = np.asarray(release.value), np.empty(np.shape(release.value))
    for name in dict.fromkeys(of.functions):
        here, others = names == name, names != name
        kept = tuned_defaults.Family(tuple(names[others]), of.stars[others], of.values[others])
        one = Release(values[here], release.event, False, release.scale, release.lattice)
        found[here] = posterior_median(one, kept)
    return found


def _shaped(values: Float[np.ndarray, " sets"]) -> Values:
    return values.reshape(len(family.family()), -1).astype(float)


def noisy(mechanism: Additive | VariationLap, n: int, values: Values, key: PRNGKeyArray) -> Release:
    """Exact values as a mechanism would release them."""
    law = mechanism.noise(n)
    points = jnp.asarray(np.floor(values * law.lattice.top).astype(np.int32))
    value = law.lattice.values(law.release(points, key=key))
    return Release(value, mechanism.event(n), False, law.scale, law.lattice)


def _mice(data: Data, sets: int) -> Values:
    """MICe of the first so many data sets of each distribution."""
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
