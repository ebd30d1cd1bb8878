"""Ablations: variants of MICr-Geom, finer master grids, and bins of `VariationLap`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from dpmic_jax.mechanisms import PublishedMICrGeom, VariationLap, tuned_defaults
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.paper import family, real, select_defaults, synthetic, tuning
from dpmic_jax.paper.calibration import quantiles, variations
from dpmic_jax.paper.collections import Collection, spellman4381
from dpmic_jax.paper.store import Store
from dpmic_jax.paper.tuning import Setting

Rows = list[dict[str, Any]]

# (B, c) around B = 137 and c = 1, which Table 2 gives by interpolation at n = 4381.
GEOM_SETTINGS = ((100, 1), (125, 1), (137, 1), (150, 1), (175, 1), (200, 1), (100, 2), (137, 2))
OWN_SETTINGS = ((137, 1), (150, 1), (160, 1))
FINER = 120  # c; the search of `tuning` ends at 60
PARTS = (2, 4, 8, 16, 24, 32, 48, 64, 96)


def unsigned_of_geom(data: Path, store: Store, *, draws: int, seed: int) -> Rows:
    """MICr-Geom on Spellman4381 at epsilon = 1, under other settings, bounds and summaries."""
    collection = spellman4381(data)
    mice = store.part("mice", lambda: {"mice": real.truth(collection)})["mice"]
    rows = []
    for where, there, (B, c) in _variants(collection):
        mechanism = PublishedMICrGeom(epsilon=1.0, statistic=MICr(B=B, c=c))

        def released(there=there, mechanism=mechanism):
            key = jax.random.key(seed)
            return {"values": real.geom_releases(there, mechanism, draws, key)}

        values = store.part(f"geom-{where}-{B}-{c}", released)["values"]
        rows.append({"bounds": where, "B": B, "c": c, **summaries(values, mice)})
    return rows


def _variants(collection: Collection) -> Iterator[tuple[str, Collection, tuple[int, int]]]:
    for setting in GEOM_SETTINGS:
        yield "one range for all", collection, setting
    own = tuple((float(v.min()), float(v.max())) for v in collection.columns)
    for setting in OWN_SETTINGS:
        yield "own range of each", replace(collection, bounds=own), setting
    tails = tuple(tuple(np.quantile(v, (0.005, 0.995)).tolist()) for v in collection.columns)
    yield "own 99 % of each", replace(collection, bounds=tails), GEOM_SETTINGS[2]


def summaries(
    values: Float[np.ndarray, "draws pairs"], mice: Float[np.ndarray, " pairs"]
) -> dict[str, float]:
    """Every reading of "median unsigned error", with the bias and the variance."""
    gap = values - mice
    return {
        "bias": float(np.median(gap.mean(axis=0))),
        "variance": float(np.median(values.var(axis=0))),
        "of mean unsigned": float(np.median(np.abs(gap).mean(axis=0))),
        "of unsigned mean": float(np.median(np.abs(gap.mean(axis=0)))),
        "pooled": float(np.median(np.abs(gap))),
        "of medians": float(np.median(np.median(np.abs(gap), axis=0))),
        "mean of all": float(np.abs(gap).mean()),
    }


def finer(records: Sequence[int], sets: Sequence[int], store: Store, *, seed: int) -> Rows:
    """WSUM of the default settings, and of the same with c = `FINER`, on the same data sets."""
    chosen = {(row["n"], row["epsilon"]): row["accurate"] for row in tuned_defaults.settings()}
    rows = []
    for n, repeats in zip(records, sets, strict=True):
        picked = {e: chosen[n, e] for e in tuning.PAPER_EPSILONS}
        settings = [
            Setting(entry["B"], c, entry["ratio"])
            for entry in picked.values()
            for c in (entry["c"], FINER)
        ]

        def values(n=n, repeats=repeats, settings=settings):
            data = family.data_sets(
                family.family(), range(len(family.family())), n, range(repeats), seed=seed
            )
            found = tuning.scored(*data, settings, f"n = {n}", None)
            return {"micr": found.reshape(len(settings), -1, repeats)}

        kept = store.part(f"finer-{n}-{repeats}", values)["micr"]
        for place, (epsilon, entry) in enumerate(picked.items()):
            two = slice(2 * place, 2 * place + 2)
            wsum = select_defaults.wsums(
                kept[two], settings[two], select_defaults.exact_scale(n, epsilon)
            )
            rows.append(
                {"n": n, "epsilon": epsilon, "sets": repeats}
                | {name: entry[name] for name in ("B", "c", "ratio")}
                | {"wsum": float(wsum[0]), "finer": FINER, "finer_wsum": float(wsum[1])}
            )
    return rows


def parts(n: int, sets: int, tried: Sequence[int], *, seed: int) -> Rows:
    """The error of MIC* estimates from `VariationLap` with other numbers of bins.

    The tables of the estimate are made from data sets of `seed`, leaving out the function that is
    estimated. Errors are measured on data sets of `seed + 1`.

    Args:
      n: number of records.
      sets: data sets of each distribution.
      tried: numbers of bins.
      seed: of the data sets and the noise.
    """
    known = family.family()
    made, unseen = (
        family.data_sets(known, range(len(known)), n, range(sets), seed=one)
        for one in (seed, seed + 1)
    )
    rows = []
    for number in tried:
        values = [variations(*data, number).reshape(len(known), -1) for data in (made, unseen)]
        table = tuned_defaults.Family(known.names, known.stars, quantiles(values[0]))
        row: dict[str, Any] = {"n": n, "parts": number}
        for epsilon in synthetic.EPSILONS:
            mechanism = VariationLap(epsilon=epsilon, parts=number)
            release = synthetic.simulated_release(mechanism, n, values[1], jax.random.key(seed))
            error = np.abs(
                synthetic.leave_one_function_out(release, table) - known.stars[:, None]
            ).mean()
            row[f"{epsilon:g}"] = float(error)
        rows.append(row)
    return rows
