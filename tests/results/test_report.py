"""The report page: what was released and nothing else, and nothing in it can run or load."""

import base64
import dataclasses
import hashlib
import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import NAMES, estimated_of, result_of, statement_of
from report_pages import HOSTILE, SMALL, Page, one_histogram

from dpmic_jax import MICrHistogram, MICrLap, secret_key, seeded_key
from dpmic_jax.data.limits import CategoryLimits
from dpmic_jax.mic.binning import by_range
from dpmic_jax.results import SEEDED
from dpmic_jax.results.axes import CategoryAxis, NumberAxis, SpareAxis
from dpmic_jax.results.histograms import Histograms
from dpmic_jax.results.svg import colours


def levels_of(text, side):
    """The picture's colours, from the first group of paths on."""
    cells = np.full((side, side), -1)
    (group,) = re.findall(r'<g class="cells"[^>]*>(.*?)</g>', text.split("<figcaption>")[0])
    for level, path in re.findall(r'<path class="l(\d+)" d="([^"]*)"/>', group):
        for x, y, run in re.findall(r"M(\d+) (\d+)h(\d+)", path):
            assert np.all(cells[int(y), int(x) : int(x) + int(run)] == -1)
            cells[int(y), int(x) : int(x) + int(run)] = level
    return cells


def of_400(**changes):
    return result_of(statement=statement_of(n=400), **changes)


def test_the_table_holds_exactly_the_released_values():
    distance = np.random.default_rng(1).uniform(0, 0.15, 66)
    found = result_of(tuple(f"x{i}" for i in range(12)), distance=distance)
    rows = Page(found.to_html()).rows
    assert [row[:3] for row in rows] == found.ranked()
    for column, name in enumerate(("lower", "upper", "distance"), start=3):
        assert [row[column] for row in rows] == getattr(found, name).tolist()
    stars = [row[6] for row in rows]
    assert stars == [row[5] > 0.075 for row in rows]
    assert any(stars) > all(stars)
    assert stars == sorted(stars, reverse=True)


def test_the_page_says_what_decides_and_what_the_limits_cover():
    for found, covers, origin in (
        (result_of(), "noise only", "Noise on MIC: sd 0.02."),
        (estimated_of(), "the error of the estimate", "MIC is estimated from the distance."),
    ):
        page = Page(found.to_html())
        note = page.one("p", **{"class": "note"})["text"]
        assert "distance from independence is above 0.075" in note
        assert covers in note
        assert origin in page.one("header")["text"]
    assert "noise only" not in page.one("body")["text"]


@pytest.mark.parametrize("pairs", [45, 7, 1])
def test_the_heat_map_is_the_matrix_in_twenty_colours(pairs):
    found = result_of(tuple(f"x{i}" for i in range(10))).top(pairs)
    text = found.to_html()
    there = sorted({i for pair in found.pairs.tolist() for i in pair})
    expected = np.full((len(there), len(there)), -1)
    for (i, j), mic in zip(found.pairs.tolist(), found.mic.tolist(), strict=True):
        cell = there.index(i), there.index(j)
        expected[cell] = expected[cell[::-1]] = min(19, math.floor(20 * mic))
    np.testing.assert_array_equal(levels_of(text, len(there)), expected)
    assert Page(text).content["names"] == [found.names[i] for i in there]
    assert ("are left out" in text) is (len(there) < 10)


def test_clusters_are_the_same_map_in_another_order_and_the_network_has_the_dependent_pairs():
    found = result_of(tuple(f"x{i}" for i in range(10)))
    page = Page(found.to_html())
    assert [tab["text"] for tab in page.all("button", role="tab")] == [
        *("Heat map", "Clusters", "Network")
    ]
    heat, clusters = (
        [int(place) for place in figure["data-order"].split()]
        for figure in page.all("figure", **{"class": "map"})
    )
    assert heat == list(range(10)) == sorted(clusters) != clusters
    text = found.to_html().split('id="panel1"')[1].split("</figcaption>")[0]
    expected = np.minimum(19, np.floor(20 * found.matrix[np.ix_(clusters, clusters)])).astype(int)
    np.fill_diagonal(expected, -1)
    np.testing.assert_array_equal(levels_of(text, 10), expected)
    lines = {element["text"] for element in page.all("title")[1:]}
    strong = found.ranked()[: found.dependent.sum()]
    assert lines == {f"{x}, {y}: {mic:.3f}" for x, y, mic in strong}
    few = Page(found.top(5).to_html())  # not every pair of its columns
    assert [tab["text"] for tab in few.all("button", role="tab")] == ["Heat map", "Network"]
    none = Page(dataclasses.replace(found, dependence_threshold=0.9).to_html())
    assert [tab["text"] for tab in none.all("button", role="tab")] == ["Heat map", "Clusters"]


def test_small_maps_show_their_numbers_and_large_ones_do_not():
    for columns, numbers in [(15, 2 * 15 * 14), (16, 0)]:  # with the map of clusters
        page = Page(result_of(tuple(f"x{i}" for i in range(columns))).to_html())
        classes = [element.get("class") for element in page.all("text")]
        assert classes.count("strong") + classes.count("weak") == numbers


def test_colours_grow_darker_with_the_value():
    """So they are told apart in grey, and in every kind of colour vision."""
    shades = [[int(shade[k : k + 2], 16) / 255 for k in (1, 3, 5)] for shade in colours()]
    grey = [0.2126 * r**2.2 + 0.7152 * g**2.2 + 0.0722 * b**2.2 for r, g, b in shades]
    assert len(grey) == 20
    assert all(pale > dark for pale, dark in itertools.pairwise(grey))


def test_names_are_text_and_nothing_else():
    found = result_of(HOSTILE)
    text = found.to_html()
    page = Page(text)
    assert {name for row in page.rows for name in row[:2]} == set(HOSTILE)
    assert page.content["names"] == list(HOSTILE)
    assert len(page.all("script")) == 2
    assert len(page.all("style")) == 1
    assert not {element["tag"] for element in page.elements} & {"img", "b", "i", "iframe", "a"}
    assert not [name for element in page.elements for name in element if name.startswith("on")]


@given(names=st.lists(st.text(), min_size=2, max_size=5, unique=True), secret=st.booleans())
def test_any_names_make_a_page_that_parses(names, secret):
    text = result_of(tuple(names), key_is_secret=secret).to_html()
    assert len(Page(text.encode().decode()).rows) == len(names) * (len(names) - 1) // 2


def test_nothing_on_the_page_can_load_or_send():
    pair, *_ = one_histogram()
    text = of_400().to_html(histograms=[pair])
    assert not re.search(r"https?:|//[a-z]|src=|@import|url\(|fetch|XMLHttp|WebSocket", text)
    page = Page(text)
    policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"})["content"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    run = [script for script in page.all("script") if "type" not in script]
    for kind, inline in (("script-src", run), ("style-src", page.all("style"))):
        (content,) = [element["text"] for element in inline]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"
    assert not [element for element in page.elements if "style" in element or "href" in element]


def test_the_page_contains_the_privacy_statement():
    found = result_of()
    page = Page(found.to_html())
    assert page.one("p", **{"class": "statement"})["text"] == found.statement.text()
    promise = page.one("p", **{"class": "promise"})["text"]
    assert "epsilon = 1.25, delta = 3e-07 for all values together" in promise
    assert "10 of 10 pairs of 5 columns" in page.one("header")["text"]


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 1.25, 9.99])
def test_the_likelihood_ratio_on_the_page_is_rounded_up(epsilon):
    text = result_of(statement=statement_of(epsilon=epsilon, delta=0.0)).to_html()
    (said,) = re.findall(r"more than ([0-9.]+) times as likely", text)
    assert math.exp(epsilon) <= float(said) < math.exp(epsilon) * 1.01
    assert "except with probability" not in text


@pytest.mark.parametrize("secret", [True, False])
def test_seeded_results_are_marked_everywhere_on_the_page(secret):
    text = result_of(key_is_secret=secret).to_html()
    page = Page(text)
    assert page.all("title")[0]["text"].startswith(SEEDED) is not secret
    assert len(page.all("p", **{"class": "seeded"})) == (not secret)
    pictures = len(page.all("figure"))
    assert len(page.all("text", **{"class": "stamp"})) == (0 if secret else pictures) < 4
    assert (SEEDED in page.one("body")["text"]) is not secret


def test_seeded_histograms_stamp_the_page_of_a_secret_screen():
    pair, *_ = one_histogram(key=seeded_key(1))
    page = Page(of_400().to_html(histograms=[pair]))
    assert page.one("p", **{"class": "seeded"})["text"] == SEEDED
    assert len(page.all("text", **{"class": "stamp"})) == 1


def test_a_histogram_is_the_release_in_the_cells_that_can_hold_records():
    """At an epsilon of 400 no noise is left: counts are those of the records."""
    pair, age, dose = one_histogram(epsilon=400.0)
    assert not pair.release.counts.sum() - 400
    side = pair.side
    (shown,) = Page(of_400().to_html(histograms=[pair])).content["histograms"]
    assert shown["y"]["labels"] == ["low", "middle", "high"]
    assert len(shown["x"]["labels"]) == side
    expected = np.zeros((side, 3), int)
    for at, kind in zip(age.tolist(), dose.tolist(), strict=True):
        expected[math.floor(Fraction(at) * side / 100), kind] += 1
    assert shown["counts"] == expected.tolist()
    np.testing.assert_allclose(shown["records"], expected, atol=0.06)
    low, high = map(float, shown["x"]["labels"][1].split(" to "))
    assert low == pytest.approx(100 / side, abs=0.06)
    assert high == pytest.approx(200 / side, abs=0.06)


@pytest.mark.parametrize("side", [2, 3, 4, 7])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
def test_cells_of_categories_are_called_what_they_hold(side, count):
    values = tuple("abcdefghi"[:count])
    held = by_range([np.arange(-1, count)], [CategoryLimits(count)], [side]).fine[0].tolist()
    names = {}
    for place, value in zip(held, ("missing", *values), strict=True):
        names.setdefault(place, []).append(value)
    cells = SpareAxis("x", values).cells(side)
    assert dict(zip(cells.places, cells.labels, strict=True)) == {
        place: ", ".join(held) for place, held in names.items()
    }


def test_noisy_counts_are_on_the_page_and_estimates_add_up():
    pair, *_ = one_histogram()
    (shown,) = Page(of_400().to_html(histograms=[pair])).content["histograms"]
    places = [side * (2 * i + 1) // 6 for i, side in enumerate([pair.side] * 3)]
    assert shown["counts"] == pair.release.counts[:, places].tolist()
    assert np.sum(shown["records"]) == pytest.approx(400, abs=0.05 * 3 * pair.side)
    assert np.min(shown["records"]) >= 0


def test_the_page_states_the_cost_of_histograms_separately_and_in_total():
    pair, *_ = one_histogram()
    text = Page(of_400().to_html(histograms=[pair])).one("main")["text"]
    assert "as one event: one histogram for epsilon = 0.5, delta = 0 (" in text
    assert "epsilon = 1.75, delta = 3e-07 for the values and the histograms together" in text
    assert "not charged to a ledger: account for it with" in text
    rng = np.random.default_rng(0)
    two = MICrHistogram(epsilon=0.25, design=SMALL).release_batch(
        rng.random((400, 3)), pairs=[(0, 1), (0, 2)], bounds=[(0, 1)] * 3, key=secret_key()
    )
    axes = [NumberAxis(name, 0, 1) for name in NAMES[:3]]
    both = Histograms(axes=((axes[0], axes[1]), (axes[0], axes[2])), release=two, ledger="a#7")
    page = Page(of_400().to_html(histograms=[both]))
    assert "2 histograms for epsilon = 0.5, delta = 0 together, 0.25 each" in both.text()
    assert "charged to ledger a#7" in page.one("main")["text"]
    # By the definition of the law: P(k) is proportional to e^(-0.125 |k|).
    k = np.arange(-2000, 2001)
    law = np.exp(-0.125 * np.abs(k))
    sd = math.sqrt((law * k**2).sum() / law.sum())
    assert f"noise of sd {sd:.3g} in each" in both.text()
    titles = [element["text"] for element in page.all("h3")]
    assert titles == [f"{name} against age" for name in NAMES[1:3]]


def test_costs_are_rounded_up():
    pair, *_ = one_histogram()
    each = 0.7 / 3
    event = MICrHistogram(epsilon=each, design=SMALL).event(n=400, count=3)
    three = {"event": event, "counts": np.zeros((3, 12, 12), int), "mass": np.zeros((3, 12, 12))}
    release = dataclasses.replace(pair.release, **three)
    text = Histograms(axes=pair.axes * 3, release=release).text()
    (whole, share) = re.findall(r"epsilon = ([0-9.]+), delta = 0 together, ([0-9.]+) each", text)[0]
    assert Fraction(whole) >= 3 * Fraction(repr(each))
    assert Fraction(repr(each)) <= Fraction(share) <= Fraction(repr(each)) * Fraction(1001, 1000)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("k", [1, 2, 5, 12, 13, 40])
def test_categories_are_found_in_the_cells_they_fall_into(k, missing):
    """Category i is at i on the bounds -1/2, k - 1/2, after a cell for missing values if any."""
    side = 12
    cells = CategoryAxis("c", tuple(f"v{i}" for i in range(k)), missing).cells(side)
    parts = side - missing
    expected = {0: ["missing"]} if missing else {}
    for i in range(k):
        share = (Fraction(i) + Fraction(1, 2)) / k
        at = next(p for p in range(parts) if Fraction(p, parts) <= share < Fraction(p + 1, parts))
        expected.setdefault(at + missing, []).append(f"v{i}")
    assert cells.places == tuple(expected)
    assert cells.labels == tuple(", ".join(values) for values in expected.values())


def test_the_axis_of_numbers_with_missing_values_has_a_cell_for_them():
    cells = NumberAxis("age", -5.0, 17.0, missing=True).cells(12)
    assert cells.labels[:2] == ("missing", "-5.0 to -3.0")
    assert cells.labels[-1] == "15.0 to 17.0"
    assert cells.places == tuple(range(12))
    assert cells.ticks[0] == (0.5, "missing")
    assert cells.ticks[-1] == (12.0, "17.0")


def test_histograms_of_something_else_are_refused():
    pair, *_ = one_histogram()
    with pytest.raises(ValueError, match="expected histograms of the table of the result"):
        result_of().to_html(histograms=[pair])
    with pytest.raises(ValueError, match="records per person: 400 and 3"):
        result_of(statement=statement_of(n=400, records=3)).to_html(histograms=[pair])
    with pytest.raises(ValueError, match="the column 'dose', the result does not"):
        of_400(names=("age", "b", "c", "d", "e")).to_html(histograms=[pair])
    with pytest.raises(ValueError, match="axes of the 1 released pairs, got those of 2"):
        Histograms(axes=pair.axes * 2, release=pair.release)
    other = dataclasses.replace(pair.release, event=MICrLap(epsilon=1.0).event(n=400))
    with pytest.raises(ValueError, match="expected a release of MICrHistogram, got one of MICrLap"):
        Histograms(axes=pair.axes, release=other)


def test_histograms_say_how_many_records_a_person_may_own():
    pair, *_ = one_histogram(records=3)
    found = result_of(statement=statement_of(n=400, records=3))
    text = Page(found.to_html(histograms=[pair])).one("main")["text"]
    assert "if one person's records, at most 3, were replaced" in text
    assert "each of a person's 3 records changes two of them by one" in text


def test_the_same_release_is_the_same_page(tmp_path):
    pair, *_ = one_histogram()
    text = of_400().to_html(tmp_path / "page.html", histograms=[pair])
    assert (tmp_path / "page.html").read_bytes() == text.encode()
    assert of_400().to_html(histograms=[pair]) == text


def test_nothing_released_is_a_page_too():
    none = result_of(pairs=np.empty((0, 2), int), mic=np.empty(0))
    page = Page(none.to_html())
    assert page.rows == []
    assert "No pair was released." in page.one("main")["text"]
    assert none.statement.text() in page.one("main")["text"]
