"""Results of the studies as rows of numbers, for JSON files and for the page."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmic_jax.mechanisms import MICrLap, PublishedMICrGeom, PublishedMICrLap, tuned_defaults
from dpmic_jax.mechanisms.variation import parts_for
from dpmic_jax.mic.grids import cells
from dpmic_jax.mic.statistics import MICe, MICr
from dpmic_jax.paper import family, published_values, real, scoring, synthetic
from dpmic_jax.paper.collections import COLLECTIONS
from dpmic_jax.paper.functions import FUNCTIONS
from dpmic_jax.paper.mic_star import FIXED, MASTER, mic_star
from dpmic_jax.paper.store import Store
from dpmic_jax.paper.synthetic import Study

Rows = list[dict[str, Any]]


def setting_of(mechanism: str, n: int, epsilon: float) -> str:
    """The setting of a mechanism's statistic, as text."""
    if mechanism.startswith(real.WIDE):
        return f"B = {math.floor(2 * n**0.6)}, c = 5"
    if mechanism.startswith("variation"):
        return f"{parts_for(n)} parts"
    statistic = {
        "MICe-Lap": lambda: MICe(),
        "MICr-Lap": lambda: PublishedMICrLap(epsilon=epsilon).resolve(n),
        "MICr-Geom": lambda: PublishedMICrGeom(epsilon=epsilon).resolve(n),
    }.get(mechanism, lambda: MICrLap(epsilon=epsilon).resolve(n))()
    B = cells(statistic.B, n)
    ratio = getattr(statistic.sizes, "ratio", None) if isinstance(statistic, MICr) else None
    return f"B = {B}, c = {statistic.c:g}" + ("" if ratio is None else f", ladder {ratio:g}")


def tables(folder: Path, data: Path, *, draws: int, most_pairs: int, seed: int) -> Rows:
    """Tables 1 and 3 and the unsigned errors: a row for each collection, epsilon and mechanism.

    Args:
      folder: keeps finished parts.
      data: the folder with the real data.
      draws: releases of each pair.
      most_pairs: the most pairs of a collection to use, evenly spread over it.
      seed: of the noise.
    """
    described = {"study": "real data", "draws": draws, "most_pairs": most_pairs, "seed": seed}
    store = Store(folder, described | {"table": tuned_defaults.fingerprint()})
    rows = []
    for make in COLLECTIONS.values():
        whole = make(data)
        step = math.ceil(len(whole.pairs) / most_pairs)
        collection = replace(whole, pairs=whole.pairs[::step])
        for epsilon in real.EPSILONS:
            found = real.measured(collection, epsilon, store, draws=draws, seed=seed)
            rows += [
                {
                    "collection": collection.name,
                    "n": collection.n,
                    "pairs": len(collection.pairs),
                    "epsilon": epsilon,
                    "mechanism": name,
                    "setting": setting_of(name, collection.n, epsilon),
                    "bias": float(np.median(errors.bias)),
                    "variance": float(np.median(errors.variance)),
                    "unsigned": float(np.median(errors.unsigned)),
                }
                for name, errors in found.items()
            ]
    return rows


def misses(rows: Rows) -> list[str]:
    """Entries of Tables 1 and 3 that were not reproduced.

    An entry counts as reproduced if the median bias is within 0.02 (0.03 for Spellman23) and the
    median variance within a factor of 1.5 or within 0.02.
    """
    found = []
    for row in rows:
        wanted = printed_cell(row)
        if wanted is None:
            continue
        near = 0.03 if row["collection"] == "Spellman23" else 0.02
        apart = abs(row["variance"] - wanted.variance)
        ratio = max(row["variance"], 1e-12) / wanted.variance
        if abs(row["bias"] - wanted.bias) > near or (apart > 0.02 and not 2 / 3 <= ratio <= 1.5):
            found.append(f"{row['collection']}, epsilon = {row['epsilon']}, {row['mechanism']}")
    return found


def printed_cell(row: dict[str, Any]) -> published_values.Cell | None:
    """The paper's entry for a row, or None for a mechanism of ours."""
    cells = published_values.REAL[row["epsilon"], row["collection"]]
    return dict(zip(published_values.MECHANISMS, cells, strict=True)).get(row["mechanism"])


def distributions(folder: Path, study: Study, records: Sequence[int]) -> Rows:
    """A row for each n, epsilon and mechanism, over the 189 distributions."""
    store = Store(
        folder, {"study": "synthetic data", **vars(study), "table": tuned_defaults.fingerprint()}
    )
    stars = family.family().stars[:, None]
    rows = []
    for n in records:
        for epsilon in synthetic.EPSILONS:
            for name, values in synthetic.released(study, n, epsilon, store).items():
                bias = (values - stars).mean(axis=1)
                rows.append(
                    {
                        "n": n,
                        "epsilon": epsilon,
                        "mechanism": name,
                        "setting": setting_of(name, n, epsilon),
                        "error": float(np.abs(values - stars).mean()),
                        "bias": [float(np.quantile(bias, q)) for q in (0, 0.5, 1)],
                        "variance": float(np.median(values.var(axis=1))),
                    }
                )
    return rows


def consistency(records: Sequence[int], sets: Sequence[int], *, seed: int) -> Rows:
    """The mean absolute error of MICr without noise for each function, one row for each n."""
    of = family.family()
    names = np.array(of.names)
    rows = []
    for n, repeats in zip(records, sets, strict=True):
        grids = tuned_defaults.defaults(n, 10.0).grids(n)
        x, y = family.data_sets(of, range(len(of)), n, range(repeats), seed=seed)
        values = scoring.micr(scoring.best_entries(x, y, grids), grids).reshape(-1, repeats)
        by = np.abs(values - of.stars[:, None]).mean(axis=1)
        found = {name: float(by[names == name].mean()) for name in FUNCTIONS}
        rows.append({"n": n, "sets": repeats, "setting": setting_of("ours", n, 10.0), **found})
    return rows


def convergence() -> Rows:
    """The change of MIC* at R^2 = 0.5 and 0.9 from one master partition to the next finer one."""
    of = family.family()
    chosen = [i for i, r_squared in enumerate(of.r_squared) if r_squared in (0.5, 0.9)]
    mixtures = [of.mixtures[i] for i in chosen]
    sizes = [(MASTER // 4, FIXED // 4), (MASTER // 2, FIXED // 2), (MASTER, FIXED)]
    sizes.append((3 * MASTER // 2, 3 * FIXED // 2))
    found = [mic_star(mixtures, master=master, fixed=fixed) for master, fixed in sizes]
    return [
        {
            "master": master,
            "fixed": fixed,
            "mean": float(values.mean()),
            "largest_change": float(np.abs(values - previous).max()),
            "mean_change": float(np.abs(values - previous).mean()),
        }
        for (master, fixed), values, previous in zip(sizes[1:], found[1:], found[:-1], strict=True)
    ]
