"""Peak memory of whole processes."""

import subprocess
import sys

import pytest

from benchmarks import sources

PROGRAM = """
import resource, sys
import numpy as np
import dpmic_jax as dm
from dpmic_jax.mic.grids import ladder

n, columns = map(int, sys.argv[1:])
table = np.random.default_rng(0).random((n, columns), np.float32)
statistic = dm.MICr(B=40, c=2, sizes=ladder(1.5))
dm.pairwise(table, statistic=statistic, bounds=[(0, 1)] * columns)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def peak_mb(n, columns):
    command = [sys.executable, "-c", PROGRAM, str(n), str(columns)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_pairs():
    few, many = peak_mb(500, 40), peak_mb(500, 240)  # 820 pairs, 28 920 pairs
    assert many - few < 100


@pytest.mark.slow
def test_memory_grows_with_records_as_the_data_do():
    few, many = peak_mb(10**6, 4), peak_mb(10**7, 4)
    data = 4 * 9 * 10**6 * 4 / 2**20  # what is added, as float32
    # The columns, their two codes, and a pair's cells under way in each of a few threads.
    assert many - few < 4 * data


@pytest.mark.slow
def test_ten_million_records_of_files_and_databases_are_screened_in_2_gb(tmp_path):
    screens = {
        name: sources.measured(*where) for name, *where in sources.written(tmp_path, 10**7, None)
    }
    assert max(one["memory"] for one in screens.values()) < 2e9
    assert len({one["digest"] for one in screens.values()}) == 1
