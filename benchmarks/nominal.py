"""Estimates of MIC from distances, for random distributions of pairs with nominal columns.

The table of `screening.calibration` was made without them. For every kind of pair: how often the
95 % interval of a screen of 66 pairs (n = 10 000, epsilon = 1) holds MIC* of the distribution, how
often MIC* is above it, and how far the estimate is from it.
"""

import math
from fractions import Fraction

import numpy as np

from dpmic_jax.data.limits import NominalLimits
from dpmic_jax.mic.batch import score_pairs
from dpmic_jax.mic.distance import steps_of
from dpmic_jax.mic.numpy_scorer import float_phi, merge
from dpmic_jax.mic.statistics import MICrAndDistance
from dpmic_jax.screening.calibration import estimates
from dpmic_jax.screening.noises import Share, value_noise

N, DRAWS, FINE = 10_000, 150, 64
KINDS = [(0, 3), (0, 5), (0, 12), (0, 40), (3, 3), (5, 8), (12, 12), (5, 40)]
_LARGE = 4_000_000  # records of a table that stands for its distribution


def with_number(rng, categories):
    """Categories by blocks of a number's range, mixed with independence; its law may be skewed."""
    blocks = rng.integers(2, 9)
    ends = np.sort(rng.choice(np.arange(1, FINE), blocks - 1, replace=False))
    law = rng.dirichlet(np.full(categories, rng.choice([0.05, 0.2, 0.5])), size=blocks)
    law = np.repeat(law, np.diff([0, *ends, FINE]), axis=0)
    mix = 1 - rng.random() ** 2
    x = np.exp(rng.normal() * rng.choice([0, 0, 2]) * np.linspace(0, 1, FINE))
    return (mix * law + (1 - mix) * law.mean(axis=0)) * (x / x.sum())[:, None]


def of_categories(rng, rows, columns):
    """A random law of the second column for each category of the first, and independence."""
    p = rng.dirichlet(np.full(rows, rng.choice([0.5, 2.0])))
    law = rng.dirichlet(np.full(columns, rng.choice([0.03, 0.1, 0.4])), size=rows)
    mix = 1 - rng.random() ** 2
    return p[:, None] * (mix * law + (1 - mix) * (p @ law))


def mic_star(law, kind):
    """MIC of a distribution: of up to 8 parts of a number, or of the whole table."""
    counts = np.rint(law * _LARGE).astype(int)
    if kind[0] == 0:
        edges = np.concatenate([np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)])
        bits = merge(edges, 8, float_phi(int(counts.sum())))
        return max(found / math.log2(k) for k, found in enumerate(bits, start=2))
    outer = law.sum(axis=1, keepdims=True) * law.sum(axis=0)
    seen = law > 0
    bits = (law[seen] * np.log2(law[seen] / outer[seen])).sum()
    return min(1.0, bits / math.log2(min(kind)))


def distance(rng, law, kind):
    """The distance of a sample."""
    records = rng.choice(law.size, N, p=law.ravel() / law.sum())
    x, y = np.divmod(records, law.shape[1])
    bounds = [NominalLimits(bins, False) if bins else (-0.5, FINE - 0.5) for bins in kind]
    cut = MICrAndDistance(micr=None, bins=max(kind)).cut([x, y], bounds)
    (found,) = score_pairs(cut, np.array([[0, 1]]), None)
    return found[-1].max() / (2 * steps_of(N) * N)


def main():
    rng, noise = (
        np.random.default_rng(0),
        value_noise(Share(epsilon=Fraction(1)), Fraction(1, N), 66),
    )
    print("pair          median MIC*  covered  above   bias  error  width")
    for kind in KINDS:
        laws = [
            of_categories(rng, *kind) if kind[0] else with_number(rng, kind[1])
            for _ in range(DRAWS)
        ]
        truth = np.array([mic_star(law, kind) for law in laws])
        radii = noise.scale * rng.gamma(67, size=DRAWS)
        released = np.array([distance(rng, law, kind) for law in laws])
        released = np.clip(released + radii * rng.uniform(-1, 1, DRAWS), 0, 1)
        mic, lower, upper = estimates(released, noise, N)
        covered, above = ((lower <= truth) & (truth <= upper)).mean(), (truth > upper).mean()
        name = " x ".join(str(bins) if bins else "number" for bins in kind)
        numbers = (covered, above, (mic - truth).mean(), abs(mic - truth).mean())
        print(
            f"{name:12} {np.median(truth):12.2f}"
            + "".join(f"{each:8.2f}" for each in numbers[:2])
            + "".join(f"{each:7.3f}" for each in numbers[2:])
            + f"{np.median(upper - lower):7.2f}"
        )


if __name__ == "__main__":
    main()
