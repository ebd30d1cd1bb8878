"""Cube noise: accepted proposals, size beside Laplace and Gaussian noise, and time.

`python -m benchmarks.cube` prints the tables of docs/cube.md. Acceptance is computed from the
sampler's own mode and width; sizes are those at epsilon = 1, with delta = 1e-6 for Gaussian noise;
time is that of all noise of a screen once compiled, best of three.
"""

import itertools
import math
import time
from fractions import Fraction

import jax
import numpy as np

from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.noise import cube
from dpmic_jax.dp.noise.cube import CubeNoise
from dpmic_jax.dp.noise.lattice import Lattice, LatticeCube
from dpmic_jax.mechanisms.release import add_noise

VALUES = 1, 11, 66, 435, 4950, 499_500


def acceptance(values: int, steps: int) -> float:
    """Sum of f over 4 w f(m), with the sum by the Gamma integral, which is exact to 1/m^2."""
    a, d = 1 / steps, values
    mode, width = cube._proposal(Fraction(1, steps), values)
    log_sum = math.lgamma(d + 1) - (d + 1) * math.log(a) + d * math.log(2) + a / 2
    log_mode = -a * mode + d * math.log(2 * mode + 1)
    return math.exp(log_sum - log_mode) / (4 * width)


def gaussian_sd(values: int) -> float:
    """Standard deviation over S of Gaussian noise on so many values at (1, 1e-6)."""
    return math.sqrt(values / (2 * Budget(1.0, 1e-6).rho))


def seconds(columns: int) -> float:
    """Time of the noise of all pairs of a table."""
    pairs = np.array(list(itertools.combinations(range(columns), 2)))
    lattice = Lattice.for_cube(Fraction(4, 10_000))
    noise = LatticeCube(epsilon=1.0, lattice=lattice, points=len(pairs))
    points, best = np.zeros(len(pairs), np.int32), math.inf
    for seed in range(4):  # the first one compiles
        start = time.perf_counter()
        add_noise(noise, points, pairs, jax.random.key(seed))
        best = min(best, time.perf_counter() - start) if seed else best
    return best


def main() -> None:
    print("values  accepted S=16  S=2047  sd Laplace/cube  largest Laplace/cube  sd Gauss/cube")
    for values in VALUES:
        one = CubeNoise(epsilon=1.0, sensitivity=1, values=values)
        laplace = math.sqrt(2) * values / one.sd
        largest = -values * math.log1p(-(0.95 ** (1 / values)))
        both = float(cube.gammaincinv(values, 0.95))
        print(
            f"{values:>6}  {acceptance(values, 16):13.2f}  {acceptance(values, 2047):6.2f}"
            f"  {laplace:15.2f}  {largest / both:20.2f}  {gaussian_sd(values) / one.sd:13.2f}"
        )
    for columns in (12, 100, 1000):
        pairs = columns * (columns - 1) // 2
        print(f"noise of {pairs} pairs: {seconds(columns):.3f} s")


if __name__ == "__main__":
    main()
