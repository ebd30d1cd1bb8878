"""Priv-PC: sieve and examine over the stream of queries.

A round is one `SieveAndExamine`: sparse vector on a new subsample finds a query that seems
independent, a noisy look at all records decides (docs/causal.md, Theorem 3).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, Key

from dpmic_jax.causal.answers import Answers, computed
from dpmic_jax.causal.queries import Coded, DependenceTest, Query
from dpmic_jax.causal.round_search import Finding, Round, by_rounds
from dpmic_jax.causal.score_lattice import (
    TOP,
    level_lattice,
    level_points,
    padded,
    point_of,
    power_of_two,
    priced,
)
from dpmic_jax.causal.search import Make, Search, fraction
from dpmic_jax.causal.skeleton import Skeleton, complete, queries_of_level
from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.dp.rng.keys import pair_key
from dpmic_jax.dp.selection import SieveAndExamine, sieve

_MOST_NATS = Fraction(80)  # of a release: there is next to no noise then


@dataclass(frozen=True, kw_only=True)
class PrivPC(Search):
    """Settings of Priv-PC. The sieve and the examination of a round have the same epsilon.

    Attributes:
      rounds: R; each examines one query, or finds that the level has none left to examine.
      subsample: m, how many records a sieve looks at.
      tweak: t; the sieve lets pass what seems to be below T + t.
    """

    rounds: int
    subsample: int
    tweak: float | Fraction

    def __post_init__(self):
        super().__post_init__()
        integer("rounds", self.rounds, 1, 2**20)
        integer("subsample", self.subsample, 1, 2**31 - 1)
        if not 0 <= self.tweak < 2**28:
            raise ValueError(f"expected 0 <= tweak < 2^28, got {self.tweak}")

    @property
    def mechanism(self) -> str:
        return "Priv-PC"

    def releases(self, columns: int) -> int:
        return 2 * self.rounds

    def public(self) -> dict[str, str]:
        return super().public() | {
            "rounds": str(self.rounds),
            "subsample": str(self.subsample),
            "tweak": str(fraction(self.tweak)),
        }

    def law(
        self, lattice: Lattice, steps: int, *, epsilon: Fraction, n: int, size: int
    ) -> SieveAndExamine:
        """Of one round, on points of the opposite sign; `steps` of sensitivity on a subsample."""
        return SieveAndExamine(
            sieve_epsilon=epsilon,
            examine_epsilon=epsilon,
            sieve_sensitivity=steps,
            examine_sensitivity=lattice.sensitivity,
            threshold=-point_of(self.level, lattice),
            tweak=point_of(fraction(self.tweak), lattice),
            n=n,
            subsample=self.subsample,
            queries=size,
            rounds=1,
        )

    def check(self, data: Coded, make: Make) -> None:
        if self.subsample > data.n:
            raise ValueError(f"expected subsample <= n = {data.n}, got {self.subsample}")
        self._level(data, make, queries_of_level(complete(data.columns), data.columns, 0))

    def _skeleton(
        self, data: Coded, make: Make, key: Key[Array, ""], answers: Answers = computed
    ) -> Skeleton:
        return by_rounds(
            data.columns,
            max_order=self.max_order,
            rounds=self.rounds,
            opened=lambda order, queries: self._opened(data, make, key, order, queries),
            answers=answers,
        )

    def _level(
        self, data: Coded, make: Make, queries: Sequence[Query]
    ) -> tuple[Lattice, SieveAndExamine]:
        lattice = level_lattice(make(data).sensitivity(queries))
        # The sensitivity on m records, whichever they are.
        part = make(data.take(np.arange(self.subsample))).sensitivity(queries)
        law = self.law(
            lattice,
            int(-(-(part * 2**lattice.bits) // 1)),
            epsilon=min(self.each(data.columns, 2 * self.rounds), _MOST_NATS),
            n=data.n,
            size=power_of_two(len(queries)),
        )
        return lattice, law

    def _opened(
        self,
        data: Coded,
        make: Make,
        key: Key[Array, ""],
        order: int,
        queries: Sequence[Query],
    ) -> Round:
        whole: DependenceTest = make(data)
        lattice, law = priced(lambda: self._level(data, make, queries))

        def look(number: int, start: int) -> Finding | None:
            # A round is decided by the queries up to the one that it finds. Those behind `end`
            # count as dependent, and are scored only if none is found before them.
            for end in _ends(start, len(queries)):
                told = released(number, start, end)
                examined = np.asarray(told.examined)[: end - start]
                if examined.any():
                    place = int(np.argmax(examined))
                    return Finding(start + place, bool(told.above[place]))
            return None

        def released(number: int, start: int, end: int) -> sieve.Answers:
            def on_subsample(records: Int32[Array, " m"]) -> Int32[Array, " queries"]:
                part = make(data.take(np.asarray(records)))
                points = padded(level_points(part, queries[start:end], lattice), law.queries, TOP)
                return jnp.asarray(-points.astype(np.int32))

            def on_all(place: int) -> int:
                if start + place >= len(queries):
                    return -TOP  # one that fills up the list, and is not told
                return -int(level_points(whole, [queries[start + place]], lattice)[0])

            return law.run(on_subsample, on_all, key=pair_key(key, order, number))

        return look


def _ends(start: int, last: int) -> Iterator[int]:
    """How far to score: 8 queries, then 4 times as many, and at last all."""
    ahead = 8
    while start + ahead < last:
        yield start + ahead
        ahead *= 4
    yield last
