"""Where the data of the paper are, which are no part of the repository."""

import os
from pathlib import Path

import pytest

import dpmic_jax

REAL = Path(os.environ.get("DPMIC_DATA", Path(dpmic_jax.__file__).parents[2] / "shared" / "data"))
with_real_data = pytest.mark.skipif(
    not all((REAL / name).is_file() for name in ("Spellman.csv", "baseball.csv")),
    reason="the data of the paper are no part of the repository: set DPMIC_DATA to their folder",
)
