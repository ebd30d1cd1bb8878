"""Speed of integer noise: discrete Laplace at a scale of 10^5 steps, against OpenDP.

`python -m benchmarks.noise` prints a table with the sampler's certificate, and writes
`benchmarks/results/noise.json`. Rounds of all samplers alternate, so that they see the same load.
Compilation is timed separately. OpenDP draws on one thread; XLA may use every core. `--quick`
takes fewer rounds.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpmic_jax
from dpmic_jax.dp.noise import DiscreteGaussian, DiscreteLaplace
from dpmic_jax.dp.noise.lattice import Lattice, LatticeLaplace
from dpmic_jax.dp.rng.keys import secret_key

RESULTS = Path(__file__).parent / "results" / "noise.json"
SCALE = 10**5
DRAWS = 2**20
PEER_DRAWS = 20_000  # half a second of OpenDP


class Ours:
    """A sampler of this package; its first call compiles."""

    def __init__(self, program: Callable[..., jax.Array], *arguments: Any):
        self.program, self.arguments, self.draws = program, arguments, DRAWS
        first = self.seconds()
        self.compile_seconds = first - min(self.seconds() for _ in range(3))

    def seconds(self) -> float:
        began = time.perf_counter()
        self.program(*self.arguments).block_until_ready()
        return time.perf_counter() - began


class OpenDP:
    """The same distribution from OpenDP, on a vector, which is its fastest way."""

    def __init__(self):
        import opendp.prelude as dp

        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.l1_distance(T=dp.i32)
        self.measure = dp.m.make_laplace(*space, scale=float(SCALE))
        self.zeros, self.draws, self.compile_seconds = [0] * PEER_DRAWS, PEER_DRAWS, 0.0
        self.seconds()

    def seconds(self) -> float:
        began = time.perf_counter()
        self.measure(self.zeros)
        return time.perf_counter() - began


def samplers() -> dict[str, Ours | OpenDP]:
    """OpenDP, and ours with ChaCha20 and with threefry keys, as plain noise and as releases."""
    laplace = DiscreteLaplace(epsilon=1, sensitivity=SCALE)
    gaussian = DiscreteGaussian(sigma=2**16)
    lattice = LatticeLaplace(epsilon=Fraction(1, 64), lattice=Lattice(bits=16, sensitivity=1563))
    chacha, threefry = secret_key().key, jax.random.key(0)
    points = jnp.full(DRAWS, lattice.lattice.top // 2, jnp.int32)
    one_a_key = jax.jit(jax.vmap(lambda key, point: lattice.release(point, key=key)))
    return {
        "OpenDP": OpenDP(),
        "ChaCha20": Ours(partial(laplace.sample, shape=(DRAWS,)), chacha),
        "threefry": Ours(partial(laplace.sample, shape=(DRAWS,)), threefry),
        "ChaCha20, release": Ours(lambda key: lattice.release(points, key=key), chacha),
        "ChaCha20, a key a release": Ours(one_a_key, jax.random.split(chacha, DRAWS), points),
        "ChaCha20, Gaussian 2^16": Ours(partial(gaussian.sample, shape=(DRAWS,)), chacha),
    }


def spread(seconds: list[float], draws: int) -> dict[str, float]:
    """Draws per second of the median, the best and the worst round."""
    return {
        "median": draws / float(np.median(seconds)),
        "best": draws / min(seconds),
        "worst": draws / max(seconds),
    }


def certificate() -> dict[str, Any]:
    """The certificate of the distribution that was timed, and the time to build its tables."""
    law = DiscreteLaplace(epsilon=1, sensitivity=SCALE)
    began = time.perf_counter()
    found, words = law.certificate(), law.words
    return {
        "epsilon": 1.0,
        "one_minus_epsilon_realised": float(1 - found.epsilon_realised),
        "reach": found.reach,
        "edge_mass": float(found.edge_mass),
        "words_a_draw": words,
        "build_seconds": time.perf_counter() - began,
    }


def share_of_a_screen() -> dict[str, Any]:
    """Seconds to score all pairs of a table with integer gains, and to add noise to the scores."""
    import numpy as np

    from dpmic_jax.dp.rng.keys import event_key
    from dpmic_jax.mechanisms.additive_noise import lattice_points
    from dpmic_jax.mechanisms.release import add_noise

    n, columns = 1000, 100
    table = np.random.default_rng(0).random((n, columns))
    pairs = np.array([(i, j) for i in range(columns) for j in range(i)])
    mechanism = dpmic_jax.MICrLap(epsilon=1.0)
    law, cut = mechanism.noise(n), mechanism.resolve(n).cut(list(table.T), [(0, 1)] * columns)
    key = event_key(dpmic_jax.secret_key(), mechanism.event(n))
    scoring, noise = [], []
    for _ in range(4):
        began = time.perf_counter()
        points = lattice_points(law.lattice, cut, pairs)
        scored = time.perf_counter()
        add_noise(law, points, pairs, key)
        scoring.append(scored - began)
        noise.append(time.perf_counter() - scored)
    # The first round compiles.
    scoring, noise = sorted(scoring[1:]), sorted(noise[1:])
    return {
        "n": n,
        "pairs": len(pairs),
        "scoring_seconds": scoring[1],
        "noise_seconds": noise[1],
        "share": noise[1] / (noise[1] + scoring[1]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    built = certificate()
    tried = samplers()
    seconds: dict[str, list[float]] = {name: [] for name in tried}
    for _ in range(3 if options.quick else 9):
        for name, sampler in tried.items():
            seconds[name].append(sampler.seconds())
    found: dict[str, Any] = {
        "command": "python -m benchmarks.noise" + " --quick" * options.quick,
        "version": dpmic_jax.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "scale": SCALE,
        "certificate": built,
        "share_of_a_screen": share_of_a_screen(),
        "draws_a_second": {},
    }
    peer = spread(seconds["OpenDP"], PEER_DRAWS)["median"]
    print(f"{'sampler':<28}{'draws/s':>12}{'worst':>12}{'best':>12}{'ratio':>8}{'compile s':>11}")
    for name, sampler in tried.items():
        row = spread(seconds[name], sampler.draws)
        row |= {"ratio": row["median"] / peer, "compile_seconds": sampler.compile_seconds}
        found["draws_a_second"][name] = row
        print(
            f"{name:<28}{row['median']:>12,.0f}{row['worst']:>12,.0f}{row['best']:>12,.0f}"
            f"{row['ratio']:>8.1f}{row['compile_seconds']:>11.2f}"
        )
    print(
        f"certificate: epsilon_realised = 1 - {built['one_minus_epsilon_realised']:.3g} for "
        f"|x| <= {built['reach']}, edge mass {built['edge_mass']:.3g}, "
        f"{built['words_a_draw']} words a draw, built in {1e3 * built['build_seconds']:.1f} ms"
    )
    share = found["share_of_a_screen"]
    print(f"noise takes {share['share']:.2%} of a screen of {share['pairs']} pairs, n={share['n']}")
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
