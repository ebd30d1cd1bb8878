"""The published MICr-Geom is not epsilon-DP: `python -m benchmarks.published_geom`.

Theorem 4.6 of the MIC paper argues that each noisy master grid is epsilon-DP and that only one
entry is returned. But the output is the maximum over several grids with independent noise, so it
depends on all of them, and composition gives only (number of grids) * epsilon. This benchmark
enumerates the distribution of the output on tiny data; its largest log ratio over all neighbours is
the true privacy loss. It uses numpy and integers only, and no code of the package.

Equal outputs are merged exactly. The information in a table of N records is log2(q) / N bits
with q = N^N prod a^a / (prod r^r prod c^c) over its cells a, rows r and columns c. Logarithms
of primes are independent over the rationals, so two tables have the same information iff the
exponents of every prime in q, divided by N, agree. These exponents are the key of an output. (From
B = 9 on there are entries divided by log2 3, which have no such key.)
"""

import argparse
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

CASES = ((1.0, 4), (1.0, 5), (1.0, 6), (3.0, 6))  # epsilon, n
VARIANTS = ((1.0, 4), (3.0, 4))
PRIMES = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37])

Dataset = tuple[int, ...]  # the cell of each record in the common refinement, sorted
Table = tuple[int, ...]  # counts, row by row
Outputs = Float[np.ndarray, " outputs"]


class Grid(NamedTuple):
    """A master grid: parts of y, to be merged into two, and parts of x; swapped, of x and y."""

    merged: int
    fixed: int
    swapped: bool = False


class Witness(NamedTuple):
    """Neighbours, the output (in bits) that distinguishes them best, and its privacy loss."""

    loss: float
    dataset: Dataset
    neighbour: Dataset
    output: float


def appendix_grids(B: int) -> tuple[Grid, ...]:
    """The master grids of Appendix E.1 at c = 1: min(l, B/l) x l for each l, both ways if l > 2."""
    if not 4 <= B <= 8:
        raise ValueError(f"expected 4 <= B <= 8, where every grid has a side of 2, got {B}")
    grids = [Grid(2, fixed) for fixed in range(2, B // 2 + 1)]
    return (*grids, *(grid._replace(swapped=True) for grid in grids[1:]))


def code_grids(B: int) -> tuple[Grid, ...]:
    """The master grids of the authors' code: both orientations of every size, also of 2x2."""
    grids = appendix_grids(B)
    return (*grids, grids[0]._replace(swapped=True))


def definition_grids(B: int) -> tuple[Grid, ...]:
    """The master grids of Definition 4.1 at c = 1: l x l for each l, with one axis to merge."""
    return tuple(grid._replace(merged=grid.fixed) for grid in appendix_grids(B))


@dataclass(frozen=True, kw_only=True)
class PublishedGeom:
    """Mechanism 3 of the paper on n records: the distribution of its output, and its true loss.

    Each cell of each master grid gets TruncGeom(epsilon / 2, n, count) of Definition 4.5. The
    noisy table is divided by its own sum; a table whose sum is 0 has 0 bits by convention.
    """

    grids: tuple[Grid, ...]
    n: int
    epsilon: float

    @cached_property
    def _axes(self) -> tuple[tuple[Fraction, ...], ...]:
        """Lower edges of the bins of the common refinement, on y and on x."""
        sizes = [grid[1::-1] if grid.swapped else grid[:2] for grid in self.grids]
        return tuple(
            tuple(sorted({Fraction(p, q) for q in axis for p in range(q)}))
            for axis in zip(*sizes, strict=True)
        )

    @property
    def cells(self) -> int:
        """Number of cells of the common refinement; the mechanism sees only a record's cell."""
        return math.prod(map(len, self._axes))

    def counts(self, grid: Grid, dataset: Dataset) -> Table:
        """Records in each cell of a master grid."""
        table = [0] * (grid.merged * grid.fixed)
        for cell in dataset:
            y, x = divmod(cell, len(self._axes[1]))
            place = (self._axes[0][y], self._axes[1][x])[:: -1 if grid.swapped else 1]
            table[int(place[0] * grid.merged) * grid.fixed + int(place[1] * grid.fixed)] += 1
        return tuple(table)

    def law(self, dataset: Dataset) -> dict[float, Fraction]:
        """Exact probability of each output (in bits), for noise of slightly less than `epsilon`.

        e^(-epsilon / 2) is rounded up to a multiple of 2^-40: more noise, so less loss.
        """
        rho = Fraction(math.floor(math.exp(-self.epsilon / 2) * 2**40) + 1, 2**40)
        outputs, scores = _scores(self._shapes, self.n)
        laws = []
        for grid in self.grids:
            table = self.counts(grid, dataset)
            weights = _exact_weights(table, self.n, rho, scores[grid[:2]], len(outputs))
            laws.append((weights, np.cumsum(weights) - weights))
        largest, total = _largest(laws), math.prod(weights.sum() for weights, _ in laws)
        return {
            output: Fraction(weight, total)
            for output, weight in zip(outputs.tolist(), largest, strict=True)
        }

    def worst(self) -> Witness:
        """The largest loss over all neighbours and outputs, in floats (accurate to about 1e-11)."""
        return max(self._worst_completion(rest) for rest in self._rests())

    def _worst_completion(self, rest: Dataset) -> Witness:
        """The largest loss among the data sets `rest` plus one record, which are all neighbours."""
        datasets = [tuple(sorted((*rest, cell))) for cell in range(self.cells)]
        laws = []
        for grid in self.grids:
            tables = [self.counts(grid, dataset) for dataset in datasets]
            both = [_law(t, self.n, self.epsilon, grid[:2], self._shapes) for t in tables]
            laws.append(tuple(map(np.stack, zip(*both, strict=True))))
        logs = np.log(_largest(laws))
        spread = logs.max(axis=0) - logs.min(axis=0)
        at = int(spread.argmax())
        more, less = datasets[logs[:, at].argmax()], datasets[logs[:, at].argmin()]
        return Witness(float(spread[at]), more, less, float(_scores(self._shapes, self.n)[0][at]))

    @property
    def _shapes(self) -> tuple[tuple[int, int], ...]:
        return tuple(sorted({grid[:2] for grid in self.grids}))

    def _rests(self) -> Iterator[Dataset]:
        """All data sets of n - 1 records, one for each class of mirror images."""
        height, width = map(len, self._axes)
        cells = np.arange(self.cells).reshape(height, width)
        images = [cells, cells[::-1], cells[:, ::-1], cells[::-1, ::-1]]
        if {_swap(grid) for grid in self.grids} == {_swap(_swap(grid)) for grid in self.grids}:
            images += [image.T for image in images]
        images = [image.ravel().tolist() for image in images]
        for rest in itertools.combinations_with_replacement(range(self.cells), self.n - 1):
            if all(rest <= tuple(sorted(image[cell] for cell in rest)) for image in images):
                yield rest


def _swap(grid: Grid) -> Grid:
    """The grid with x and y swapped; a 2x2 table, where nothing is merged, is its own swap."""
    return grid._replace(swapped=not grid.swapped and grid[:2] != (2, 2))


def _largest(laws: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Distribution of the largest of independent outputs, from P[v] and P[less than v] of each."""
    (equal, below), *others = laws
    for more, less in others:
        # Only positive terms are added, so small probabilities stay accurate in floats.
        equal, below = equal * (less + more) + below * more, below * less
    return equal


@lru_cache(maxsize=8)
def _noisy_tables(shape: tuple[int, int], n: int) -> Int[np.ndarray, "tables merged fixed"]:
    cells = math.prod(shape)
    return np.indices((n + 1,) * cells, np.int8).reshape(cells, -1).T.reshape(-1, *shape)


@lru_cache(maxsize=8)
def _scores(
    shapes: tuple[tuple[int, int], ...], n: int
) -> tuple[Outputs, dict[tuple[int, int], Int[np.ndarray, " tables"]]]:
    """All outputs in ascending order, and the index of each noisy table's output, by shape."""
    best = []
    for shape in shapes:
        tables = _noisy_tables(shape, n).astype(np.int64)
        merges = [
            information_keys(np.add.reduceat(tables, [0, cut], axis=1))
            for cut in range(1, shape[0])
        ]
        chosen = np.argmax([bits(keys) for keys in merges], axis=0)
        best.append(np.stack(merges)[chosen, np.arange(len(tables))])
    keys, place = np.unique(np.concatenate(best), axis=0, return_inverse=True)
    values = bits(keys)
    order = np.argsort(values)
    if np.diff(values[order]).min() < 1e-11:  # rounding is below 1e-14
        raise ArithmeticError("different outputs are too close for floats to put in order")
    ids = np.split(np.argsort(order)[place.ravel()], np.cumsum([len(part) for part in best])[:-1])
    return values[order], dict(zip(shapes, ids, strict=True))


def information_keys(tables: Int[np.ndarray, "tables rows columns"]) -> Int[np.ndarray, "tables _"]:
    """Exponents of the primes in q, then N, in lowest terms; an empty table has no information."""
    total = tables.sum(axis=(1, 2))
    powers = np.zeros((int(total.max()) + 1, len(PRIMES)), np.int64)
    for a in range(1, len(powers)):
        powers[a] = [a * _multiplicity(p, a) for p in PRIMES.tolist()]
    exponents = (
        powers[tables].sum(axis=(1, 2))
        - powers[tables.sum(axis=2)].sum(axis=1)
        - powers[tables.sum(axis=1)].sum(axis=1)
        + powers[total]
    )
    keys = np.concatenate([exponents, np.maximum(total, 1)[:, None]], axis=1)
    return keys // np.gcd.reduce(keys, axis=1)[:, None]


def _multiplicity(prime: int, a: int) -> int:
    return 0 if a % prime else 1 + _multiplicity(prime, a // prime)


def bits(keys: Int[np.ndarray, "outputs _"]) -> Outputs:
    """The information that a key stands for."""
    return keys[:, :-1] @ np.log2(PRIMES) / keys[:, -1]


@lru_cache(maxsize=4096)
def _law(
    table: Table, n: int, epsilon: float, shape: tuple[int, int], shapes: tuple
) -> tuple[Outputs, Outputs]:
    """P[v] and P[less than v] of one grid's output, in floats, from the counts in it."""
    outputs, scores = _scores(shapes, n)
    noise = trunc_geom(math.exp(-epsilon / 2), n)
    weights = reduce(np.multiply.outer, [noise[count] for count in table]).ravel()
    equal = np.bincount(scores[shape], weights, len(outputs))
    return equal, np.concatenate([[0.0], np.cumsum(equal)[:-1]])


def trunc_geom(rho: float, n: int) -> Float[np.ndarray, "count noisy"]:
    """Definition 4.5: row f is the distribution of TruncGeom(-ln rho, n, f)."""
    noisy = np.arange(n + 1)
    inside = (noisy > 0) & (noisy < n)
    return rho ** np.abs(noisy[:, None] - noisy) * np.where(inside, 1 - rho, 1) / (1 + rho)


def _exact_weights(
    table: Table, n: int, rho: Fraction, scores: Int[np.ndarray, " tables"], outputs: int
) -> np.ndarray:
    """Integers proportional to the probability of each output of one grid.

    A noisy table at distance d from the counts, with m cells inside (0, n), has probability
    rho^d (1 - rho)^m / (1 + rho)^cells. So tables are counted by output, d and m.
    """
    cells = len(table)
    noisy = _noisy_tables((1, cells), n).reshape(-1, cells)
    distance = np.abs(noisy - np.array(table, np.int8)).sum(axis=1, dtype=np.int64)
    inside = ((noisy > 0) & (noisy < n)).sum(axis=1, dtype=np.int64)
    far, a, b = n * cells + 1, rho.numerator, rho.denominator
    kind = (scores * far + distance) * (cells + 1) + inside
    kinds, tables = np.unique(kind, return_counts=True)
    weights = [0] * outputs
    for kind, number in zip(kinds.tolist(), tables.tolist(), strict=True):
        (output, d), m = divmod(kind // (cells + 1), far), kind % (cells + 1)
        weights[output] += number * a**d * b ** (far - d) * (b - a) ** m * b ** (cells - m)
    return np.array(weights, object)


def show(epsilon: float, n: int, named: dict[str, tuple[Grid, ...]]) -> None:
    """Print the true loss of each set of grids, and the neighbours that show it."""
    for name, grids in named.items():
        geom = PublishedGeom(grids=grids, n=n, epsilon=epsilon)
        worst = geom.worst()
        more, less = (geom.law(data)[worst.output] for data in (worst.dataset, worst.neighbour))
        proven = more > less * Fraction(math.nextafter(math.exp(epsilon), math.inf))
        print(
            f"{epsilon:>7g}{n:>4}  {name:<32}{worst.loss:>7.3f}  {'yes' if proven else 'no':<9}"
            f"{float(more):.2e} {float(less):.2e}  {worst.dataset} {worst.neighbour}",
            flush=True,
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published_geom")
    parser.add_argument("--quick", action="store_true", help="n = 4 and 5 only: seconds")
    parser.add_argument("--variants", action="store_true", help="other masters too: minutes")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    print("MICr-Geom as published, c = 1: its largest log ratio over all neighbours and outputs.")
    print("Above epsilon: by the exact rational laws of the two data sets. A data set is a list of")
    print("cells, y * bins + x, of the common refinement of the grids.\n")
    print(f"epsilon   n  {'grids':<32}{'loss':>7}  above     P[output] of the two, and the two")
    for epsilon, n in CASES[:2] if chosen.quick else CASES:
        grids = {
            "one grid alone, 2x2": appendix_grids(4),
            "one grid alone, 2x3": appendix_grids(6)[1:2],
            "paper, B = 6": appendix_grids(6),
            "authors' code, B = 6": code_grids(6),
        }
        show(epsilon, n, grids)
    for epsilon, n in VARIANTS if chosen.variants else ():
        grids = {"paper, B = 8": appendix_grids(8), "Definition 4.1, B = 6": definition_grids(6)}
        show(epsilon, n, grids)


if __name__ == "__main__":
    main()
