"""False discoveries and power of tests on the pair that a private screen selected.

`python -m benchmarks.after_selection` writes results/after_selection.json and the tables of
docs/after_selection.md; runs that are in the file already are not repeated. Every run calls
`screen` for the best of 50 pairs, one column with 50 others, and tests the selected pair on the
same records: MICe against its null distribution.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binomtest
from tqdm import tqdm

import dpmic_jax as dm
from benchmarks.pages import DOCS, fill
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.inference import Bonferroni, MaxInformationCorrection, NullTable
from dpmic_jax.mic.grids import ladder
from dpmic_jax.screening import default_screen_statistic

RESULTS = Path(__file__).parent / "results" / "after_selection.json"
PAGE = DOCS / "after_selection.md"
PAIRS, ALPHA, DRAWS = 50, 0.05, 9999
BOUNDS = [(0.0, 1.0)] * (PAIRS + 1)
ASK = dm.TopK(1, selection_fraction=0.9, candidates=dm.Against("x0"))
TEST = NullTable(statistic=dm.MICe(B=60, c=5, sizes=ladder(1.5)), draws=DRAWS)
TOGETHER = 100  # runs whose selected pairs are tested at once


@dataclass(frozen=True)
class Setting:
    """One setting of the study.

    Attributes:
      n, epsilon: number of records and epsilon of each screen.
      runs: number of screens.
      planted: noise of the one dependent pair, a cosine; None if all pairs are independent.
    """

    n: int
    epsilon: float
    runs: int
    planted: float | None = None


SETTINGS = (
    Setting(250, 0.1, 10_000),
    Setting(250, 10.0, 2000),
    Setting(10_000, 0.03, 400, planted=0.02),
    Setting(100_000, 0.006, 100, planted=0.02),
)


def tables(setting: Setting) -> Iterator[np.ndarray]:
    """Independent uniform columns; the first two are a noisy cosine if one is planted."""
    for run in range(setting.runs):
        rng = np.random.default_rng((setting.n, run))
        table = rng.random((setting.n, PAIRS + 1))
        if setting.planted is not None:
            # Well inside the bounds, so that clipping ties no two values.
            curve = 0.5 + 0.4 * np.cos(3 * np.pi * table[:, 0])
            table[:, 1] = curve + setting.planted * rng.normal(size=setting.n)
        yield table


def selected(table: np.ndarray, epsilon: float, seed: int) -> tuple[int, dm.ScreenResult]:
    """The column that a private screen selects as the partner of the first."""
    key = dm.seeded_key(seed)
    # Noise hides the value at a small epsilon; only the choice is used.
    result = dm.screen(table, bounds=BOUNDS, epsilon=epsilon, ask=ASK, key=key, force=True)
    return int(result.pairs[0, 1]), result


def strongest(table: np.ndarray, epsilon: float) -> int:
    """The column with the largest MICr with the first: a selection that is not private."""
    found = dm.pairwise(
        table[:, :1],
        bounds=BOUNDS[:1],
        Y=table[:, 1:],
        y_bounds=BOUNDS[1:],
        statistic=default_screen_statistic(len(table), epsilon),
    )
    return 1 + int(found.matrix[0].argmax())


def p_values(pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    columns = [column for pair in pairs for column in pair]
    positions = np.arange(len(columns)).reshape(-1, 2)
    return TEST.p_values(columns, positions, (), key=dm.seeded_key(2**31))


def study(setting: Setting) -> dict:
    """Rejection rates of the selected pair, by kind of selection and level of the test."""
    private, exact, hits, result = [], [], 0, None
    waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    started = time.perf_counter()

    def test() -> None:
        private.extend(p_values([(x, y) for x, y, _ in waiting]))
        exact.extend(p_values([(x, y) for x, _, y in waiting]))
        waiting.clear()

    for seed, table in enumerate(tqdm(tables(setting), total=setting.runs, desc=str(setting))):
        chosen, result = selected(table, setting.epsilon, seed)
        hits += chosen == 1
        best = strongest(table, setting.epsilon)
        waiting.append(tuple(np.array(table[:, i]) for i in (0, chosen, best)))
        if len(waiting) == TOGETHER:
            test()
    if waiting:
        test()
    assert result is not None
    event = Event.from_json(result.statement.event)
    kept = {"selected": 1, "candidates": PAIRS}
    level = MaxInformationCorrection().correction([event], ALPHA, **kept)
    found = {"private": np.array(private), "exact": np.array(exact)}
    return {
        **asdict(setting),
        "seconds": round(time.perf_counter() - started, 1),
        "level": level.level,
        "reason": level.reason,
        "private, corrected": rate(found["private"] <= level.level),
        "private, by candidates": rate(
            PAIRS * found["private"] <= Bonferroni().correction([event], ALPHA, **kept).level
        ),
        "private, uncorrected": rate(found["private"] <= ALPHA),
        "not private, uncorrected": rate(found["exact"] <= ALPHA),
        "planted pair selected": rate(np.arange(setting.runs) < hits),
    }


def rate(rejected: np.ndarray) -> list[float]:
    """A proportion and its 95 % Clopper-Pearson interval."""
    found = binomtest(int(rejected.sum()), len(rejected))
    interval = found.proportion_ci()
    return [round(float(x), 5) for x in (found.statistic, interval.low, interval.high)]


def shown(rows: list[dict]) -> str:
    """Tables of false discoveries and of power."""
    kinds = {
        "not private, uncorrected": "chosen by exact values, p <= 0.05",
        "private, uncorrected": "chosen privately, p <= 0.05",
        "private, corrected": "chosen privately, corrected by privacy",
        "private, by candidates": "chosen privately, corrected by candidates",
    }
    lines = []
    for title, wanted in (("False discoveries", False), ("Power", True)):
        some = [row for row in rows if (row["planted"] is not None) == wanted]
        head = [f"n = {row['n']}, epsilon = {row['epsilon']:g}" for row in some]
        lines += [f"| {' | '.join([title, *head])} |", "|---" * (1 + len(some)) + "|"]
        cells = {"runs": [str(row["runs"]) for row in some]}
        if wanted:
            cells["dependent pair selected"] = [
                _percent(row["planted pair selected"]) for row in some
            ]
        cells["level left by privacy"] = [f"{row['level']:.2g}" for row in some]
        cells |= {text: [_percent(row[kind]) for row in some] for kind, text in kinds.items()}
        lines += [f"| {' | '.join([name, *values])} |" for name, values in cells.items()]
        lines.append("")
    return "\n".join(lines).strip()


def _percent(found: list[float]) -> str:
    share, low, high = found
    return f"{100 * share:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def main() -> None:
    kept = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    rows = []
    for setting in SETTINGS:
        done = [row for row in kept if asdict(setting).items() <= row.items()]
        rows.append(done[0] if done else study(setting))
        content = {
            "command": "python -m benchmarks.after_selection",
            "alpha": ALPHA,
            "test": f"MICe, B = 60, c = 5, ladder 1.5, null law of {DRAWS} draws",
            "rows": rows,
        }
        RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    fill(PAGE, "study", shown(rows))


if __name__ == "__main__":
    main()
