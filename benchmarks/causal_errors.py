"""Error rates of Priv-PC's single answers, beside the corrected bounds of docs/sieve.md.

`python -m benchmarks.causal_errors` writes `benchmarks/results/causal_errors.json` and prints the
table of docs/causal_algorithms.md: Kendall's tau of two dependent columns, n = 2000, e_s = e_e = 1.
"""

import json
from math import sqrt
from pathlib import Path

from tests.causal.test_private_errors import N, missed, wrongly_removed

RESULTS = Path(__file__).parent / "results" / "causal_errors.json"
ROUNDS = 10_000


def main() -> None:
    rows = []
    for name, kind in (("Type I", missed), ("Type II", wrongly_removed)):
        cells = []
        for subsample in (N, N // 2):
            wrong, bound = kind(subsample, ROUNDS)
            share = wrong / ROUNDS
            rows.append({"error": name, "subsample": subsample, "share": share, "bound": bound})
            cells.append(f"{share:.4f} +- {sqrt(share * (1 - share) / ROUNDS):.4f} | {bound:.4f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    content = {"command": "python -m benchmarks.causal_errors", "rounds": ROUNDS, "rows": rows}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
