"""Search for the best B, c and sizes for each n and epsilon: the basis of the default table.

For every n and every setting tried, the statistic is computed on data sets of all 189
distributions. The noise of every epsilon is then integrated out (`objective`), except for
MICr-Geom, whose noise on counts has to be sampled.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float32
from tqdm import tqdm

from dpmic_jax.mic.grids import Grid, all_sizes, evaluations, ladder
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.paper import family, scoring
from dpmic_jax.paper.geometric import noisy_grids
from dpmic_jax.paper.store import Store

CELLS = (4, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 125, 150)
MORE_CELLS = (200, 250, 300, 400, 600, 800, 1200, 1600)
FINENESS = (1, 2, 3, 5, 8, 12, 20, 30, 60)  # c; the paper reports no change above 5
RATIOS = (1.0, 1.1, 1.25, 1.5)  # ratios of ladders; 1 stands for all sizes
# Fine master grids are tried with coarse ladders only: c = 30 costs 36 times as much as c = 5.
_LEAST_RATIO = {8: 1.1, 12: 1.25, 20: 1.25, 30: 1.25, 60: 1.5}
# Section 5.1 of the paper.
PAPER_RECORDS = (25, 250, 500, 1000, 5000, 10_000)
PAPER_EPSILONS = (0.1, 1.0)
PAPER_GEOM_FINENESS = (1, 2)
GEOM_CELLS = (6, 10, 12, 20, 40, 60, 80, 150)  # every B of MICr-Geom in Table 2
# The most records and data sets of one part: they fit in memory and take minutes.
_RECORDS_TOGETHER = 2**28
_SETS_TOGETHER = 2048


class Setting(NamedTuple):
    """B, c and the ratio of a ladder of sizes, or 1 for all sizes."""

    B: int
    c: float
    ratio: float

    @property
    def statistic(self) -> MICr:
        """MICr with this setting."""
        return MICr(B=self.B, c=self.c, sizes=all_sizes if self.ratio == 1 else ladder(self.ratio))

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The master grids that the statistic scores."""
        return self.statistic.grids(0)

    @property
    def cost(self) -> int:
        """Evaluations of x log x per pair."""
        return 2 * sum(map(evaluations, self.grids))


@dataclass(frozen=True, kw_only=True)
class Search:
    """The settings that a search tries, and the data sets it tries them on.

    Attributes:
      records: every n.
      sets: data sets of each distribution, for each n.
      geom_sets: the same for MICr-Geom, at every n of the paper that is in `records`.
      cells, fineness, ratios: values of B, c and ladder ratios to try.
      seed: of the data sets and the noise.
    """

    records: tuple[int, ...]
    sets: tuple[int, ...]
    geom_sets: int
    cells: tuple[int, ...] = (*CELLS, *MORE_CELLS)
    fineness: tuple[int, ...] = FINENESS
    ratios: tuple[float, ...] = RATIOS
    seed: int = 0

    def description(self) -> dict:
        """Everything that the results depend on, for the `Store` and for tuned.json."""
        return {
            "records": self.records,
            "sets": self.sets,
            "geom_sets": self.geom_sets,
            "seed": self.seed,
            "settings": [list(map(list, self.candidates(n))) for n in self.records],
        }

    def candidates(self, n: int) -> tuple[Setting, ...]:
        """The settings tried for n records: B around the usual n^0.6, and the paper's settings."""
        ours = [
            Setting(B, c, ratio)
            for B in self.cells
            if 0.35 * n**0.5 <= B <= (4 if n < 1000 else 2.5) * n**0.6
            for c in self.fineness
            for ratio in self.ratios
            if _worth_it(n, B, c, ratio)
        ]
        return tuple(dict.fromkeys([*ours, *self.published(n)]))

    def published(self, n: int) -> tuple[Setting, ...]:
        """The settings that the paper tried for MICr-Lap: c = 5, all sizes."""
        return tuple(Setting(B, 5, 1.0) for B in self._paper_cells(n))

    def published_geom(self, n: int) -> tuple[Setting, ...]:
        """The settings that the paper tried for MICr-Geom: c = 1 and 2, all sizes."""
        tried = (B for B in self._paper_cells(n) if B in GEOM_CELLS)
        return tuple(Setting(B, c, 1.0) for B in tried for c in PAPER_GEOM_FINENESS)

    def _paper_cells(self, n: int) -> tuple[int, ...]:
        if n not in PAPER_RECORDS:
            return ()
        return tuple(B for B in self.cells if min(150, 8 * n**0.6) >= B)


FULL = Search(
    records=(25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 100_000, 1_000_000),
    sets=(40, 40, 40, 20, 20, 10, 6, 4, 3, 1, 1),
    geom_sets=1,
)
QUICK = Search(
    records=(25, 250, 1000, 5000),
    sets=(5, 3, 2, 1),
    geom_sets=1,
    cells=(6, 12, 25, 40, 80, 150, 250),
    fineness=(2, 5),
    ratios=(1.25,),
)


def _worth_it(n: int, B: int, c: float, ratio: float) -> bool:
    """Whether to try a setting: all of them would take days, and most are far from optimal."""
    if ratio < _LEAST_RATIO.get(int(c), 1) or (c > 12 and 2 * n**0.6 < B):
        return False
    if n >= 1_000_000:
        return c in (12, 30) and ratio == 1.5 and B in (800, 1600)
    if n >= 100_000:
        return c >= 5 and ratio >= 1.25 and B in ((400, 600, 800) if c > 12 else (400, 800, 1600))
    return ratio > 1 or B <= 150


def values(
    search: Search, n: int, store: Store
) -> Float32[np.ndarray, "settings distributions sets"]:
    """MICr of every data set under every candidate, read from the store or computed and kept."""
    settings = search.candidates(n)
    sets = search.sets[search.records.index(n)]
    parts = [
        store.part(name, lambda which=which: {"micr": _micr(search, n, which, sets, settings)})
        for name, which in _parts(f"micr-{n}", n, sets)
    ]
    return np.concatenate([part["micr"] for part in parts], axis=1)


def geom_values(
    search: Search, n: int, epsilon: float, store: Store
) -> Float32[np.ndarray, "settings distributions sets"]:
    """Releases of the published MICr-Geom, one for every candidate and data set."""
    settings = search.published_geom(n)
    parts = [
        store.part(name, lambda which=which: {"geom": _geom(search, n, epsilon, which, settings)})
        for name, which in _parts(f"geom-{n}-{epsilon}", n, search.geom_sets)
    ]
    return np.concatenate([part["geom"] for part in parts], axis=1)


def _parts(title: str, n: int, sets: int) -> Iterator[tuple[str, range]]:
    """The names of parts, and the distributions of each."""
    together = max(1, min(_RECORDS_TOGETHER // (n * sets), _SETS_TOGETHER // sets))
    total = len(family.family())
    for start in range(0, total, together):
        yield f"{title}-{start}", range(start, min(start + together, total))


def _micr(search, n, which, sets, settings):
    x, y = family.data_sets(family.family(), which, n, range(sets), seed=search.seed)
    return scored(x, y, settings, f"n = {n}", None).reshape(len(settings), len(which), sets)


def _geom(search, n, epsilon, which, settings):
    sets = search.geom_sets
    x, y = family.data_sets(family.family(), which, n, range(sets), seed=search.seed)
    root = jax.random.fold_in(jax.random.key(search.seed + 1), round(1000 * epsilon))
    root = jax.random.fold_in(jax.random.fold_in(root, n), which.start)
    found = []
    # One setting at a time: a grid that two settings share gets independent noise in each.
    for index, setting in enumerate(settings):
        key = jax.random.fold_in(root, index)

        def noise(counts, lanes, stride, part, key=key):
            own = jax.random.fold_in(key, part)
            level = np.float32(epsilon), np.int32(n)
            return noisy_grids(counts, lanes, np.int32(stride), own, *level)

        found.append(scored(x, y, [setting], f"MICr-Geom, n = {n}, B = {setting.B}", noise)[0])
    return np.stack(found).reshape(len(settings), len(which), sets)


def scored(
    x: Float32[np.ndarray, "sets n"],
    y: Float32[np.ndarray, "sets n"],
    settings: Sequence[Setting],
    title: str,
    noise: Callable | None,
) -> Float32[np.ndarray, "settings sets"]:
    """MICr of every data set under every setting."""
    grids = sorted({grid for setting in settings for grid in setting.grids})
    total = 2 * len(grids) * len(x)
    with tqdm(total=total, desc=title, unit="grid", unit_scale=True, disable=None, delay=2) as bar:
        entries = scoring.best_entries(x, y, grids, noise=noise, done=bar.update)
    return np.stack([scoring.micr(entries, setting.grids) for setting in settings])
