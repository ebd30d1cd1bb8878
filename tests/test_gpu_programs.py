"""Compiled for an A100 and an H100 that are not there: few launches, and no registers spilled.

Takes `jax` and `jax-cuda13-plugin` of one version (`.ci/run` makes such an environment).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_shapes import shapes

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[1]


def as_for_users():
    """The environment of a process that compiles as for users."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}


def on_paper(folder, *arguments):
    """What the benchmark finds."""
    out = folder / "found.json"
    command = [sys.executable, "-m", "benchmarks.gpu", *arguments, "--out", str(out)]
    subprocess.run(command, check=True, cwd=ROOT, env=as_for_users())
    rows = json.loads(out.read_text())["paper"]
    return {(row["task"], row["part"]): row for row in rows}


def launches_a_pair(row):
    assert row["cost"]["unknown"] == 0
    return row["cost"]["launches"] / row["pairs"]


SCREENS = "screen, 66 pairs", "screen, 4096 pairs"


def test_a_screen_takes_few_launches_and_no_register_is_spilled(tmp_path):
    tasks = [word for task in SCREENS for word in ("--task", task)]
    found = on_paper(tmp_path, "--device", "a100", *tasks)
    for part in ("MIC", "distance"):
        assert launches_a_pair(found[SCREENS[0], part]) <= 7.5
        assert launches_a_pair(found[SCREENS[1], part]) <= 1.5
    assert launches_a_pair(found[SCREENS[1], "streaming"]) <= 1.5
    for row in found.values():
        assert row["kernel_spills"] == 0
    seconds = found[SCREENS[1], "MIC"]["cost"]["seconds"]
    assert found[SCREENS[1], "MIC"]["pairs"] / seconds >= 300_000


def test_xla_alone_takes_few_launches_too(tmp_path):
    found = on_paper(tmp_path, "--device", "a100", "--xla", "--task", SCREENS[0])
    for part in ("MIC", "distance"):
        assert launches_a_pair(found[SCREENS[0], part]) <= 15


@pytest.mark.slow
@pytest.mark.parametrize("device", ["a100", "h100"])
def test_no_shape_of_default_settings_spills_registers(device):
    """Of the kernel for OptimizeAxis, with float and with integer gains."""
    command = [sys.executable, str(ROOT / "tests" / "gpu_shapes.py"), device]
    paths = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, check=True, env=as_for_users() | paths, stdout=subprocess.PIPE)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 2 * len(shapes())
    assert [each for each in found if each[-1]] == []


@pytest.mark.slow
@pytest.mark.parametrize("device", ["a100", "h100"])
def test_mice_takes_few_launches(device, tmp_path):
    found = on_paper(tmp_path, "--device", device, "--task", "synthetic MICe")
    row = found["synthetic MICe", "MIC"]
    assert launches_a_pair(row) <= 2
    assert row["kernel_spills"] == 0
    assert row["pairs"] / row["cost"]["seconds"] >= 100_000
