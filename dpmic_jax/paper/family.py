"""The 189 distributions: 21 functions at R^2 = 0.1, 0.2, ..., 0.9, each with its MIC*.

`family.json` holds what takes minutes to compute, the standard deviations and MIC*. The command
`dpmic paper family` writes it.
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
from dpmic_jax.paper.mixtures import Mixture, draw, generating_points, mixture_with_r_squared

R_SQUARED = tuple(tenth / 10 for tenth in range(1, 10))


@dataclass(frozen=True)
class Family:
    """A family of distributions, one entry of each attribute per distribution.

    Attributes:
      names: the functions, "F1" to "F21".
      r_squared: R^2 of the noisy relationship.
      mixtures: the distributions themselves.
      stars: MIC*.
    """

    names: tuple[str, ...]
    r_squared: tuple[float, ...]
    mixtures: tuple[Mixture, ...]
    stars: Float[np.ndarray, " distributions"]

    def __len__(self) -> int:
        return len(self.names)


@lru_cache(maxsize=1)
def family() -> Family:
    """The paper's family of 189 distributions, with the numbers stored in the package."""
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
    """The contents of `family.json`, computed from the functions alone; takes a few minutes."""
    places = [(name, r_squared) for name in FUNCTIONS for r_squared in R_SQUARED]
    bar = tqdm(places, desc="standard deviations", unit="distribution", disable=None)
    mixtures = [mixture_with_r_squared(FUNCTIONS[name], r_squared) for name, r_squared in bar]
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
    """Samples of n records from some distributions, as x and y.

    A data set depends on the seed, n, its distribution and its repeat alone, so any subset can be
    drawn again.

    Args:
      of: the family.
      which: indices of distributions in the family.
      n: records in each data set.
      repeats: indices of the data sets of each distribution.
      seed: of the samples.

    Returns:
      x and y, with the repeats of a distribution in neighbouring rows.
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
