"""Error rates of sieve-and-examine: measured, by our bounds, and by the printed bounds.

`python -m benchmarks.sieve` prints the tables of docs/sieve.md, in its form, and writes
`benchmarks/results/sieve.json`. Everything runs on the real code path. A data set is n zeros and
ones; its score is the number of ones, and in the sieve n/m times that of the subsample. So Delta is
1 record on all data and n/m in the sieve. alpha, t and scores are in records.
"""

import argparse
import json
import platform
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import dpmic_jax
from dpmic_jax.dp.selection.sieve import SieveAndExamine
from dpmic_jax.dp.selection.sieve_bounds import (
    Drift,
    Fluctuation,
    no_drift,
    published_type_one,
    published_type_two,
    type_one,
    type_two,
)

RESULTS = Path(__file__).parent / "results" / "sieve.json"
UNIT = 16  # lattice steps per record: fine enough for the printed bounds, which are continuous
N = 400
GRIDS = {  # subsample: (alpha, t) in records
    N: [(1, 0), (2, 0), (4, 0), (1, 8), (4, 8), (8, 8), (1, 150), (2, 150), (4, 150)],
    N // 4: [(10, 0), (20, 0), (10, 20), (20, 20), (40, 20), (20, 40), (40, 40)],
}
EPSILONS = [0.5, 1.0, 2.0]


def settings(*, epsilon: float, tweak: int, subsample: int, n: int = N) -> SieveAndExamine:
    """One query, one round, the same epsilon for the sieve and the examination."""
    return SieveAndExamine(
        sieve_epsilon=epsilon,
        examine_epsilon=epsilon,
        sieve_sensitivity=UNIT * (n // subsample),
        examine_sensitivity=UNIT,
        threshold=UNIT * (n // 2),
        tweak=UNIT * tweak,
        n=n,
        subsample=subsample,
        queries=1,
        rounds=1,
    )


@partial(jax.jit, static_argnames=("law", "draws"))
def reported(law: SieveAndExamine, ones: jax.Array, key: jax.Array, draws: int) -> jax.Array:
    """In how many of `draws` runs each column is reported above; column i has ones[i] of n."""
    table = (jnp.arange(law.n, dtype=jnp.int32)[:, None] < ones[None, :]).astype(jnp.int32)

    def once(key: jax.Array) -> jax.Array:
        drawn = law.subsamples(key=key)
        sieve = np.int32(law.sieve_sensitivity) * table[drawn.indices[0]].sum(0, dtype=jnp.int32)
        full = np.int32(UNIT) * ones

        def column(on_subsample: jax.Array, on_all: jax.Array) -> jax.Array:
            return law.answer(drawn, on_subsample[None, None], on_all[None], key=key).above[0]

        return jax.vmap(column)(sieve, full)

    def batch(keys: jax.Array) -> jax.Array:
        return jax.vmap(once)(keys).sum(0, dtype=jnp.int32)

    return jax.lax.map(batch, jax.random.split(key, (draws // 1000, 1000))).sum(0, dtype=jnp.int32)


def interval(errors: int, draws: int) -> tuple[float, float]:
    """The 99 % Clopper-Pearson interval."""
    low = stats.beta.ppf(0.005, errors, draws - errors + 1) if errors else 0.0
    high = stats.beta.ppf(0.995, errors + 1, draws - errors) if errors < draws else 1.0
    return float(low), float(high)


def counted(law: SieveAndExamine, ones: int) -> Drift:
    """The exact probability that the hypergeometric count of a subsample drifts, either way.

    The larger of the two tails: with n/2 + alpha ones it is the lower one for zeros.
    """
    n, m = law.n, law.subsample
    if n == m:
        return no_drift
    share = n // m

    def drift(step: int) -> float:
        # |X - m ones/n| >= step / (UNIT share) for the count X: its two tails, in whole ones.
        records = step / (UNIT * share)
        down = stats.hypergeom.cdf(np.floor(m * ones / n - records + 1e-9), n, ones, m)
        up = stats.hypergeom.sf(np.ceil(m * ones / n + records - 1e-9) - 1, n, ones, m)
        return float(max(down, up))

    return drift


def both(law: SieveAndExamine, alpha: int, drifts: tuple[Drift, Drift]) -> tuple[float, float]:
    """Our bounds on Type I and Type II, each with its drift."""
    steps = UNIT * alpha
    return (
        type_one(law, steps, drift=drifts[0], rounds=1),
        type_two(law, steps, drift=drifts[1], rounds=1),
    )


def printed(law: SieveAndExamine, alpha: int) -> tuple[float, float | None]:
    """The printed Theorems 4 and 5, with the larger of the two sensitivities in their favour."""
    delta, inner = law.sieve_sensitivity / UNIT, float(law.inner_epsilon)
    tweak = law.tweak / UNIT
    common = {"alpha": alpha, "tweak": tweak, "inner_epsilon": inner, "sensitivity": delta}
    two = published_type_two(epsilon=float(law.examine_epsilon), **common)
    return published_type_one(**common), two if alpha >= tweak else None


def rows(subsample: int, epsilon: float, tweak: int, draws: int) -> list[dict[str, Any]]:
    """The rows of one noise distribution, for all its alphas."""
    law = settings(epsilon=epsilon, tweak=tweak, subsample=subsample)
    alphas = [alpha for alpha, t in GRIDS[subsample] if t == tweak]
    ones = [N // 2 + alpha for alpha in alphas] + [N // 2 - alpha for alpha in alphas]
    key = jax.random.key(1000 * tweak + int(100 * epsilon))
    above = np.asarray(reported(law, jnp.asarray(ones, jnp.int32), key, draws))
    found = []
    for place, alpha in enumerate(alphas):
        errors = draws - int(above[place]), int(above[place + len(alphas)])
        exact = both(law, alpha, (counted(law, N // 2 + alpha), counted(law, N // 2 - alpha)))
        spread = Fluctuation(n=N, subsample=subsample, sensitivity=law.sieve_sensitivity, bias=0.0)
        general = both(law, alpha, (spread, spread))
        theirs = printed(law, alpha)
        row: dict[str, Any] = {"epsilon": epsilon, "alpha": alpha, "t": tweak}
        for kind, name in enumerate(("type_one", "type_two")):
            row[name] = {
                "measured": errors[kind] / draws,
                "interval": interval(errors[kind], draws),
                "bound": exact[kind],
                "bound_any_score": general[kind],
                "printed": theirs[kind],
            }
        found.append(row)
    return found


def table(subsample: int, draws: int) -> list[dict[str, Any]]:
    """All rows of a subsample size."""
    tweaks = sorted({t for _, t in GRIDS[subsample]})
    return [row for e in EPSILONS for t in tweaks for row in rows(subsample, e, t, draws)]


def decoys(draws: int) -> dict[str, Any]:
    """A query after many others: its Type I error, and the bounds with and without the others.

    A query that is alpha above the threshold follows 40 that are 4 records below the tweaked
    threshold. Rounds with a low noisy threshold stop at one of those.
    """
    alpha, tweak, before, rounds = 4, 4, 40, 20
    law = replace(
        settings(epsilon=1.0, tweak=tweak, subsample=N), queries=before + 1, rounds=rounds
    )
    scores = np.full(law.queries, law.threshold - law.tweak - 4 * UNIT, np.int32)
    scores[-1] = law.threshold + alpha * UNIT
    sieve = jnp.broadcast_to(jnp.asarray(scores), (rounds, law.queries))

    def missed(key: jax.Array) -> jax.Array:
        answers = law.answer(law.subsamples(key=key), sieve, jnp.asarray(scores), key=key)
        return (answers.asked == law.queries) & ~answers.above[-1]

    keys = jax.random.split(jax.random.key(5), (draws // 1000, 1000))
    errors = int(jax.lax.map(lambda k: jax.vmap(missed)(k).sum(), keys).sum())
    bounds = [type_one(law, alpha * UNIT, drift=no_drift, rounds=begun) for begun in (1, rounds)]
    return {
        "alpha": alpha,
        "t": tweak,
        "epsilon": 1.0,
        "queries_before": before,
        "rounds": rounds,
        "measured": errors / draws,
        "interval": interval(errors, draws),
        "bound_first_of_a_round": bounds[0],
        "bound": bounds[1],
        "printed": printed(law, alpha)[0],
    }


def line(row: dict[str, Any]) -> str:
    """A row of the table in docs/sieve.md; rates that exceed their bound are in bold."""
    cells = [f"{row['epsilon']:g}", str(row["alpha"]), str(row["t"])]
    for name in ("type_one", "type_two"):
        error = row[name]
        cells += [f"{error[k]:.4f}" for k in ("measured", "bound", "bound_any_score")]
        bound = error["printed"]
        text = "-" if bound is None else f"{bound:.4f}"
        broken = bound is not None and error["interval"][0] > bound
        cells.append(f"**{text}**" if broken else text)
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=40_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found: dict[str, Any] = {
        "command": "python -m benchmarks.sieve",
        "version": dpmic_jax.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "draws": options.draws,
        "n": N,
        "tables": {},
    }
    for subsample in GRIDS:
        found["tables"][str(subsample)] = table(subsample, options.draws)
        print(f"subsample {subsample} of {N}")
        for row in found["tables"][str(subsample)]:
            print(line(row))
    found["decoys"] = decoys(options.draws)
    print(found["decoys"])
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
