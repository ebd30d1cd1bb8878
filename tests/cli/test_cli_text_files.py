"""Tables in other dialects, by options of every command that reads one, or by the bounds file."""

from dataclasses import replace

import pandas as pd
import pytest
from commands import NAMES, QUICK, bounds_file, dpmic, lines, table_file

from dpmic_jax import MICr, seeded_key
from dpmic_jax.cli.options import parse_ask
from dpmic_jax.data.schema import TextFormat, read_schema
from dpmic_jax.mic.grids import ladder
from dpmic_jax.results import ScreenResult
from dpmic_jax.screening import AllPairs, screen
from dpmic_jax.screening.queries import canonical

GERMAN = ("--delimiter", ";", "--decimal", ",", "--encoding", "cp1252", "--missing", "?")


@pytest.fixture
def files(tmp_path):
    """The same table in two dialects, and its bounds."""
    rows = [[cell.replace(".", ",") for cell in row] for row in lines()]
    text = "\n".join(";".join(row) for row in [*rows, ["?", "0,5", "?", "nörth"]])
    (tmp_path / "other.csv").write_text(text + "\n", encoding="cp1252")
    usual = table_file(tmp_path, [*lines(), ["", "0.5", "", "nörth"]])
    return usual, tmp_path / "other.csv", bounds_file(tmp_path)


def test_a_screen_of_another_dialect_is_that_of_the_same_table_in_memory(files):
    usual, other, bounds = files
    words = ("--bounds", bounds, "--epsilon", 20, *QUICK, "--seed", 1, "--json")
    done = dpmic("screen", other, *words, *GERMAN)
    assert done.exit_code == 0, done.output
    text = TextFormat(delimiter=";", decimal=",", encoding="cp1252", missing=("?",))
    here = screen(
        pd.read_csv(usual, dtype=object),
        bounds=replace(read_schema(bounds), text=text),
        epsilon=20.0,
        ask=AllPairs(),
        key=seeded_key(1),
        statistic=MICr(B=12, c=2, sizes=ladder(1.25)),
    )
    assert ScreenResult.from_json(done.stdout) == here


def test_the_owner_counts_the_same_cells(files):
    usual, other, bounds = files
    one, two = (
        dpmic("data", "check", usual, "--bounds", bounds),
        dpmic("data", "check", other, "--bounds", bounds, *GERMAN),
    )
    assert one.exit_code == two.exit_code == 0, two.output
    assert one.stdout == two.stdout
    assert "201 records" in two.stdout


def test_a_template_and_a_search_take_the_same_options(files):
    _, other, bounds = files
    done = dpmic("bounds", "template", other, *GERMAN[:2])
    assert done.exit_code == 0, done.output
    assert all(f"{name}" in done.stdout for name in NAMES)
    words = (other, "--bounds", bounds, "--epsilon", 5000, "--seed", 1, "--share", 1)
    assert dpmic("causal", *words, *GERMAN, "--json").exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("screen", "--epsilon", 1),
        ("causal", "--epsilon", 1),
        ("independence", "--epsilon", 1, "--pairs", "age,dose"),
        ("data", "check"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_says_how_to_read_another_dialect(command, files):
    _, other, bounds = files
    done = dpmic(*command[:-1], command[-1], other, "--bounds", bounds)
    assert done.exit_code != 0
    assert "has semicolons between the names" in done.stderr
    assert "--delimiter ';'" in done.stderr


def test_a_setting_that_no_file_can_have_is_one_line(files):
    _, other, bounds = files
    for words, match in ((("--delimiter", ";;"), "one character"), (("--encoding", "x"), "cp1252")):
        done = dpmic("data", "check", other, "--bounds", bounds, *words)
        assert done.exit_code == 2
        assert match in done.stderr
        assert done.stderr.count("\n") == 1


ASKS = {
    "top:2:against:site": "TopK(k=2, share=None, among=Against(column='site'))",
    "top:2:between:age,dose/site": "TopK(k=2, share=None, among=Between(",
    "above:0.3:1:against:a:b": "Above(threshold=0.3, at_most=1, share=None, among=Against(",
    "above:0.3:1": "Above(threshold=0.3, at_most=1, share=None, among=AllPairs())",
}


@pytest.mark.parametrize("ask", ASKS)
def test_pairs_to_select_from_are_a_part_of_the_query(ask):
    assert canonical(parse_ask(ask)).startswith(ASKS[ask])


@pytest.mark.parametrize("ask", ["top:2:age", "top:2:against:", "above:0.3:1:top:2", "all:age"])
def test_other_pairs_are_no_query(ask, files):
    usual, _, bounds = files
    done = dpmic("screen", usual, "--bounds", bounds, "--epsilon", 1, "--ask", ask)
    assert done.exit_code == 2
    assert "top:20:against:age" in done.stderr
