"""From one noisy histogram of a pair to its characteristic matrix and MIC: post-processing only.

A side x side histogram of (x, y), of equal cells on public bounds, is noised once. Its cells
are too small to be read one by one, but any few of their sums can be: a table of 2 merged rows
by `side` columns has 2 side entries, and the distribution of the noise in each is known.

**Deconvolution.** Column j of such a table shows (a_j, b_j), where a_j is near normal about its
expectation u_j with variance u_j + m v: Poisson sampling, and m merged cells of noise of
variance v. Information is a sum over columns of a function of (u_j, v_j) and does not ask which
column is which. So it is read off the distribution of the (u_j, v_j), which the nonparametric
maximum likelihood of Kiefer and Wolfowitz (1956) recovers, by expectation maximisation on atoms
at all pairs of observed values. Both noises are taken out, without smoothing the columns.

**Cuts.** The merged axis is cut at its noisy quartiles, so that skewed columns are cut where
their records are. By the chain rule more parts are more splits,
I(4 parts) = I(lower | upper) + P(lower) I(1 | 2) + P(upper) I(3 | 4).

**Calibration.** MIC is a supremum over ever finer grids; a histogram stops at `side`. The `mic`
of an estimate is 4 numbers times (1, best entry with side/3, side/2 and side parts), fitted to
MIC* on 105 synthetic distributions: it extrapolates the resolution, and where noise drowns the
data it falls back to a typical value. The matrix itself is not calibrated, so its largest entry
is another, more cautious estimate.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.mic.characteristic import Characteristic, Entries

Counts = Int[np.ndarray, "*pairs side side"]
Masses = Float[np.ndarray, "*pairs side side"]
Tables = Float[np.ndarray, "pairs columns 2"]
Bits = Float[np.ndarray, " pairs"]

STEPS = 25
# An expected count of zero would have no variance without noise, and no logarithm.
LEAST = 0.05
PARTS = (2, 3, 4)

# side, then calibration, at (n, epsilon): what `python -m benchmarks.histogram --calibrate
# --repeats 4` printed when the family still had generating points outside of the unit square.
SIZES = (250, 1000, 5000, 20000)
EPSILONS = (0.1, 0.3, 1.0, 3.0)
FITTED = {
    (250, 0.1): (12, 0.482, 0.138, 0.133, -0.274),
    (250, 0.3): (12, 0.393, 0.062, 0.148, -0.089),
    (250, 1.0): (12, 0.099, -0.203, 0.122, 0.927),
    (250, 3.0): (18, -0.045, -0.353, -0.176, 1.634),
    (1000, 0.1): (12, 0.226, -0.074, 0.082, 0.402),
    (1000, 0.3): (12, 0.084, -0.285, -0.215, 1.372),
    (1000, 1.0): (18, -0.028, -0.150, -0.746, 1.987),
    (1000, 3.0): (24, -0.034, -0.246, -0.482, 1.836),
    (5000, 0.1): (18, -0.020, -0.278, -0.175, 1.523),
    (5000, 0.3): (24, -0.038, -0.408, -0.243, 1.762),
    (5000, 1.0): (36, -0.031, -0.243, -0.215, 1.570),
    (5000, 3.0): (48, -0.015, -0.037, -0.350, 1.463),
    (20000, 0.1): (24, -0.032, -0.259, -0.416, 1.805),
    (20000, 0.3): (36, -0.030, -0.326, -0.117, 1.553),
    (20000, 1.0): (48, -0.013, 0.008, -0.458, 1.529),
    (20000, 3.0): (48, -0.008, 0.007, -0.400, 1.456),
}


@dataclass(frozen=True, kw_only=True)
class Design:
    """One histogram of side x side equal cells, which gets the whole budget, and how to read it.

    Attributes:
      side: cells on each axis; a multiple of 6, at least 12.
      calibration: an offset, then weights of the best entries with side/3, side/2, side parts.
    """

    side: int
    calibration: tuple[float, float, float, float]

    def __post_init__(self):
        if self.side < 12 or self.side % 6:
            raise ValueError(f"expected side to be 12, 18, 24, ..., got {self.side}")
        if len(self.calibration) != 4 or not np.isfinite(self.calibration).all():
            raise ValueError(f"expected calibration to be 4 numbers, got {self.calibration}")

    @property
    def columns(self) -> tuple[int, int, int]:
        """The sizes of the axis that is not cut."""
        return self.side // 3, self.side // 2, self.side


class Estimate(NamedTuple):
    """What a noisy histogram says about the distribution of one or many pairs.

    Attributes:
      mass: probabilities of the cells: a picture, too noisy to compute information from.
      matrix: the estimated characteristic matrix; tic, mas, mev, ... are read off it.
      mic: the calibrated estimate of MIC; not the largest entry of `matrix`.
    """

    mass: Masses
    matrix: Characteristic
    mic: Float[np.ndarray, "*pairs"]


def design(*, n: int, epsilon: float) -> Design:
    """The histogram for n records and a pure budget epsilon, by replace-one neighbours.

    Linear in (log n, log epsilon) between the fitted points, and clamped outside of them.
    """
    if n < 1:
        raise ValueError(f"expected n >= 1 records, got {n}")
    if not 0 < epsilon < math.inf:
        raise ValueError(f"expected 0 < epsilon < inf, got {epsilon}")
    nodes = np.array([[FITTED[size, budget] for budget in EPSILONS] for size in SIZES])
    nodes[..., 0] = np.log(nodes[..., 0])
    by_n = np.stack([_between(SIZES, nodes[:, j], n) for j in range(len(EPSILONS))])
    log_side, *calibration = _between(EPSILONS, by_n, epsilon).tolist()
    return Design(side=6 * max(2, round(math.exp(log_side) / 6)), calibration=tuple(calibration))


def _between(
    points: tuple[float, ...], values: Float[np.ndarray, "points numbers"], at: float
) -> Float[np.ndarray, " numbers"]:
    return np.array([np.interp(math.log(at), np.log(points), column) for column in values.T])


def laplace_variance(epsilon: float) -> float:
    """Variance of discrete Laplace noise of ratio r = e^(-epsilon/2): 2 r / (1 - r)^2.

    One replaced record moves two cells of a histogram by one each, so this is the noise that
    makes a histogram epsilon-private.
    """
    if not 0 < epsilon < math.inf:
        raise ValueError(f"expected 0 < epsilon < inf, got {epsilon}")
    return 2 * math.exp(-epsilon / 2) / math.expm1(-epsilon / 2) ** 2


def estimate(counts: Counts, *, n: int, variance: float, design: Design) -> Estimate:
    """Estimate the characteristic matrix and MIC behind noisy counts.

    Args:
      counts: noisy records in each cell, x first; they may be negative.
      n: true number of records, which is public.
      variance: of the noise in one cell, 0 for none; see `laplace_variance`.
      design: the design by which the histogram was made.
    """
    counts = np.asarray(counts, np.float64)
    if counts.shape[-2:] != (design.side, design.side):
        raise ValueError(
            f"expected counts of {design.side} x {design.side} cells, got shape {counts.shape}"
        )
    if n < 1:
        raise ValueError(f"expected n >= 1 records, got {n}")
    if not 0 <= variance < math.inf:
        raise ValueError(f"expected 0 <= variance < inf, got {variance}")
    pairs = counts.shape[:-2]
    counts = counts.reshape(-1, design.side, design.side)
    mass = to_simplex(counts.reshape(len(counts), -1), n).reshape(counts.shape) / n
    matrix = _characteristic(counts, n, variance, design.columns)
    best = [np.ones(len(counts))] + [largest(matrix, size) for size in design.columns]
    mic = np.clip(np.stack(best, axis=1) @ np.array(design.calibration), 0, 1)
    values = matrix.values.reshape(*pairs, -1)
    return Estimate(
        mass.reshape(*pairs, design.side, design.side),
        Characteristic(values, matrix.entries),
        mic.reshape(pairs),
    )


def largest(matrix: Characteristic, size: int) -> Float[np.ndarray, "*pairs"]:
    """The best entry whose larger side has `size` parts: what the calibration sees."""
    there = np.maximum(matrix.entries.x_parts, matrix.entries.y_parts) == size
    return matrix.values[..., there].max(axis=-1)


def to_simplex(
    counts: Float[np.ndarray, "pairs cells"], n: float
) -> Float[np.ndarray, "pairs cells"]:
    """The nearest non-negative counts that add up to n, in the Euclidean distance.

    They are max(count - t, 0), with the t for which the sum is right.
    """
    falling = -np.sort(-counts, axis=1)
    offsets = (np.cumsum(falling, axis=1) - n) / np.arange(1, counts.shape[1] + 1)
    kept = (falling > offsets).sum(axis=1, keepdims=True)
    return np.maximum(counts - np.take_along_axis(offsets, kept - 1, axis=1), 0)


def _characteristic(
    counts: Float[np.ndarray, "pairs side side"], n: int, variance: float, columns: tuple[int, ...]
) -> Characteristic:
    """Entries of 2, 3 and 4 parts on one axis, and `columns` on the other, both ways round."""
    best: dict[tuple[int, int], Bits] = {}
    for cut_y in (True, False):
        cut_last = counts if cut_y else counts.swapaxes(1, 2)
        edges = quartiles(cut_last.sum(axis=1), n)
        for size in columns:
            found = _information(cut_last, edges, size, variance)
            for parts, bits in zip(PARTS, found, strict=True):
                cell = (size, parts) if cut_y else (parts, size)
                value = np.clip(bits / np.log2(min(cell)), 0, 1)
                best[cell] = np.maximum(best.get(cell, 0), value)
    cells = sorted(best)
    place = {cell: index for index, cell in enumerate(cells)}
    x_parts, y_parts = np.array(cells).T
    transposed = np.array([place[y, x] for x, y in cells])
    values = np.stack([best[cell] for cell in cells], axis=1)
    return Characteristic(values, Entries(x_parts, y_parts, transposed))


def quartiles(marginal: Float[np.ndarray, "pairs side"], n: int) -> Int[np.ndarray, "pairs 5"]:
    """The cell edges nearest to 0, 1, 2, 3 and 4 quarters of the estimated records."""
    below = np.cumsum(to_simplex(marginal, n), axis=1)[:, :-1]
    inner = [np.abs(below - n * quarter / 4).argmin(axis=1) + 1 for quarter in (1, 2, 3)]
    ends = np.zeros(len(below), int), np.full(len(below), marginal.shape[1])
    return np.stack([ends[0], *inner, ends[1]], axis=1)


def _information(
    counts: Float[np.ndarray, "pairs side side"],
    edges: Int[np.ndarray, "pairs 5"],
    size: int,
    variance: float,
) -> tuple[Bits, Bits, Bits]:
    """Bits that 2, 3 and 4 parts of the last axis tell about `size` parts of the other.

    Two parts are cut at the best quartile. Three and four split the halves further.
    """
    pairs, side, _ = counts.shape
    wide = side // size
    merged = counts.reshape(pairs, size, wide, side).sum(axis=2)
    before = np.pad(np.cumsum(merged, axis=2), ((0, 0), (0, 0), (1, 0)))
    at = np.take_along_axis(before, np.repeat(edges[:, None], size, axis=1), axis=2)

    def split(low: int, middle: int, high: int) -> Bits:
        cuts = [low, middle, high]
        noise = np.diff(edges[:, cuts], axis=1) * (wide * variance)
        return split_information(np.diff(at[..., cuts], axis=2), noise)

    halves = np.maximum(np.diff(at[..., [0, 2, 4]], axis=2).sum(axis=1), 0)
    lower, upper = (halves / np.maximum(halves.sum(axis=1, keepdims=True), 1)).T
    median = split(0, 2, 4)
    low, high = lower * split(0, 1, 2), upper * split(2, 3, 4)
    two = np.maximum(median, np.maximum(split(0, 1, 4), split(0, 3, 4)))
    return two, median + np.maximum(low, high), median + low + high


def split_information(tables: Tables, noise: Float[np.ndarray, "pairs 2"]) -> Bits:
    """Bits that one binary split tells about the columns, by nonparametric maximum likelihood.

    With A[j, s] the likelihood of a_j at atom s, and B of b_j, a step of expectation
    maximisation multiplies the weight of the atoms (s, t) by the mean over columns j of
    A[j, s] B[j, t] / (A W B')[j, j].

    Args:
      tables: noisy counts; atoms are at the values of each row that are not negative.
      noise: variance of the noise in the entries of each row.
    """
    atoms = np.maximum(tables, LEAST)
    variances = (atoms + noise[:, None])[:, None]
    fit = -((tables[:, :, None] - atoms[:, None]) ** 2) / variances - np.log(variances)
    # Every likelihood is at most 1 and each column has an atom near 1: single precision does.
    likelihoods = np.exp((fit - fit.max(axis=2, keepdims=True)) / 2).astype(np.float32)
    first, second = likelihoods[..., 0], likelihoods[..., 1]
    size = tables.shape[1]
    weights = np.full((len(tables), size, size), 1 / size**2, np.float32)
    for _ in range(STEPS):
        density = ((first @ weights) * second).sum(axis=2, keepdims=True)
        weights *= (first / np.maximum(density, 1e-30)).swapaxes(1, 2) @ second / np.float32(size)
    weights = weights.astype(np.float64)
    one, other = atoms[..., 0], atoms[..., 1]
    both = one[:, :, None] + other[:, None]
    # Records a column: in either row, and information from the atoms' own marginals.
    of_one, of_other = weights.sum(axis=2), weights.sum(axis=1)
    rows = (of_one * one).sum(axis=1), (of_other * other).sum(axis=1)
    gain = (of_one * _phi(one)).sum(axis=1) + (of_other * _phi(other)).sum(axis=1)
    gain -= (weights * _phi(both)).sum(axis=(1, 2))
    total = rows[0] + rows[1]
    return np.maximum(gain - _phi(rows[0]) - _phi(rows[1]) + _phi(total), 0) / total


def _phi(counts: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    return counts * np.log2(np.maximum(counts, 1e-300))
