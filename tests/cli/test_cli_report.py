"""`dpmic report`: one page from a run's folder; histograms are checked, charged, then computed."""

import json
import math
import re

import numpy as np
import pytest
from commands import BOUNDS, MARKER, NAMES, QUICK, N, bounds_file, columns, dpmic, lines, table_file
from made_results import result_of, statement_of
from report_pages import Page

from dpmic_jax import LedgerFile
from dpmic_jax.results import SEEDED
from dpmic_jax.screening import Against, TopK, preview

SECRET = "SECRET-12345"
PAIR = ("--histogram", "dose,response")


def screened(**changes):
    """What a screen of the table would have given."""
    return result_of(NAMES, statement=statement_of(n=N, **changes))


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    screened().to_json(folder / "result.json")
    return folder


@pytest.fixture
def data(tmp_path):
    return "--data", table_file(tmp_path), "--bounds", bounds_file(tmp_path)


@pytest.fixture
def ledger(tmp_path):
    path, bounds = tmp_path / "ledger", bounds_file(tmp_path, name="of the ledger.toml")
    done = dpmic("ledger", "init", path, "--epsilon", 2, "--bounds", bounds, "--name", "trial")
    assert done.exit_code == 0, done.output
    return path


def test_the_report_of_a_run_is_written_beside_its_result(run):
    done = dpmic("report", run)
    assert done.exit_code == 0, done.output
    assert done.stdout.split() == [str(run / "report.html")]
    text = (run / "report.html").read_text("utf-8")
    assert text == screened().to_html()
    again = dpmic("report", run / "result.json")
    assert again.exit_code == 2
    assert "already exists; choose another --out" in again.stderr
    few = dpmic("report", run / "result.json", "--top", 2, "--out", run / "few.html")
    assert few.exit_code == 0, few.output
    rows = Page((run / "few.html").read_text("utf-8")).rows
    assert [row[:3] for row in rows] == screened().ranked()[:2]


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (("--ask", "against:dose", "--relative", "site,age"), {"relative": ("site", "age")}),
        (("--ask", "top:3", "--delta", 0.1, "--records-per-person", 2), {"delta": 0.1}),
    ],
)
def test_the_page_has_the_curve_of_the_plan(words, settings, data, tmp_path):
    folder = tmp_path / "screened"
    given = (data[1], *data[2:], "--epsilon", 3, "--out", folder, *QUICK, *words)
    assert dpmic("screen", *given, "--force").exit_code == 0
    done = dpmic("report", folder, "--top", 1)
    assert done.exit_code == 0, done.output
    text = (folder / "report.html").read_text("utf-8")
    ask, records = (Against("dose"), 1) if "relative" in settings else (TopK(3), 2)
    planned = preview(
        columns=NAMES, n=N, epsilon=3.0, ask=ask, records_per_person=records, **settings
    ).curve()
    # All of them, although one pair is shown.
    assert planned.svg() in text
    page = Page(text)
    assert page.one("section", id="power")["text"].startswith("What such a screen finds")
    (caption,) = [p["text"] for p in page.all("p") if p["text"].startswith("What a screen of")]
    assert caption == planned.caption()
    assert len(page.all("path", **{"class": "own"})) == math.isfinite(planned.own.mic)


def test_names_in_the_curve_are_shown_as_text():
    planned = preview(columns=("<b>&", "$x"), n=1000, epsilon=1.0, ask=Against("<b>&"))
    page = Page(screened().to_html(curve=planned.curve()))
    assert not page.all("b")
    assert "'<b>&' against the rest" in page.one("section", id="power")["text"]


def test_histograms_share_one_charge_and_the_page_says_so(run, data, ledger):
    words = ("--histogram", "age,dose", *PAIR, *data, "--epsilon", 0.7, "--ledger", ledger)
    done = dpmic("report", run, *words)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    (event,) = LedgerFile.open(ledger).events
    assert (event.mechanism, event.count, event.n) == ("MICrHistogram", 2, N)
    assert event.guarantee.epsilon == 0.35
    assert event.epsilon == 0.7
    page = Page((run / "report.html").read_text("utf-8"))
    said = page.one("main")["text"]
    assert "2 histograms for epsilon = 0.7, delta = 0 together, 0.35 each" in said
    assert f"charged to ledger {LedgerFile.open(ledger).identity}#1" in said
    assert SEEDED not in page.one("body")["text"]
    titles = [title["text"] for title in page.all("h3")]
    assert titles == ["dose against age", "response against dose"]
    assert [row[:3] for row in page.rows] == screened().ranked()


def test_without_noise_a_histogram_is_that_of_the_records(run, data):
    """With 400 for two pairs no noise is left."""
    words = ("--histogram", "age,site", *PAIR, *data, "--epsilon", 400, "--seed", 1)
    done = dpmic("report", run, *words)
    assert done.exit_code == 0, done.output
    content = Page((run / "report.html").read_text("utf-8")).content
    sites, doses = content["histograms"]
    side = len(sites["x"]["labels"])
    table = columns()
    ages = np.clip(table["age"].astype(float), 0, 100)
    labels = ["missing", "north", "south"]
    expected = np.zeros((side, 3), int)
    for age, site in zip(ages, table["site"], strict=True):
        expected[min(int(age * side // 100), side - 1), labels.index(site)] += 1
    assert sites["counts"] == expected.tolist()
    assert sites["y"]["labels"] == labels
    expected = np.zeros((side, side), int)
    for dose, response in zip(table["dose"], table["response"], strict=True):
        expected[int(dose * side), min(int((response + 1) * side / 2), side - 1)] += 1
    assert doses["counts"] == expected.tolist()


def test_missing_values_with_their_own_bin_are_in_the_first_cell(run, data, tmp_path):
    dose = columns()["dose"].astype(object)
    dose[:30] = ""
    sites = columns()["site"].astype(object)
    sites[20:60] = ""
    table = table_file(tmp_path, lines(dose=dose, site=sites), "missing.csv")
    text = BOUNDS.replace("high = 1\n\n[columns.r", 'high = 1\nmissing = "bin"\n\n[columns.r')
    bounds = bounds_file(tmp_path, text + 'missing = "bin"\n', "missing.toml")
    words = ("--histogram", "dose,site", "--data", table, "--bounds", bounds, "--epsilon", 400)
    done = dpmic("report", run, *words)
    assert done.exit_code == 0, done.output
    (shown,) = Page((run / "report.html").read_text("utf-8")).content["histograms"]
    assert shown["x"]["labels"][0] == "missing"
    assert shown["y"]["labels"] == ["missing", "north", "south"]
    side = len(shown["x"]["labels"])
    expected = np.zeros((side, 3), int)
    for value, site in zip(dose, sites, strict=True):
        cell = 0 if value == "" else 1 + int(value * (side - 1))
        expected[cell, ["", "north", "south"].index(site)] += 1
    assert shown["counts"] == expected.tolist()


def test_missing_categories_have_a_cell_by_default(run, data, tmp_path):
    sites = columns()["site"].astype(object)
    sites[20:60] = "west"
    table = table_file(tmp_path, lines(site=sites), "undeclared.csv")
    bounds = bounds_file(tmp_path)
    words = ("--histogram", "dose,site", "--data", table, "--bounds", bounds, "--epsilon", 400)
    assert dpmic("report", run, *words).exit_code == 0
    (shown,) = Page((run / "report.html").read_text("utf-8")).content["histograms"]
    assert shown["y"]["labels"] == ["missing", "north", "south"]
    expected = [np.sum(sites == site) for site in ("west", "north", "south")]
    assert np.sum(shown["counts"], axis=0).tolist() == expected


def test_a_seed_gives_the_same_bytes_and_is_stamped(run, data, tmp_path):
    words = (*PAIR, *data, "--epsilon", 1)
    pages = []
    for place, seed in enumerate((5, 5, 6, None)):
        out = tmp_path / f"{place}.html"
        given = () if seed is None else ("--seed", seed)
        done = dpmic("report", run, *words, *given, "--out", out)
        assert done.exit_code == 0, done.output
        assert (SEEDED in done.stderr) is (seed is not None)
        pages.append(out.read_text("utf-8"))
        assert (Page(pages[-1]).all("title")[0]["text"].startswith(SEEDED)) is (seed is not None)
    assert pages[0] == pages[1]
    counts = [Page(page).content["histograms"][0]["counts"] for page in pages]
    assert counts[0] != counts[2]
    assert counts[3] not in counts[:3]


def test_one_seed_gives_two_pairs_different_noise(run, data, tmp_path):
    noise = []
    for pair in ("dose,response", "dose,dose2"):
        out = tmp_path / f"{pair}.html"
        rows = [[*row, row[2]] for row in lines()]
        rows[0][-1] = "dose2"
        bounds = bounds_file(tmp_path, BOUNDS + "[columns.dose2]\nlow = -1\nhigh = 1\n")
        table = table_file(tmp_path, rows)
        result = result_of((*NAMES, "dose2"), statement=statement_of(n=N))
        result.to_json(run / "result.json")
        words = ("--histogram", pair, "--data", table, "--bounds", bounds, "--epsilon", 1)
        done = dpmic("report", run, *words, "--seed", 3, "--out", out)
        assert done.exit_code == 0, done.output
        noise.append(Page(out.read_text("utf-8")).content["histograms"][0]["counts"])
    assert noise[0] != noise[1]


def test_over_budget_is_exit_3_with_nothing_charged_or_written(run, data, ledger):
    words = (*PAIR, *data, "--ledger", ledger)
    done = dpmic("report", run, *words, "--epsilon", 2.1)
    assert done.exit_code == 3
    assert "2 of 2 is left; nothing was charged." in done.stderr
    assert LedgerFile.open(ledger).events == ()
    assert not (run / "report.html").exists()


def test_the_charge_comes_before_anything_is_computed(run, data, ledger, monkeypatch):
    seen = []

    def counted(*_args):
        seen.append(len(LedgerFile.open(ledger).events))
        raise ValueError("no cells today")

    monkeypatch.setattr("dpmic_jax.mechanisms.histogram.cell_counts", counted)
    done = dpmic("report", run, *PAIR, *data, "--epsilon", 1, "--ledger", ledger)
    assert done.exit_code == 4
    assert "no cells today; repeat the command to resume from" in done.stderr
    assert seen == [1]
    assert not (run / "report.html").exists()


def test_charged_histograms_are_not_lost(run, data, ledger, tmp_path, monkeypatch):
    """Neither when the command ends after the charge, nor when the page is."""
    words = (*PAIR, *data, "--epsilon", 1, "--ledger", ledger)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("dpmic_jax.mechanisms.histogram.cell_counts", interrupted)
        done = dpmic("report", run, *words)
    assert done.exit_code == 4
    assert "resume from" in done.stderr
    assert "at no further charge" in done.stderr
    pages = []
    for name in ("one.html", "other.html"):
        done = dpmic("report", run, *words, "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
        pages.append((tmp_path / name).read_text("utf-8"))
    assert pages[0] == pages[1]
    assert len(LedgerFile.open(ledger).events) == 1
    assert f"{LedgerFile.open(ledger).identity}#1" in pages[1]
    other = dpmic("report", run, *PAIR, *data, "--epsilon", 0.5, "--ledger", ledger)
    assert other.exit_code == 0, other.output
    assert len(LedgerFile.open(ledger).events) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--epsilon", 1), "expected --histogram with --data"),
        (("--seed", 1), "expected --histogram with --data"),
        (("--histogram", "dose,response", "--epsilon", 1), "expected --data and --epsilon"),
        (("--histogram", "dose,response", "data"), "expected --data and --epsilon"),
        (("--histogram", "dose", "data", "--epsilon", 1), "two columns of the result, such as age"),
        (("--histogram", "dose,dose", "data", "--epsilon", 1), "two columns of the result"),
        (("--histogram", "dose,weight", "data", "--epsilon", 1), "two columns of the result"),
        ((*PAIR, "data", "--epsilon", 0), "expected 0 < epsilon < inf"),
        ((*PAIR, "data", "--epsilon", "nan"), "expected 0 < epsilon < inf"),
        ((*PAIR, "data", "--epsilon", 1e-300), ""),
        ((*PAIR, "data", "--epsilon", 1, "--out", "no/page.html"), "no folder no;"),
        ((*PAIR, "--data", "no.csv", "--epsilon", 1), "expected --bounds"),
        ((*PAIR, "--data", "no.csv", "--bounds", "no.toml", "--epsilon", 1), "no bounds file"),
        ((*PAIR, "data", "--epsilon", 1, "--seed", -1), "--seed"),
    ],
)
def test_words_that_do_not_fit(words, said, run, data, ledger):
    given = [part for word in words for part in (data if word == "data" else (word,))]
    refused(run, ledger, given, said)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param(lines()[:-1], f"of {N} records, got {N - 1}", id="another table"),
        pytest.param([*lines(), [SECRET] * 4], f"of {N} records, got {N + 1}", id="a record more"),
        pytest.param([*lines(), [SECRET]], "a line without the 4 values", id="ragged"),
        pytest.param([["age", "dose", "x", "site"], *lines()[1:]], "'response' that", id="names"),
    ],
)
def test_a_table_that_does_not_match_its_bounds_is_refused(rows, said, run, ledger, tmp_path):
    table, bounds = table_file(tmp_path, rows, "other.csv"), bounds_file(tmp_path)
    words = (*PAIR, "--data", table, "--bounds", bounds, "--epsilon", 1)
    refused(run, ledger, words, said)


def test_a_ledger_of_another_table_is_refused(run, ledger, tmp_path):
    rest, head, _ = BOUNDS.partition("[columns.site]\n")
    bounds = bounds_file(tmp_path, f"{rest}{head}ignore = true\n")
    words = (*PAIR, "--data", table_file(tmp_path), "--bounds", bounds, "--epsilon", 1)
    refused(run, ledger, words, "belongs to another data set")
    ignored = ("--histogram", "age,site", *words[2:])
    done = dpmic("report", run, *ignored)
    assert done.exit_code == 2
    assert "the table has no column 'site' with bounds" in done.stderr


def test_missing_or_changed_results_are_refused(run, tmp_path):
    for place, said in [
        (tmp_path / "no", "no result at"),
        (tmp_path, "when it finishes"),
        (bounds_file(tmp_path), "expected the JSON of a ScreenResult"),
    ]:
        done = dpmic("report", place)
        assert done.exit_code == 2, done.output
        assert said in done.stderr
    content = json.loads((run / "result.json").read_text())
    content["pairs"][0]["dependent"] = not content["pairs"][0]["dependent"]
    (run / "result.json").write_text(json.dumps(content))
    done = dpmic("report", run)
    assert done.exit_code == 2
    assert "was changed" in done.stderr
    assert not list(tmp_path.rglob("*.html"))


def test_names_with_commas_are_found(run, tmp_path):
    names = ("a,b", "c", "a", "b,c")
    result_of(names, statement=statement_of(n=N)).to_json(run / "result.json")
    # "a,b,c" may be (a,b | c) or (a | b,c); "b,c,a" is one pair only.
    done = dpmic("report", run, "--histogram", "a,b,c", "--data", "demo", "--epsilon", 1)
    assert done.exit_code == 2
    assert "two columns of the result" in done.stderr
    done = dpmic("report", run, "--histogram", "b,c,a", "--data", "demo", "--epsilon", 1)
    assert done.exit_code == 2
    assert "has no column 'b,c'" in done.stderr


def refused(run, ledger, words, said):
    """Exit 2 and one clear line: nothing charged, nothing written, no value shown."""
    before = ledger.read_bytes()
    done = dpmic("report", run, *words, "--ledger", ledger)
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    assert said in done.stderr
    assert not re.search(f"{SECRET}|{MARKER}|Traceback", done.output)
    assert ledger.read_bytes() == before
    assert LedgerFile.open(ledger).events == ()
    assert sorted(entry.name for entry in run.iterdir()) == ["result.json"]
