"""The 189 distributions: 21 functions at R^2 = 0.1, 0.2, ..., 0.9, each with its MIC*.

`family.json` has what takes minutes to compute, the standard deviations and MIC*;
`dpmic paper family` makes it.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import jax
import numpy as np
from jaxtyping import Float, Float32
from tqdm import tqdm

from dpmic_jax.paper.functions import FUNCTIONS
from dpmic_jax.paper.mic_star import FIXED, MASTER, mic_star
from dpmic_jax.paper.mixtures import Mixture, draw, generating_points, noisy

R_SQUARED = tuple(tenth / 10 for tenth in range(1, 10))


@dataclass(frozen=True)
class Family:
    """Distributions in the order of `names`.

    Attributes:
      names: of the function of each.
      r_squared: of each.
      mixtures: the distributions.
      stars: MIC* of each.
    """

    names: tuple[str, ...]
    r_squared: tuple[float, ...]
    mixtures: tuple[Mixture, ...]
    stars: Float[np.ndarray, " distributions"]

    def __len__(self) -> int:
        return len(self.names)


@lru_cache(maxsize=1)
def family() -> Family:
    """The family of the paper, with the numbers that come with the package."""
    text = resources.files("dpmic_jax.paper").joinpath("family.json").read_text()
    entries = json.loads(text)["distributions"]
    centres = {name: generating_points(function) for name, function in FUNCTIONS.items()}
    return Family(
        names=tuple(entry["function"] for entry in entries),
        r_squared=tuple(entry["r_squared"] for entry in entries),
        mixtures=tuple(Mixture(centres[e["function"]], e["deviation"]) for e in entries),
        stars=np.array([entry["mic_star"] for entry in entries]),
    )


def computed() -> dict:
    """The same from nothing but the functions, as `family.json` keeps it; a few minutes."""
    places = [(name, r_squared) for name in FUNCTIONS for r_squared in R_SQUARED]
    bar = tqdm(places, desc="standard deviations", unit="distribution", disable=None)
    mixtures = [noisy(FUNCTIONS[name], r_squared) for name, r_squared in bar]
    stars = mic_star(mixtures)
    return {
        "command": "dpmic paper family",
        "master": MASTER,
        "fixed": FIXED,
        "distributions": [
            {
                "function": name,
                "r_squared": r_squared,
                "deviation": round(mixture.deviation, 9),
                "mic_star": round(float(star), 6),
            }
            for (name, r_squared), mixture, star in zip(places, mixtures, stars, strict=True)
        ],
    }


def data_sets(
    of: Family, which: range, n: int, repeats: range, *, seed: int
) -> tuple[Float32[np.ndarray, "sets n"], Float32[np.ndarray, "sets n"]]:
    """Data sets of some distributions: repeat by repeat within each, x and y.

    A data set depends on the seed, n, its distribution and its repeat alone.
    """
    root = jax.random.fold_in(jax.random.key(seed), n)
    x = np.empty((len(which), len(repeats), n), np.float32)
    y = np.empty_like(x)
    for place, distribution in enumerate(which):
        key = jax.random.fold_in(root, distribution)
        for index, repeat in enumerate(repeats):
            found = draw(of.mixtures[distribution], n, key=jax.random.fold_in(key, repeat))
            x[place, index], y[place, index] = found
    return x.reshape(-1, n), y.reshape(-1, n)
