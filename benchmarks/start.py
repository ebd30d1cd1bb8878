"""The cost of a first answer, against version 0.1.0: cold commands, calls and tables.

`python -m benchmarks.start` takes commit 7bcc7ee, which is 0.1.0, from the clone's own history and
prints a table of it beside the working tree; `benchmarks/results/start.json` keeps all rounds.
Every run is a new process with its own cache folder, which is empty unless the case says warm; the
two versions take turns. Times are processor seconds, user and system, which other work on the
machine disturbs less than wall-clock time; they include the import of JAX unless it is subtracted.
The last column is the target of the working tree. `--only NAME` measures one case, `--rounds` sets
the number of rounds.
"""

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.beside import FIRST, Cost, Trees, cost, fresh_cost, in_turn, trees
from benchmarks.engine import COLD

RESULTS = Path(__file__).parent / "results" / "start.json"
DEMO = ("-m", "dpmic_jax", "screen", "demo", "--epsilon", "1")
PSTATS = """
import numpy as np
from dpmic_jax.minepy import pstats
pstats(np.random.default_rng(0).random((30, 1000)))
"""
# Six columns lose 5, 10, 20, ..., 160 records, all different ones. Sums of two powers of 2 differ,
# so every pair has another n.
CORR = """
import json, time
import numpy as np, pandas as pd
import dpmic_jax as dm
X = np.random.default_rng(0).random((1000, 6))
if {holes}:
    for i in range(6):
        X[5 * (2**i - 1):5 * (2**(i + 1) - 1), i] = np.nan
frame = pd.DataFrame(X)
began = time.process_time(), time.perf_counter()
frame.corr(method=dm.mice)
took = time.process_time() - began[0], time.perf_counter() - began[1]
print(json.dumps(took))
"""
SECOND = """
import json, time
import jax, numpy as np, pandas as pd
import dpmic_jax as dm
programs = []
def listen(event, seconds, fun_name="unnamed", **_):
    if event == "/jax/core/compile/backend_compile_duration":
        programs[-1].append(fun_name)
jax.monitoring.register_event_duration_secs_listener(listen)
for n, columns in ((20_000, 12), (14_321, 17)):
    frame = pd.DataFrame(np.random.default_rng(0).random((n, columns))).add_prefix("c")
    bounds = dict.fromkeys(frame, (0.0, 1.0))
    programs.append([])
    began = time.process_time(), time.perf_counter()
    # On a named device: otherwise so few pairs are scored in numpy, without a compiled program.
    asked = dict(ask=dm.AllPairs(), key=dm.secret_key(), devices=jax.devices()[:1])
    dm.screen(frame, bounds=bounds, epsilon=1.0, **asked)
took = time.process_time() - began[0], time.perf_counter() - began[1]
print(json.dumps([*took, *programs]))
"""


# JAX's names of the programs that score a tile of pairs: counting and optimising, which are one
# program in version 0.1.0.
TILE = {"jit(count)", "jit(optimise)", "jit(score)"}


class Bar(NamedTuple):
    """A target of the working tree: a bound on its seconds, or on a ratio of them."""

    of: str  # a key of the row
    at_most: float

    def __str__(self) -> str:
        return f"{self.of} <= {self.at_most:g}"


Row = dict[str, Any]


def fresh(*words: str) -> Callable[[Path], Cost]:
    return lambda tree: fresh_cost(words, tree)


def call(program: str) -> Callable[[Path], Cost]:
    """The cost of a part of a program, which it measures itself; memory is that of the process."""

    def measured(tree: Path) -> Cost:
        whole = fresh_cost(("-c", program), tree)
        cpu, wall, *more = json.loads(whole.output.splitlines()[-1])
        return Cost(cpu, wall, whole.peak_mb, json.dumps(more))

    return measured


def summary(costs: Sequence[Cost], cpu: Sequence[float] | None = None) -> Row:
    cpu = [one.cpu for one in costs] if cpu is None else cpu
    return {
        "cpu": median(cpu),
        "cpu_rounds": list(cpu),
        "wall": median(one.wall for one in costs),
        "peak_mb": median(one.peak_mb for one in costs),
    }


def side_by_side(other: Row, now: Row) -> Row:
    return {"other": other, "now": now, "ratio": now["cpu"] / other["cpu"]}


# --- the kinds of measurement ------------------------------------------------------------


def beside(run: Callable[[Path], Cost], both: Trees, rounds: int) -> Row:
    """The cost of both versions."""
    return side_by_side(*map(summary, in_turn([lambda t=t: run(t) for t in both], rounds)))


def beyond(runs: Sequence[Callable[[], Cost]], least: Callable[[], Cost], rounds: int) -> Row:
    """The cost of both versions, minus that of `least` in the same round."""
    other, now, bare = in_turn([*runs, least], rounds)
    rows = [
        summary(costs, [one.cpu - zero.cpu for one, zero in zip(costs, bare, strict=True)])
        for costs in (other, now)
    ]
    return {**side_by_side(*rows), "seconds": rows[1]["cpu"], "taken_off": summary(bare)}


def warm_demo(both: Trees, rounds: int) -> Row:
    with tempfile.TemporaryDirectory() as name:
        caches = [Path(name) / "other", Path(name) / "now"]
        for tree, cache in zip(both, caches, strict=True):
            cost(DEMO, tree, cache)
            if not any(cache.rglob("*")):
                raise RuntimeError(f"the command of {tree.name} kept no program in XDG_CACHE_HOME")
        runs = [lambda t=t, c=c: cost(DEMO, t, c) for t, c in zip(both, caches, strict=True)]
        return beyond(runs, lambda: fresh("-c", "import jax")(both.now), rounds)


def print_version(both: Trees, rounds: int) -> Row:
    words = ("-m", "dpmic_jax", "--version")
    runs = [lambda t=t: fresh_cost(words, t) for t in both]
    return beyond(runs, lambda: fresh("-c", "pass")(both.now), rounds)


def corr(both: Trees, rounds: int) -> Row:
    """The ratio of the costs with and without NaN, for each version."""
    holes, whole = (call(CORR.format(holes=holes)) for holes in (True, False))
    runs = [lambda r=r, t=t: r(t) for r in (holes, whole) for t in both]
    rows = [summary(costs) for costs in in_turn(runs, rounds)]
    return {
        **side_by_side(*rows[:2]),
        "without_holes": side_by_side(*rows[2:]),
        "with_over_without": rows[1]["cpu"] / rows[3]["cpu"],
        "with_over_without_other": rows[0]["cpu"] / rows[2]["cpu"],
    }


def second_table(both: Trees, rounds: int) -> Row:
    """The cost of the second call, with the number of programs that it compiles."""
    costs = in_turn([lambda t=t: call(SECOND)(t) for t in both], rounds)
    rows = []
    for one in costs:
        first, programs = json.loads(one[-1].output)
        if TILE.isdisjoint(first):
            raise RuntimeError(f"expected the first screen to compile one of {TILE}, got {first}")
        rows.append({**summary(one), "compilations": len(programs), "programs": programs})
    tile_programs = sum(name in TILE for name in rows[1]["programs"])
    return {**side_by_side(*rows), "tile_programs": tile_programs}


class Case(NamedTuple):
    says: str
    measure: Callable[[Trees, int], Row]
    bar: Bar | None


def cold(run: Callable[[Path], Cost]) -> Callable[[Trees, int], Row]:
    return lambda both, rounds: beside(run, both, rounds)


ONE_PAIR, THIRTY = COLD.values()
CASES = {
    "demo": Case("dpmic screen demo --epsilon 1", cold(fresh(*DEMO)), Bar("ratio", 0.4)),
    "warm": Case("  with a warm cache, less import jax", warm_demo, Bar("seconds", 2.5)),
    "version": Case("dpmic --version, less python -c pass", print_version, Bar("seconds", 0.3)),
    "pair": Case("mice of one pair, n=1000", cold(fresh("-c", ONE_PAIR)), Bar("ratio", 0.5)),
    "columns": Case("MICe of 30 columns, n=1000", cold(fresh("-c", THIRTY)), Bar("ratio", 0.5)),
    "pstats": Case("pstats of 30 columns, n=1000", cold(fresh("-c", PSTATS)), Bar("ratio", 0.3)),
    "corr": Case("df.corr(method=mice), 15 pairs, NaN", corr, Bar("with_over_without", 3)),
    "second": Case("screen 14 321 x 17 after 20 000 x 12", second_table, Bar("tile_programs", 0)),
}


# --- the report --------------------------------------------------------------------------

HEAD = (
    f"{'CPU seconds, median (least-most)':<38}{'other':>20}{'now':>20}{'ratio':>7}"
    f"{'wall s':>14}{'peak MB':>12}  has to hold"
)


def shown(row: Row) -> str:
    rounds = row["cpu_rounds"]
    return f"{row['cpu']:.2f} ({min(rounds):.2f}-{max(rounds):.2f})"


def line(case: Case, row: Row) -> str:
    other, now = row["other"], row["now"]
    text = (
        f"{case.says:<38}{shown(other):>20}{shown(now):>20}{row['ratio']:>7.2f}"
        f"{other['wall']:>7.1f}{now['wall']:>7.1f}{other['peak_mb']:>6.0f}{now['peak_mb']:>6.0f}  "
    )
    if case.bar:
        found = row[case.bar.of]
        text += f"{case.bar}: {found:.2f}, {'holds' if row['holds'] else 'DOES NOT HOLD'}"
    if "without_holes" in row:
        text += f"\n{line(case._replace(says='  without NaN', bar=None), row['without_holes'])}"
    if "programs" in now:
        text += (
            f"\n  compilations: {other['compilations']} and {now['compilations']} "
            f"({', '.join(now['programs'])})"
        )
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=CASES, help="one case; is not written to the results")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", default=FIRST, metavar="COMMIT")
    parser.add_argument("--out", type=Path, help="where to write; the results' file if all is run")
    options = parser.parse_args()
    out = options.out or (None if options.only else RESULTS)
    only = f" --only {options.only}" if options.only else ""
    found: dict[str, Any] = {
        "command": f"python -m benchmarks.start{only} --rounds {options.rounds} "
        f"--against {options.against}",
        "jax": version("jax"),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average_before": os.getloadavg(),
        "cases": {},
    }
    with trees(options.against) as both:
        print(HEAD, flush=True)
        for name in [options.only] if options.only else CASES:
            case = CASES[name]
            row = {"case": case.says, **case.measure(both, options.rounds)}
            if case.bar:
                row["bar"] = str(case.bar)
                row["holds"] = row[case.bar.of] <= case.bar.at_most
            found["cases"][name] = row
            print(line(case, row), flush=True)
    found["load_average_after"] = os.getloadavg()
    if out:
        out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
