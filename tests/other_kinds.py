"""Dependences that the table of `screening.calibration` was made without, with their MIC*.

Each is a table of masses of 64 x 64 cells, four to each part of the distance from independence.
Its MIC* is that of the table: a cut inside a row of cells tells no more than one of its ends, as
information is convex in where the cut is.
"""

import numpy as np
from paper.paper_oracles import by_recursion

CELLS, PARTS = 64, 16
_MIDDLE = (np.arange(CELLS) + 0.5) / CELLS
X, Y = _MIDDLE[:, None], _MIDDLE[None, :]


def _sum_to_one(masses):
    masses = np.broadcast_to(masses, (CELLS, CELLS)) + 1e-12
    return masses / masses.sum()


def _copula(below):
    """Masses of a copula, from P(U <= u, V <= v)."""
    inner = np.arange(1, CELLS) / CELLS
    edges = np.arange(CELLS + 1) / CELLS
    found = edges[:, None] * edges
    found[1:-1, 1:-1] = below(inner[:, None], inner[None, :])
    return _sum_to_one(np.maximum(np.diff(np.diff(found, axis=0), axis=1), 0))


def clayton(t):
    return _copula(lambda u, v: (u**-t + v**-t - 1) ** (-1 / t))


def frank(t):
    return _copula(lambda u, v: -np.log1p(np.expm1(-t * u) * np.expm1(-t * v) / np.expm1(-t)) / t)


def gumbel(t):
    return _copula(lambda u, v: np.exp(-(((-np.log(u)) ** t + (-np.log(v)) ** t) ** (1 / t))))


def band(function, width):
    """Uniform noise on a function."""
    return _sum_to_one(np.abs(Y - function(X)) < width)


def in_clutter(function, share):
    """A share of the records near a function, the others anywhere."""
    near = _sum_to_one(np.exp(-(((Y - function(X)) / 0.03) ** 2) / 2))
    return share * near + (1 - share) / CELLS**2


def blocks(number, concentration, rng):
    """Random masses of number x number blocks."""
    masses = rng.dirichlet(np.full(number**2, concentration)).reshape(number, number)
    return _sum_to_one(np.kron(masses, np.ones((CELLS // number, CELLS // number))))


def shrinking(by):
    """A spread that shrinks along x."""
    spread = 0.5 - by * X
    return _sum_to_one(np.exp(-(((Y - 0.5) / spread) ** 2) / 2) / spread)


def wave(x):
    return 0.5 + 0.4 * np.sin(3 * np.pi * x)


def kinds():
    """Masses of some distributions of each kind."""
    rng = np.random.default_rng(1)
    away = np.maximum(np.abs(X - 0.5), np.abs(Y - 0.5))
    tilted = (X + Y - 1) ** 2
    return {
        "Clayton": [clayton(t) for t in (0.3, 1, 3, 8)],
        "Frank": [frank(t) for t in (1, 3, 6, 12, 30)],
        "Gumbel": [gumbel(t) for t in (1.2, 1.6, 2.5, 5)],
        "triangle": [_sum_to_one(edge > X + Y) for edge in (1.0, 1.3, 1.6)],
        "ellipse": [_sum_to_one(((X - Y) / a) ** 2 + tilted < 0.5) for a in (0.2, 0.4, 0.7)],
        "frame": [_sum_to_one(away > inner) for inner in (0.3, 0.4, 0.45)],
        "band of a root": [band(np.sqrt, width) for width in (0.05, 0.1, 0.2, 0.4)],
        "band of a wave": [band(wave, width) for width in (0.05, 0.1, 0.2, 0.4)],
        "wave in clutter": [in_clutter(wave, share) for share in (0.1, 0.3, 0.5, 0.8)],
        "blocks": [blocks(4, a, rng) for a in (0.1, 0.3, 1, 3)],
        "small blocks": [blocks(8, a, rng) for a in (0.05, 0.2, 0.5, 2)],
        "spread that shrinks": [shrinking(by) for by in (0.2, 0.3, 0.4, 0.45)],
    }


def in_parts(masses):
    """The masses of the cells of the distance from independence."""
    each = CELLS // PARTS
    return masses.reshape(PARTS, each, PARTS, each).sum(axis=(1, 3))


def mic_star(masses):
    """The largest information of a partition of either axis over log2 of its parts, up to 20."""
    return max(max(by_recursion(table, 20)) for table in (masses, masses.T))


def split_distances(tables):
    """The distance from independence of tables of masses, over cuts of either axis.

    For a fine grid of t, by the formula of `mic.distance`; unions of eighths are left out.
    """
    t = np.linspace(0, 1, 801)[1:-1]
    most = np.maximum(t, 1 - t)
    found = np.zeros(len(tables))
    for tables_of_axis in (tables, tables.swapaxes(1, 2)):
        every = tables_of_axis.sum(axis=1)[..., None]
        for cut in range(1, PARTS):
            near = tables_of_axis[:, :cut].sum(axis=1)[..., None]
            apart = np.abs(near - t * every).sum(axis=1)
            apart += (2 * most - 1) * np.abs(t - near.sum(axis=1))
            found = np.maximum(found, (apart / (2 * most)).min(axis=-1))
    return found
