"""Tests of dependence with scores that are made up, to see what a search makes of them."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import inf

import numpy as np

from dpmic_jax.causal.queries import Coded


def coded(values, columns):
    """Records that have the same code in every column."""
    return Coded(np.tile(np.asarray(values), (columns, 1)), (3,) * columns)


@dataclass(frozen=True)
class Halves:
    """Half the number of records whose code a query wants, and an offset: one moves it by 1/2.

    Special edges want 1 and have the offset; all others want 0, in every order.
    """

    data: Coded
    offset: Fraction = Fraction(0)
    special: frozenset = frozenset()

    @property
    def columns(self):
        return self.data.columns

    @property
    def n(self):
        return self.data.n

    def score(self, query):
        special = query[:2] in self.special
        return Fraction(int((self.data.codes[0] == special).sum()), 2) + special * self.offset

    def scores(self, queries):
        return np.array([float(self.score(query)) for query in queries])

    def sensitivity(self, queries):
        return Fraction(1, 2)

    @property
    def largest(self):
        return self.n / 2 + float(self.offset)

    def points(self, queries, lattice):
        return np.array([int(self.score(query) * 2**lattice.bits // 1) for query in queries])


@dataclass(frozen=True)
class Given:
    """Scores from a function of queries, whatever the data; one record could move them by 1."""

    data: Coded
    score: object

    @property
    def columns(self):
        return self.data.columns

    @property
    def n(self):
        return self.data.n

    def scores(self, queries):
        return np.array([float(self.score(query)) for query in queries])

    def sensitivity(self, queries):
        return Fraction(1)

    @property
    def largest(self):
        return inf

    def points(self, queries, lattice):
        return np.floor(self.scores(queries) * 2**lattice.bits).astype(np.int64)


def asked(edges, columns, order):
    """The queries of a level, from the definition in docs/causal_algorithms.md."""
    found = []
    for x, y in sorted(edges):
        for one, other in ((x, y), (y, x)):
            near = [v for v in range(columns) if {v, one} in map(set, edges) and v != other]
            for given in combinations(near, order):
                if (x, y, given) not in found:
                    found.append((x, y, given))
    return found
