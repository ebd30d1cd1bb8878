"""`dpmic plan`: forwards, backwards, a curve and a comparison, all without a table."""

import json
import re
import subprocess
import sys

import pytest
from commands import BOUNDS, NAMES, bounds_file, dpmic

from dpmic_jax.results.power_curve import round_epsilons
from dpmic_jax.screening import (
    Above,
    Against,
    AllPairs,
    TopK,
    fewest_records,
    largest_k,
    preview,
    smallest_epsilon,
)

FIND = 0.3


def planned(*words, columns=8):
    done = dpmic("plan", *(("--columns", columns) if columns else ()), *words)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    return done.stdout


def answer(*words, **settings):
    return json.loads(planned(*words, "--json", **settings))


@pytest.mark.parametrize(
    ("ask", "query"),
    [("all", AllPairs()), ("top:3", TopK(3)), ("above:0.2:3", Above(0.2, 3))],
)
def test_it_prints_what_preview_says(ask, query):
    words = ("--epsilon", 0.5, "-n", 3000, "--delta", 1e-6, "--ask", ask)
    expected = preview(columns=8, n=3000, epsilon=0.5, delta=1e-6, ask=query)
    assert planned(*words) == f"{expected}\n"
    assert answer(*words) == dict(expected.lines())


def test_options_reach_the_plan(tmp_path):
    bounds = bounds_file(tmp_path)
    words = ("--bounds", bounds, "--epsilon", 2, "-n", 500, "--ask", "against:dose")
    shared = {"columns": NAMES, "n": 500, "epsilon": 2.0, "ask": Against("dose")}
    plain = preview(**shared)
    text, advice = planned(*words, columns=None).rstrip("\n").rsplit("\n", 1)
    assert text == str(plain)
    assert re.fullmatch('skewed columns +scale = "log" is free for the 3 on linear .*', advice)
    for more, settings in (
        (("--relative", "site,age"), {"relative": ("site", "age")}),
        (("--records-per-person", 2), {"records_per_person": 2}),
    ):
        found = planned(*words, *more, columns=None)
        assert found.startswith(f"{preview(**shared, **settings)}\nskewed columns ")
        assert not found.startswith(str(plain))


@pytest.mark.parametrize(
    ("words", "name", "said", "value"),
    [
        (
            ("-n", 2000),
            "epsilon",
            "Smallest epsilon that finds a MIC of 0.3:",
            lambda: smallest_epsilon(FIND, columns=8, n=2000, ask=AllPairs()),
        ),
        (
            ("--epsilon", 0.2, "--delta", 1e-6, "--ask", "against:column 0"),
            "records",
            "Fewest records that find a MIC of 0.3:",
            lambda: fewest_records(
                FIND, columns=8, epsilon=0.2, delta=1e-6, ask=Against("column 0")
            ),
        ),
        (
            ("--epsilon", 0.4, "-n", 2000, "--ask", "top", "--records-per-person", 2),
            "ask",
            "Largest k that finds a MIC of 0.3:",
            lambda: largest_k(FIND, columns=8, n=2000, epsilon=0.4, records_per_person=2),
        ),
    ],
)
def test_find_solves_for_what_is_left_out_and_plans_with_it(words, name, said, value):
    solution = value()
    text = planned(*words, "--find", FIND)
    assert text.splitlines()[:2] == [f"{said} {solution}", ""]
    option = f"top:{solution}" if name == "ask" else solution
    given = [*words, f"--{name}", option]
    if name == "ask":
        given = [*words[:4], *words[6:], "--ask", option]
    # Below it is the plan with the answer, as if it had been given.
    assert text.split("\n\n", 1)[1] == planned(*given)
    content = answer(*words, "--find", FIND)
    assert content.pop("find") == FIND
    assert content.pop("solution") == {name: option}
    assert content == answer(*given)


def test_the_curve_follows_the_plan():
    words = ("--epsilon", 0.05, "-n", 2000, "--ask", "top:3")
    expected = preview(columns=8, n=2000, epsilon=0.05, ask=TopK(3))
    assert planned(*words, "--curve") == f"{expected}\n\n{expected.curve().text()}\n"
    content = answer(*words, "--curve")
    points = content.pop("curve")
    assert content == answer(*words)
    assert [point["epsilon"] for point in points] == round_epsilons(0.05)
    # JSON has no infinity: what is lost is null.
    assert points[0]["mic"] is None
    assert 0 < points[-1]["mic"] < 1
    assert content["smallest MIC found, 95 %"].startswith(("none", "0."))


def test_what_is_found_and_its_curve_fit_together():
    content = answer("-n", 2000, "--find", FIND, "--curve")
    (own,) = [
        point for point in content["curve"] if point["epsilon"] == content["solution"]["epsilon"]
    ]
    assert own["mic"] <= FIND
    assert content["smallest MIC found, 95 %"].startswith(f"{own['mic']:.3g}, typically")


def test_compare_has_the_usual_queries_and_the_one_that_is_asked():
    words = ("--epsilon", 0.2, "-n", 2000, "--delta", 1e-6, "--compare")
    asked = [each["asked"] for each in answer(*words)["compare"]]
    usual = (AllPairs(), Against("column 0"), TopK(5), TopK(20), Above(0.3, 10))
    assert asked == [str(ask) for ask in usual]
    found = answer(*words, "--ask", "top:2")["compare"]
    assert [each["asked"] for each in found] == [str(TopK(2)), *asked]
    for ask, each in zip((TopK(2), *usual), found, strict=True):
        alone = preview(columns=8, n=2000, epsilon=0.2, delta=1e-6, ask=ask)
        assert each["smallest_distance"] == alone.smallest_distance
    lines = planned(*words, "--ask", "top:2").splitlines()
    assert len(lines) == 1 + len(found)
    assert all(line.startswith(each["asked"]) for line, each in zip(lines[1:], found, strict=True))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-n", 2000), "Missing option '--epsilon', or '--find'"),
        (("--epsilon", 1), "Missing option '--records', or '--find'"),
        (("-n", 2000, "--epsilon", 1, "--ask", "top"), "--ask top needs a k, such as top:20, or"),
        (("-n", 2000, "--epsilon", 1, "--find", 0.2), "leave out --epsilon, or --records, or"),
        (("--find", 0.2), "leave out --epsilon, or --records, or the k of --ask top"),
        (("-n", 2000, "--ask", "top", "--find", 0.2), "--find solves for one of three"),
        (("-n", 2000, "--find", 1), "Invalid value for '--find': 1.0 is not in the range"),
        (("-n", 2000, "--find", "much"), "Invalid value for '--find'"),
        (("-n", 3, "--epsilon", 1), "Invalid value for '--records'"),
        (("-n", 2000, "--find", 0.2, "--compare"), "--compare excludes --find and --curve"),
        (("-n", 2000, "--epsilon", 1, "--curve", "--compare"), "--compare excludes --find and"),
    ],
)
def test_misused_options_are_named(words, said):
    done = dpmic("plan", "--columns", 8, *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-n", 2000, "--epsilon", 1), "expected either --bounds, a bounds file, or --columns"),
        (("--columns", 8, "-n", 2000, "--find", "nan"), "expected 0 < find < 1"),
        (("--columns", 8, "-n", 2000, "--epsilon", 0), "epsilon"),
        (("--columns", 8, "-n", 2000, "--epsilon", 1, "--ask", "best:3"), "expected --ask as all"),
        (("--columns", 8, "-n", 2000, "--epsilon", 1, "--ask", "top:28"), "expected k below 28"),
        (("--columns", 8, "-n", 40, "--find", 0.2), "use more records or fewer pairs"),
        (
            ("--columns", 8, "-n", 2000, "--epsilon", 1, "--relative", "age"),
            "relative names an unknown column 'age'",
        ),
    ],
)
def test_infeasible_plans_are_refused_in_one_line(words, said):
    done = dpmic("plan", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    "words",
    [("--epsilon", 1, "-n", 200, "--curve"), ("-n", 200, "--ask", "top:2", "--find", 0.9)],
)
def test_no_table_is_read_and_no_reader_of_tables_imported(words, tmp_path):
    """So that planning stays quick, and costs no privacy: there is no table here at all."""
    bounds = bounds_file(tmp_path, BOUNDS.replace("dose", "nowhere"))
    command = [sys.executable, "-X", "importtime", "-m", "dpmic_jax", "plan", "--bounds", bounds]
    done = subprocess.run([*command, *map(str, words)], capture_output=True, text=True, check=True)
    imported = {line.rsplit("|")[-1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "dpmic_jax.screening.preview" in imported
    assert not imported & {"pandas", "pyarrow", "polars", "dask", "matplotlib", "scipy.stats"}
    assert [path.name for path in tmp_path.iterdir()] == ["bounds.toml"]
