"""The law of a measure of MICe for independent columns without ties: one table for all pairs.

MICe looks at the ranks of two columns only, and not at the order of the records. If x and y are
independent and their ranks unique, the ranks of y in the order of x are a uniform permutation,
whatever the laws of x and y. So any measure of the characteristic matrix has one null law, that of
a uniform permutation against 1, ..., n, and it depends on n and the plan of grids alone.

This holds too where ties are broken by independent draws for each column (`RandomTies(key)`), and
not where tied values share a part.
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
from dpmic_jax.mic.batch import Device
from dpmic_jax.mic.characteristic import Measure, mic
from dpmic_jax.mic.grids import Grid
from dpmic_jax.mic.statistics import MICe
from dpmic_jax.mic.ties import grouped_ties


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NullLaw:
    """Draws of a measure for independent columns.

    One table serves many tests. Over tables, p-values are valid exactly (`ranks`); given the
    table, the chance of p <= a is off by about sqrt(a (1 - a) / draws).

    Attributes:
      n: number of records.
      grids: the plan.
      measure: name of what was measured.
      values: the draws, in order.
    """

    n: int
    grids: tuple[Grid, ...]
    measure: str
    values: Float[np.ndarray, " draws"]

    @property
    def draws(self) -> int:
        return len(self.values)

    def p_values(self, observed: Float[np.ndarray, " pairs"]) -> Float[np.ndarray, " pairs"]:
        """(1 + #{draws at least as large}) / (draws + 1) of each value."""
        observed = np.asarray(observed, np.float64)
        # What is not a number is sorted behind all numbers, so it counts as large.
        smaller = np.searchsorted(self.values, monte_carlo.lowered(observed), side="left")
        as_large = self.draws - np.where(np.isnan(observed), 0, smaller)
        return monte_carlo.p_values(as_large, self.draws)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table and its settings to `path`, as npz."""
        if "<" in self.measure:
            raise ValueError(
                f"the measure {self.measure} has no name by which a file could be told from "
                "others: define it with def in a module"
            )
        with open(path, "wb") as file:
            np.savez(
                file, n=self.n, grids=np.array(self.grids), measure=self.measure, values=self.values
            )

    @staticmethod
    def load(
        path: str | os.PathLike[str], *, statistic: MICe, n: int, measure: Measure = mic
    ) -> "NullLaw":
        """Read a table, if it is that of the settings given."""
        with np.load(path, allow_pickle=False) as file:
            missing = {"n", "grids", "measure", "values"} - set(file.files)
            if missing:
                raise ValueError(f"{os.fspath(path)} is no table of NullLaw.save")
            found = {name: file[name] for name in file.files}
        law = NullLaw(
            n=int(found["n"]),
            grids=tuple(Grid(*map(int, grid)) for grid in found["grids"]),
            measure=str(found["measure"]),
            values=found["values"],
        )
        law.check(statistic, n, measure)
        return law

    def check(self, statistic: MICe, n: int, measure: Measure) -> None:
        """Refuse to be used for other settings than those it was made for."""
        wanted = {"n": n, "measure": name_of(measure), "grids": statistic.grids(n)}
        for name, value in wanted.items():
            if getattr(self, name) != value:
                show = (
                    "other values of B, c, master or sizes"
                    if name == "grids"
                    else (f"{name}={getattr(self, name)}, and {name}={value} is asked for")
                )
                raise ValueError(f"this null law is for {show}: make one with null_law")


def null_law(
    statistic: MICe,
    n: int,
    *,
    measure: Measure = mic,
    draws: int = 10_000,
    key: AnyKey,
    devices: tuple[Device, ...] = (),
) -> NullLaw:
    """Draw the null law of a measure of MICe for n records without ties.

    The last ones are kept: the same settings and key give the same table at once.

    Args:
      statistic: `MICe(...)`; its rule for ties plays no part.
      n: number of records.
      measure: what to read off each characteristic matrix: `mic`, `tic`, `mas`, ...
      draws: how many; p-values are multiples of 1 / (draws + 1).
      key: of the draws.
      devices: where to run; the first device of JAX's default backend if none are given.
    """
    if not isinstance(statistic, MICe):
        raise TypeError(
            f"expected statistic to be MICe(...), got {type(statistic).__name__}: the null law of "
            "MICr depends on the data, use Permutation"
        )
    if n < 2:
        raise ValueError(f"expected at least 2 records, got n={n}")
    # Without ties their rule plays no part, and a key in it would tell equal calls apart.
    statistic = replace(statistic, ties=grouped_ties)
    words = np.asarray(jax.random.key_data(noise_key(key))).tolist()
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
    cut = statistic.cut([np.arange(n)])
    values = shuffling.measured(
        cut,
        np.array([[0, 0]]),
        measure,
        range(shuffling.OBSERVED + 1, draws + 1),
        key=wrap(jnp.asarray(words, jnp.uint32)),
        devices=devices,
    )
    values = np.sort(np.concatenate(list(values)))
    values.flags.writeable = False
    return NullLaw(n=n, grids=cut.grids, measure=name_of(measure), values=values)


def name_of(measure: Measure) -> str:
    """Where a measure is defined; in <> if nowhere that can be named."""
    name = getattr(measure, "__qualname__", f"<{type(measure).__qualname__}>")
    return f"{getattr(measure, '__module__', '')}.{name}"
