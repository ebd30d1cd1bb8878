"""A small table with strong and weak dependences, and how the tests screen it."""

from functools import lru_cache

import numpy as np

from dpmic_jax import MICr, seeded_key
from dpmic_jax.mic.grids import ladder
from dpmic_jax.screening import AllPairs, Resources, screen

N = 600
NAMES = ("a", "b", "c", "d", "e", "f", "g")
BOUNDS = {
    "a": (0.0, 1.0),
    "b": (-3.0, 3.0),
    "c": (0.0, 9.0),
    "d": (0.0, 1.25),
    "e": (0.0, 1.0),
    "f": (-1.0, 1.0),
    "g": (0.0, 1.0),
}
STATISTIC = MICr(B=24, c=3, sizes=ladder(1.25))


@lru_cache
def columns(n=N, seed=7):
    """Columns by name: d, f and g depend on a, the others on nothing; c has whole numbers."""
    rng = np.random.default_rng(seed)
    a, b = rng.random(n), rng.normal(size=n)
    made = {
        "a": a,
        "b": b,
        "c": rng.integers(0, 10, n).astype(float),
        "d": a**2 + rng.random(n) / 4,
        "e": rng.random(n),
        "f": np.sin(6 * a) + rng.normal(size=n) / 20,
        "g": a,
    }
    assert tuple(made) == NAMES
    return made


def screened(table=None, *, ask=None, seed=1, **changes):
    """`screen` with everything that a test does not speak of."""
    settings = {
        "bounds": BOUNDS,
        "epsilon": 20.0,
        "statistic": STATISTIC,
        "key": seeded_key(seed),
        "resources": Resources(tile=7),
        **changes,
    }
    return screen(columns() if table is None else table, ask=ask or AllPairs(), **settings)


def same_bits(one, other):
    """Whether two results are the same to the last bit, also in what they say of themselves."""
    parts = ((result.pairs.tobytes(), result.mic.tobytes()) for result in (one, other))
    return len(set(parts)) == 1 and one == other
