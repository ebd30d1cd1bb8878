"""Null distribution of a measure of MICe for columns without ties: one table for all pairs.

MICe depends on the ranks of two columns only, and not on the order of the records. If x and y are
independent and their ranks unique, the ranks of y in the order of x are a uniform permutation,
whatever the distributions of x and y. So any measure of the characteristic matrix has one null
distribution, that of a uniform permutation against 1, ..., n. It depends on n and on the plan of
grids only.

This also holds if ties are broken by independent draws for each column (`RandomTies(key)`), but not
if tied values share a bin.
"""

import os
from dataclasses import dataclass, replace
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dpmic_jax.dp.rng.keys import AnyKey, noise_key, wrap
from dpmic_jax.inference import monte_carlo, shuffling
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.characteristic import Measure, mic
from dpmic_jax.mic.grids import Grid
from dpmic_jax.mic.statistics import MICe
from dpmic_jax.mic.ties import grouped_ties


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NullLaw:
    """Draws from the null distribution of a measure.

    One table of draws serves many tests. Over random tables, p-values are exactly valid
    (`monte_carlo`); given a table, P(p <= a) is off by about sqrt(a (1 - a) / draws).

    Attributes:
      n: number of records.
      grids: the plan of grids.
      measure: name of the measure.
      values: the draws, ascending.
    """

    n: int
    grids: tuple[Grid, ...]
    measure: str
    values: Float[np.ndarray, " draws"]

    @property
    def draws(self) -> int:
        """The number of draws."""
        return len(self.values)

    def p_values(self, observed: Float[np.ndarray, " pairs"]) -> Float[np.ndarray, " pairs"]:
        """P-value (1 + #{draws at least as large}) / (draws + 1) of each observed value."""
        observed = np.asarray(observed, np.float64)
        # Drawn NaNs are sorted after all numbers, so they count as large. An observed NaN would
        # be found there too; it gets p = 1 instead.
        smaller = np.searchsorted(self.values, monte_carlo.lowered(observed), side="left")
        as_large = self.draws - np.where(np.isnan(observed), 0, smaller)
        return monte_carlo.p_values(as_large, self.draws)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table and its settings to `path`, as npz."""
        if "<" in self.measure:
            raise ValueError(
                f"the measure {self.measure} has no name that would identify it in a file: "
                "define it with def in a module"
            )
        with open(path, "wb") as file:
            np.savez(
                file, n=self.n, grids=np.array(self.grids), measure=self.measure, values=self.values
            )

    @staticmethod
    def load(
        path: str | os.PathLike[str], *, statistic: MICe, n: int, measure: Measure = mic
    ) -> "NullLaw":
        """Read a table that `save` wrote, and check that it is for these settings."""
        with np.load(path, allow_pickle=False) as file:
            missing = {"n", "grids", "measure", "values"} - set(file.files)
            if missing:
                raise ValueError(f"{os.fspath(path)} was not written by NullLaw.save")
            found = {name: file[name] for name in file.files}
        null = NullLaw(
            n=int(found["n"]),
            grids=tuple(Grid(*map(int, grid)) for grid in found["grids"]),
            measure=str(found["measure"]),
            values=found["values"],
        )
        null.check(statistic, n, measure)
        return null

    def check(self, statistic: MICe, n: int, measure: Measure) -> None:
        """Raise ValueError if the table was made for other settings than these."""
        wanted = {"n": n, "measure": name_of(measure), "grids": statistic.grids(n)}
        for name, value in wanted.items():
            if getattr(self, name) != value:
                difference = (
                    "other values of B, c, master or sizes"
                    if name == "grids"
                    else f"{name}={getattr(self, name)}, not {name}={value}"
                )
                raise ValueError(
                    f"this null distribution is for {difference}: make another one with null_law"
                )


def null_law(
    statistic: MICe,
    n: int,
    *,
    measure: Measure = mic,
    draws: int = 10_000,
    key: AnyKey,
    devices: tuple[Device, ...] = (),
) -> NullLaw:
    """Draw from the null distribution of a measure of MICe for n records without ties.

    Recent tables are cached: the same settings and key give the same table at once.

    Args:
      statistic: `MICe(...)`; its rule for ties does not matter.
      n: number of records.
      measure: what to read off each characteristic matrix: `mic`, `tic`, `mas`, ...
      draws: number of draws; p-values are multiples of 1 / (draws + 1).
      key: key of the draws.
      devices: devices to run on; by default the first device of JAX's default backend.
    """
    if not isinstance(statistic, MICe):
        raise TypeError(
            f"expected statistic to be MICe(...), got {type(statistic).__name__}: the null "
            "distribution of MICr depends on the data, use Permutation"
        )
    if n < 2:
        raise ValueError(f"expected at least 2 records, got n={n}")
    # The rule for ties does not matter here, but a key in it would miss the cache.
    statistic = replace(statistic, ties=grouped_ties)
    words = np.asarray(jax.random.key_data(noise_key(key))).tolist()  # hashable, for the cache
    return _drawn(
        statistic, n, measure, monte_carlo.checked_draws(draws), tuple(words), tuple(devices)
    )


@lru_cache(maxsize=64)
def _drawn(
    statistic: MICe,
    n: int,
    measure: Measure,
    draws: int,
    words: tuple[int, ...],
    devices: tuple[Device, ...],
) -> NullLaw:
    # One column against itself, which is shuffled in every draw but the observed one.
    table = statistic.cut([np.arange(n)])
    values = shuffling.measured(
        table,
        np.array([[0, 0]]),
        measure,
        range(shuffling.OBSERVED + 1, draws + 1),
        key=wrap(jnp.asarray(words, jnp.uint32)),
        devices=devices,
    )
    values = np.sort(np.concatenate(list(values)))
    values.flags.writeable = False  # the cache shares it
    return NullLaw(n=n, grids=table.grids, measure=name_of(measure), values=values)


def name_of(measure: Measure) -> str:
    """Module and qualified name of a measure; with <> if it has no name of its own."""
    name = getattr(measure, "__qualname__", f"<{type(measure).__qualname__}>")
    return f"{getattr(measure, '__module__', '')}.{name}"
