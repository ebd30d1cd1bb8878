"""Size and import time of an installation: the wheel alone, and with each extra.

`python -m benchmarks.release` builds the wheel, installs it into a new environment for each extra
and into one without extras, runs the README's first command there, and writes
`benchmarks/results/release.json`. Import times are of new processes that take turns, in the
environment without extras. Sizes are of everything that pip installs, without pip itself.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "release.json"
# An import or command that needs the extra.
USES = {
    "": "from dpmic_jax import pairwise, screen",
    "files": "import dpmic_jax.data.source.files",
    "plot": "import dpmic_jax.results.plots, matplotlib",
    "sklearn": "import dpmic_jax.sklearn",
    "dask": "import distributed, dpmic_jax.screening.distributed",
    "accounting": "import dp_accounting, dpmic_jax.dp.accounting.composition",
    "causal": "import networkx, dpmic_jax.causal",
    "notebooks": "import nbclient, matplotlib, dpmic_jax",
}
NOT_FOR_USERS = {"test", "lint", "docs", "browser", "peers"}


def run(*words: Any) -> str:
    done = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)
    return done.stdout


def built(folder: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment(folder: Path, wheel: Path, extra: str) -> Path:
    """Create a virtual environment with the wheel, and return its Python."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[{extra}]" if extra else wheel)
    return python


def megabytes(python: Path) -> float:
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    mine = (p for p in packages.rglob("*") if p.is_file())
    others = (p for p in mine if p.relative_to(packages).parts[0] not in ("pip", "setuptools"))
    return sum(path.stat().st_size for path in others) / 2**20


def import_seconds(python: Path, rounds: int) -> dict[str, float]:
    """The median, and the quartiles of what we add."""
    seconds: dict[str, list[float]] = {
        "import jax": [],
        "import jax; from dpmic_jax import pairwise": [],
    }
    for _ in range(rounds + 1):
        for program, kept in seconds.items():
            began = time.perf_counter()
            run(python, "-c", program)
            kept.append(time.perf_counter() - began)
    alone, both = (
        np.array(kept[1:]) for kept in seconds.values()
    )  # the first round warms the disk cache
    low, middle, high = np.quantile(both - alone, (0.25, 0.5, 0.75))
    return {
        "jax": float(np.median(alone)),
        "added": float(middle),
        "added_low": float(low),
        "added_high": float(high),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras["optional-dependencies"]) - NOT_FOR_USERS == set(USES) - {""}
    found: dict[str, Any] = {
        "command": f"python -m benchmarks.release --rounds {options.rounds}",
        "python": platform.python_version(),
        "installed_mb": {},
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = built(folder)
        found["wheel_kb"] = wheel.stat().st_size / 2**10
        for extra, use in USES.items():
            python = environment(folder / f"with-{extra}", wheel, extra)
            run(python, "-c", use)
            found["installed_mb"][extra or "core"] = megabytes(python)
            print(
                f"{extra or 'core':12} {found['installed_mb'][extra or 'core']:6.0f} MB", flush=True
            )
            if not extra:
                found["version"] = run(python, "-m", "dpmic_jax", "--version").strip()
                shown = run(python.parent / "dpmic", "screen", "demo", "--epsilon", "1")
                assert "epsilon = 1" in shown
                found["import_seconds"] = import_seconds(python, options.rounds)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    seconds = found["import_seconds"]
    print(
        f"wheel {found['wheel_kb']:.0f} kB; import jax {seconds['jax']:.2f} s, dpmic_jax adds "
        f"{seconds['added']:.2f} s ({seconds['added_low']:.2f} to {seconds['added_high']:.2f})"
    )


if __name__ == "__main__":
    main()
