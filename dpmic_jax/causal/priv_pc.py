"""Priv-PC: sieve-and-examine over the stream of queries.

A round is one `SieveAndExamine`: the sparse vector technique on a new subsample finds a query that
seems independent, and a noisy score on all records decides (docs/causal_algorithms.md, Theorem 3).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import expm1, log1p, sqrt

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, Key

from dpmic_jax.causal.answers import AnswerStore
from dpmic_jax.causal.decisions import Comparison, Decision
from dpmic_jax.causal.queries import Coded, DependenceTest, Query
from dpmic_jax.causal.round_search import Finding, Round, by_rounds
from dpmic_jax.causal.score_lattice import (
    TOP,
    build_or_refuse,
    level_lattice,
    level_points,
    padded,
    point_of,
    power_of_two,
)
from dpmic_jax.causal.search import Make, Search, fraction
from dpmic_jax.causal.skeleton import Skeleton, complete, queries_of_level
from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.dp.rng.keys import pair_key
from dpmic_jax.dp.selection import SieveAndExamine, sieve

# Largest epsilon of a release. A larger budget is not used up: noise is negligible by then.
_LARGEST_EPSILON = Fraction(80)


@dataclass(frozen=True, kw_only=True)
class PrivPC(Search):
    """Settings of Priv-PC. The sieve and the examination of a round have the same epsilon.

    Attributes:
      rounds: R; each examines one query, or finds no further query to examine in the level.
      subsample: m, the number of records in the subsample of a sieve.
      tweak: t; queries whose noisy score is at most T + t pass the sieve.
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
        """Name of the mechanism in the event."""
        return "Priv-PC"

    def releases(self, columns: int) -> int:
        """Two releases a round: the sieve and the examination."""
        return 2 * self.rounds

    def event_settings(self) -> dict[str, str]:
        """Settings of the search in its event."""
        return super().event_settings() | {
            "rounds": str(self.rounds),
            "subsample": str(self.subsample),
            "tweak": str(fraction(self.tweak)),
        }

    def round_mechanism(
        self, lattice: Lattice, steps: int, *, epsilon: Fraction, n: int, size: int
    ) -> SieveAndExamine:
        """The mechanism of one round, on minus the points, which are large for independence.

        Args:
          lattice: lattice of the level, with the sensitivity on all records.
          steps: sensitivity on a subsample, in steps of the lattice.
          epsilon: epsilon of the sieve, and of the examination.
          n: number of records.
          size: number of queries, with padding.
        """
        return SieveAndExamine(
            sieve_epsilon=epsilon,
            examine_epsilon=epsilon,
            sieve_sensitivity=steps,
            examine_sensitivity=lattice.sensitivity,
            threshold=-point_of(self.exact_threshold, lattice),
            tweak=point_of(fraction(self.tweak), lattice),
            n=n,
            subsample=self.subsample,
            queries=size,
            rounds=1,
        )

    def check(self, data: Coded, make: Make) -> None:
        """Raise ValueError if subsample > n, or if the noise of the first level cannot be drawn."""
        if self.subsample > data.n:
            raise ValueError(f"expected subsample <= n = {data.n}, got {self.subsample}")
        self._level(data, make, queries_of_level(complete(data.columns), data.columns, 0))

    @property
    def fewer(self) -> str:
        """What leaves more epsilon to each release, in words."""
        return "fewer columns or rounds"

    def decision(self, data: Coded, make: Make, query: Query) -> Decision:
        """The noise of a sieve, and of an examination.

        Scores grow with the root of the number of records, so a subsample is expected to have
        sqrt(m / n) of the score on all records.
        """
        epsilon = min(self.each(data.columns, 2 * self.rounds), _LARGEST_EPSILON)
        share = self.subsample / data.n
        # e' = ln(1 + (n/m)(e^e - 1))
        inner = log1p(expm1(float(epsilon)) / share)
        on_subsample = make(data.take(np.arange(self.subsample))).sensitivity([query])
        unit, limit = float(on_subsample) / inner, float(self.threshold)
        return Decision(
            (
                Comparison(limit + float(self.tweak), 4 * unit, 2 * unit, sqrt(share)),
                Comparison(limit, float(make(data).sensitivity([query]) / epsilon)),
            )
        )

    def _skeleton(
        self, data: Coded, make: Make, key: Key[Array, ""], store: AnswerStore
    ) -> Skeleton:
        data = data.in_order()  # subsamples are drawn by place
        return by_rounds(
            data.columns,
            max_order=self.max_order,
            rounds=self.rounds,
            open_level=lambda order, queries: self._open_level(data, make, key, order, queries),
            store=store,
        )

    def _level(
        self, data: Coded, make: Make, queries: Sequence[Query]
    ) -> tuple[Lattice, SieveAndExamine]:
        lattice = level_lattice(make(data).sensitivity(queries))
        # The sensitivity is the same for any m records: it depends on public values only.
        on_subsample = make(data.take(np.arange(self.subsample))).sensitivity(queries)
        mechanism = self.round_mechanism(
            lattice,
            int(-(-(on_subsample * 2**lattice.bits) // 1)),
            epsilon=min(self.each(data.columns, 2 * self.rounds), _LARGEST_EPSILON),
            n=data.n,
            size=power_of_two(len(queries)),
        )
        return lattice, mechanism

    def _open_level(
        self,
        data: Coded,
        make: Make,
        key: Key[Array, ""],
        order: int,
        queries: Sequence[Query],
    ) -> Round:
        whole: DependenceTest = make(data)
        lattice, mechanism = build_or_refuse(lambda: self._level(data, make, queries))

        def look(number: int, start: int) -> Finding | None:
            # A round depends only on the queries up to the one that it finds. So the queries from
            # `end` on are taken as dependent, and are scored only if none is found before them.
            # The same key gives the same noise each time: this is one release, not several.
            for end in _ends(start, len(queries)):
                answers = run_round(number, start, end)
                examined = np.asarray(answers.examined)[: end - start]
                if examined.any():
                    place = int(np.argmax(examined))
                    return Finding(start + place, bool(answers.above[place]))
            return None

        def run_round(number: int, start: int, end: int) -> sieve.Answers:
            def on_subsample(records: Int32[Array, " m"]) -> Int32[Array, " queries"]:
                test = make(data.take(np.asarray(records)))
                points = level_points(test, queries[start:end], lattice)
                return jnp.asarray(-padded(points, mechanism.queries, TOP).astype(np.int32))

            # Only the query that passed the sieve is scored on all records.
            def on_all(place: int) -> int:
                if start + place >= len(queries):
                    return -TOP  # padding, which is not released
                return -int(level_points(whole, [queries[start + place]], lattice)[0])

            return mechanism.run(on_subsample, on_all, key=pair_key(key, order, number))

        return look


def _ends(start: int, last: int) -> Iterator[int]:
    """Up to where to score: 8 queries, then 4 times as many, and so on to the last."""
    ahead = 8
    while start + ahead < last:
        yield start + ahead
        ahead *= 4
    yield last
