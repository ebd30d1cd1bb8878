"""The accuracy lost with a ladder of fixed-axis sizes: `python -m benchmarks.ladder`.

It measures the mean absolute error of MICr without noise against MIC* over 63 distributions: the
21 relationships of the MIC paper at R^2 = 0.1, 0.5 and 0.9. All rules see the same data sets.
"""

import argparse
import json
import math
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

import dpmic_jax
from dpmic_jax import MICr
from dpmic_jax.mic import batch
from dpmic_jax.mic import characteristic as read
from dpmic_jax.mic.grids import all_sizes, ladder
from dpmic_jax.mic.xlogx import gains_for
from dpmic_jax.paper.family import Family, data_sets, family
from dpmic_jax.paper.functions import FUNCTIONS

R_SQUARED = (0.1, 0.5, 0.9)
SETTINGS = ((250, 40), (1000, 80), (5000, 150))  # n, B
RULES = {"all sizes": all_sizes} | {
    f"ladder {ratio}": ladder(ratio) for ratio in (1.1, 1.2, 1.25, 1.35, 1.5)
}
C = 5
SEED = 0
RESULTS = Path(__file__).parent / "results" / "ladder.json"

Errors = Float[np.ndarray, "distributions repeats"]
Entry = dict[str, Any]


def micr(
    data: Float[np.ndarray, "sets n 2"], statistic: MICr, device: jax.Device
) -> Float[np.ndarray, " sets"]:
    """MICr of many data sets on the unit square; column i is paired with column sets + i only."""
    sets = len(data)
    columns = [*data[..., 0], *data[..., 1]]
    cut = statistic.cut(columns, [(0.0, 1.0)] * len(columns))
    pairs = np.stack([np.arange(sets), sets + np.arange(sets)], axis=1)
    found = batch.score_pairs(cut, pairs, gains_for(cut.n), devices=[device])
    return np.concatenate([read.mic(read.characteristic(cut.grids, part)) for part in found])


def compare(
    known: Family, chosen: Sequence[int], settings: Sequence[tuple[int, int]], repeats: int
) -> list[Entry]:
    """Score every rule on the same data sets, for every n and B."""
    stars, entries = known.stars[list(chosen)], []
    for n, B in settings:
        sets = [data_sets(known, range(i, i + 1), n, range(repeats), seed=SEED) for i in chosen]
        data = np.concatenate([np.stack(both, axis=-1) for both in sets])
        errors = {}
        for rule, sizes in RULES.items():
            statistic = MICr(B=B, c=C, sizes=sizes)
            values = micr(data, statistic, jax.devices()[0]).reshape(len(chosen), repeats)
            errors[rule] = values - stars[:, None]
            entry = {"n": n, "B": B, "rule": rule, "sizes": len(statistic.grids(n))}
            entries.append(entry | summary(errors[rule], errors["all sizes"]))
    return entries


def summary(errors: Errors, reference: Errors) -> Entry:
    """Mean errors, and the mean paired difference of the absolute error from `reference`."""
    above = np.abs(errors) - np.abs(reference)
    return {
        "error": float(np.abs(errors).mean()),
        "error_standard_error": standard_error(np.abs(errors)),
        "bias": float(errors.mean()),
        "above_all_sizes": float(above.mean()),
        "above_standard_error": standard_error(above),
    }


def standard_error(values: Errors) -> float | None:
    """Standard error of the overall mean, for fixed distributions; needs two data sets of each."""
    if values.shape[1] == 1:
        return None
    return math.sqrt(values.var(axis=1, ddof=1).mean() / values.size)


def show(entries: Sequence[Entry]) -> None:
    """Print the number of sizes and the error of each rule, and the loss against all sizes."""
    print("number of fixed-axis sizes: mean absolute error of MICr against MIC*")
    _show(entries, lambda entry: f"{entry['sizes']}: {entry['error']:.4f}")
    print("\nerror above that of all sizes on the same data (standard error)")
    _show(entries, _above)


def _show(entries: Sequence[Entry], cell: Callable[[Entry], str]) -> None:
    _print_row("n, B", *RULES)
    for start in range(0, len(entries), len(RULES)):
        row = entries[start : start + len(RULES)]
        _print_row(f"{row[0]['n']}, {row[0]['B']}", *map(cell, row))


def _print_row(title: str, *cells: str) -> None:
    print(f"{title:<10}" + "".join(f"{cell:>18}" for cell in cells))


def _above(entry: Entry) -> str:
    error = entry["above_standard_error"]
    return f"{entry['above_all_sizes']:+.4f}" + ("" if error is None else f" ({error:.4f})")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ladder", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="data sets a distribution")
    parser.add_argument("--quick", action="store_true", help="one repeat, no n = 5000")
    chosen = parser.parse_args()
    if chosen.repeats < 1:
        parser.error(f"expected --repeats of at least 1, got {chosen.repeats}")
    return chosen


def main() -> None:
    chosen = arguments()
    settings, repeats = (SETTINGS[:2], 1) if chosen.quick else (SETTINGS, chosen.repeats)
    known = family()
    # In the order of the family: function by function.
    of = [index for index, r_squared in enumerate(known.r_squared) if r_squared in R_SQUARED]
    entries = compare(known, of, settings, repeats)
    show(entries)
    record = {
        "command": shlex.join(["python", "-m", "benchmarks.ladder", *sys.argv[1:]]),
        "dpmic_jax": dpmic_jax.__version__,
        "jax": jax.__version__,
        "backend": jax.default_backend(),
        "c": C,
        "master": MICr(B=4).master.__name__,
        "r_squared": R_SQUARED,
        "functions": list(FUNCTIONS),
        "repeats": repeats,
        "seed": SEED,
        "mic_star": known.stars[of].reshape(len(FUNCTIONS), len(R_SQUARED)).tolist(),
        "results": entries,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")
    print(f"\nwritten to {RESULTS.parent.name}/{RESULTS.name}")


if __name__ == "__main__":
    main()
