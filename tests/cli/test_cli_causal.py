"""`dpmic causal`: a table in, a graph and what it cost out."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from commands import bounds_file, dpmic, table_file

from dpmic_jax import LedgerFile
from dpmic_jax.causal.reading import read_coded
from dpmic_jax.cli.causal import causal

CHOICES = ("--threshold", 1, "--max-order", 1, "--seed", 3)


def run(*words):
    return CliRunner().invoke(causal, [str(word) for word in words])


@pytest.fixture
def places(tmp_path):
    return table_file(tmp_path), bounds_file(tmp_path)


def test_a_graph_is_found_drawn_and_charged(places, tmp_path):
    """Response is sin(5 dose): in two parts of dose, high in one and low in the other."""
    table, bounds = places
    ledger, picture = tmp_path / "ledger", tmp_path / "graph.png"
    made = dpmic("ledger", "init", ledger, "--epsilon", 9000, "--bounds", bounds, "--name", "t")
    assert made.exit_code == 0, made.output
    words = (table, "--bounds", bounds, "--epsilon", 5000, "--ledger", ledger, *CHOICES)
    done = run(*words, "--picture", picture, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["columns"] == ["age", "dose", "response", "site"]
    assert found["lines"] == [["dose", "response"]]
    assert found["arrows"] == []
    assert found["finished"]
    assert found["privacy"]["epsilon"] == 5000
    assert found["privacy"]["key"].startswith("seeded")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [event.mechanism for event in LedgerFile.open(ledger).events] == ["SVT-PC"]
    again = run(*words)
    assert again.exit_code == 3
    assert "left" in again.stderr


@pytest.mark.parametrize("search", ["em-pc", "priv-pc"])
def test_the_other_searches_find_the_same_graph(places, search):
    table, bounds = places
    words = ("--epsilon", 5000, "--search", search, "--share", 1)
    done = run(table, "--bounds", bounds, *words, *CHOICES)
    assert done.exit_code == 0, done.output
    first, *_, last = done.stdout.splitlines()
    assert first == "dose -- response"
    assert "seeded: not for release" in last
    assert "epsilon = 5000" in last


def test_columns_become_codes_by_public_bounds_alone(places):
    table, bounds = places
    names, data, _ = read_coded(str(table), bounds=str(bounds), bins=4)
    assert names == ("age", "dose", "response", "site")
    assert data.categories == (4, 4, 4, 2)
    rng = np.random.default_rng(7)  # as the table was made
    dose = rng.random(200)
    np.testing.assert_array_equal(data.codes[1], np.floor(4 * dose))
    assert data.codes[0, 0] == 3  # beyond the bounds
    with pytest.raises(ValueError, match="bins"):
        read_coded(str(table), bounds=str(bounds), bins=1)


def test_bad_input_is_one_line(places):
    table, bounds = places
    done = run(table, "--bounds", bounds, "--epsilon", -1)
    assert done.exit_code == 2
    assert "epsilon" in done.stderr
