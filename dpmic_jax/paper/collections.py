"""The paper's real data: three collections of pairs of columns (section 5.2)."""

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

# Columns that describe a player; the other 129 measure performance.
NOT_PERFORMANCE = ("PLAYER", "Record_ID#", "SALARY", "ROOKIE", "POS")
FILES = ("baseball.csv", "Spellman.csv")


@dataclass(frozen=True)
class Collection:
    """A collection of data sets, each a pair of columns, with the bounds of section 5.2.

    Attributes:
      name: the paper's name.
      columns: one array for each column.
      bounds: (low, high) of each column.
      pairs: the indices of the two columns of each data set.
      bins: edges of MICe by which figures 3 and 5 group the data sets; empty for Spellman23.
    """

    name: str
    columns: tuple[Float[np.ndarray, " n"], ...]
    bounds: tuple[tuple[float, float], ...]
    pairs: Int[np.ndarray, "pairs 2"]
    bins: tuple[float, ...]

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.columns[0])


def data_folder(given: Path | None) -> Path:
    """The folder with the real data: `given`, else $DPMIC_DATA, else `../shared/data`.

    Raises:
      FileNotFoundError: if a file is missing there.
    """
    folder = given or Path(os.environ.get("DPMIC_DATA", Path("..", "shared", "data")))
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"no {' and no '.join(missing)} in {folder}: pass --data DIR or set DPMIC_DATA to a "
            "folder with both. They are in the repository that the MIC paper names, dp-mic of "
            "jlazarsfeld on GitHub: 4381 yeast genes at 23 times, and 337 baseball players of 2008"
        )
    return folder


def spellman23(folder: Path) -> Collection:
    """Each of 4381 genes against the index of the measurement, n = 23."""
    genes = _genes(folder)
    times = np.arange(1.0, genes.shape[1] + 1)
    bounds = ((0.0, 24.0), *(_widened(gene.min(), gene.max()) for gene in genes))
    pairs = np.stack([np.zeros(len(genes), int), 1 + np.arange(len(genes))], axis=1)
    return Collection("Spellman23", (times, *genes), bounds, pairs, ())


def spellman4381(folder: Path) -> Collection:
    """Each pair of the 23 measurements, n = 4381, with one range for all columns."""
    genes = _genes(folder)
    columns = tuple(np.ascontiguousarray(genes.T))
    bounds = (_widened(genes.min(), genes.max()),) * len(columns)
    bins = (0.0, 0.1, 0.2, 0.3, 0.4, 1.0)
    return Collection("Spellman4381", columns, bounds, _all_pairs(len(columns)), bins)


def baseball(folder: Path) -> Collection:
    """Each pair of the 129 performance statistics of 337 players."""
    with (folder / "baseball.csv").open(newline="") as file:
        names, *rows = csv.reader(file)
    kept = [index for index, name in enumerate(names) if name not in NOT_PERFORMANCE]
    columns = tuple(np.array([float(row[index]) for row in rows]) for index in kept)
    bounds = tuple(_widened(column.min(), column.max()) for column in columns)
    bins = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    return Collection("Baseball", columns, bounds, _all_pairs(len(columns)), bins)


COLLECTIONS: dict[str, Callable[[Path], Collection]] = {
    "Spellman23": spellman23,
    "Baseball": baseball,
    "Spellman4381": spellman4381,
}


def _genes(folder: Path) -> Float[np.ndarray, "genes times"]:
    return np.genfromtxt(folder / "Spellman.csv", delimiter=",", skip_header=1)[:, 1:]


def _all_pairs(columns: int) -> Int[np.ndarray, "pairs 2"]:
    return np.stack(np.triu_indices(columns, 1), axis=1)


def _widened(low: float, high: float) -> tuple[float, float]:
    """The range, widened by a hundredth of its length on both sides."""
    # One baseball column is constant: its range gets a length.
    margin = (high - low) / 100 or 1.0
    return float(low - margin), float(high + margin)
