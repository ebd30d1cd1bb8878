"""What was tried for the statistic that decides, under the same noise and simulated levels.

All have cube noise by their own sensitivity, and the level that the largest of d independent
uniform pairs exceeds in 5 % of tables. The statistic was chosen on the 189 functions and the nine
shapes; `data.left_out` are dependences that had no part in that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from tqdm import tqdm

from benchmarks.peers import FALSE_ALARMS, Setting, independent_pairs, noise
from benchmarks.peers.setting import Data
from benchmarks.power.compare import Values
from dpmic_jax.mic.variation import variation

SETTINGS = (
    Setting(1000, 11, 1.0),
    Setting(10_000, 66, 0.1),
    Setting(10_000, 435, 1.0),
)
GROUPS = ("functions", "shapes", "left_out")
_STEPS = 128  # values of t
_TOGETHER = 100
_SEED, _NULL_SETS = 20_261_122, 2000

Tables = Float[np.ndarray, "sets parts parts"]  # records in each cell
Results = Float[np.ndarray, " sets"]


def cell_counts(x: Data, y: Data, parts: int) -> Tables:
    """Records in each cell of a grid of equal width."""
    cut = [np.minimum((each * parts).astype(int), parts - 1) for each in (x, y)]
    both = cut[0] * parts + cut[1]
    found = [np.bincount(each, minlength=parts**2) for each in both]
    return np.reshape(found, (-1, parts, parts)).astype(float)


def near_sides(parts: int, unions: int) -> tuple[np.ndarray, int]:
    """The near sides of all cuts, then those of other unions of so many parts of the range."""
    cuts = [tuple(i < cut for i in range(parts)) for cut in range(1, parts)]
    more = []
    for number in range(1, 2 ** max(unions - 1, 0)):
        chosen = [bool(number >> bit & 1) for bit in range(unions)]
        side = tuple(np.repeat(chosen, parts // unions).tolist())
        if side not in cuts:
            more.append(side)
    return np.array([*cuts, *more], float), len(cuts)


@partial(jax.jit, static_argnames="cuts")
def _across(
    counts: Float[Array, "sets parts others"],
    sides: Float[Array, "splits parts"],
    price: Float[Array, ""],
    *,
    cuts: int,
) -> Float[Array, " sets"]:
    """The largest distance across the splits of the first axis (`mic.distance`), in floats."""
    near = jnp.einsum("kp,spo->sko", sides, counts)
    part = counts.sum(axis=1)[:, None]
    n = part.sum(axis=2)
    total = near.sum(axis=2)

    def smaller(index, smallest):
        t = (index + 0.5) / _STEPS
        most = jnp.maximum(t, 1 - t)
        apart = jnp.abs(near - t * part).sum(axis=2)
        found = (apart + (2 * most - 1) * jnp.abs(t * n - total)) / (2 * most * n)
        return jnp.minimum(smallest, found)

    start = jnp.full(near.shape[:2], jnp.inf, near.dtype)
    found = jax.lax.fori_loop(0, _STEPS, smaller, start)
    return (found - jnp.where(jnp.arange(len(sides)) < cuts, 0, price)).max(axis=1)


@dataclass(frozen=True)
class Splits:
    """The distance from independence over some splits.

    Attributes:
      name: in tables.
      parts: of an axis.
      unions: splits are unions of so many parts of the range, beside all cuts; 0 for cuts alone.
      priced: whether 1 / (4 sqrt(n)) is taken off unions that are no cuts.
    """

    name: str
    parts: int
    unions: int
    priced: bool = True

    def values(self, x: Data, y: Data) -> Results:
        """The distance of each data set."""
        sides, cuts = near_sides(self.parts, self.unions)
        price = np.float32(1 / (4 * np.sqrt(x.shape[1])) if self.priced else 0)
        counts = cell_counts(x, y, self.parts).astype(np.float32)
        sides = sides.astype(np.float32)
        done = []
        for some in np.array_split(counts, -(-len(counts) // _TOGETHER)):
            both = [_across(each, sides, price, cuts=cuts) for each in (some, some.swapaxes(1, 2))]
            done.append(np.maximum(*map(np.asarray, both)))
        return np.concatenate(done).astype(float)

    def sensitivity(self, n: int) -> float:
        """1 / n."""
        return 1 / n


@dataclass(frozen=True)
class OfTable:
    """A statistic of the whole table of counts.

    Attributes:
      name: in tables.
      parts: of an axis.
      of: the statistic of tables of counts.
      moved: how often 1 / n one record moves it.
    """

    name: str
    parts: int
    of: Callable[[Tables], Results]
    moved: float

    def values(self, x: Data, y: Data) -> Results:
        """The statistic of each data set."""
        return self.of(cell_counts(x, y, self.parts))

    def sensitivity(self, n: int) -> float:
        """`moved` / n."""
        return self.moved / n


def total_variation(counts: Tables) -> Results:
    """(1/2) sum |p_ij - p_i p_j|, which one record moves by 3 / n."""
    share = counts / counts.sum(axis=(1, 2), keepdims=True)
    apart = share - share.sum(axis=2, keepdims=True) * share.sum(axis=1, keepdims=True)
    return np.abs(apart).sum(axis=(1, 2)) / 2


def cut_variation(counts: Tables) -> Results:
    """`mic.variation` on its scale up to 1, which one record moves by 4 / n."""
    return variation(counts.astype(np.int64)) / counts.sum(axis=(1, 2)) ** 2


SHIPPED = "distance: 16 parts, cuts and priced unions of eighths (shipped)"
TRIED = (
    Splits(SHIPPED, 16, 8),
    Splits("the same without the price", 16, 8, priced=False),
    Splits("distance: 16 parts, cuts alone", 16, 0),
    Splits("distance: 8 parts, cuts and priced unions", 8, 8),
    Splits("distance: 32 parts, cuts and priced unions of eighths", 32, 8),
    Splits("distance: 32 parts, cuts alone", 32, 0),
    OfTable("variation: 16 parts", 16, cut_variation, 4),
    OfTable("variation: 32 parts", 32, cut_variation, 4),
    OfTable("total variation of the 8 x 8 table", 8, total_variation, 3),
    OfTable("total variation of the 16 x 16 table", 16, total_variation, 3),
)
Tried = Splits | OfTable


@lru_cache(maxsize=64)
def _null(statistic: Tried, n: int) -> Results:
    x, y = independent_pairs(_NULL_SETS, n, seed=_SEED)
    return statistic.values(x, y)


def power(statistic: Tried, values: Results, setting: Setting) -> Results:
    """P(T + Z > level) of each data set."""
    law = noise.cube(setting, statistic.sensitivity(setting.n))
    level = noise.level(law, _null(statistic, setting.n), setting.pairs, FALSE_ALARMS)
    return law.tail(level - values)


def tried(values: Values) -> list[dict[str, Any]]:
    """Mean power of every statistic at every setting, over each group of data sets."""
    rows = []
    records = sorted({setting.n for setting in SETTINGS})
    for statistic in tqdm(TRIED, desc="statistics"):
        known = {
            (group, n): statistic.values(*values.sets(group, n)[1:])
            for n in records
            for group in GROUPS
        }
        found = [
            {
                **setting._asdict(),
                **{
                    group: round(
                        float(power(statistic, known[group, setting.n], setting).mean()), 3
                    )
                    for group in GROUPS
                },
            }
            for setting in SETTINGS
        ]
        rows.append({"name": statistic.name, "found": found})
    return rows
