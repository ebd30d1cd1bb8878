"""A curve in every form has the same numbers: text, JSON, SVG and figure."""

import json
import math
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from dpmic_jax.results.power_curve import CurvePoint, PowerCurve, round_epsilons

LOST = CurvePoint(0.1, 0.9, math.inf)
POINTS = (
    CurvePoint(0.01, math.inf, math.inf),
    LOST,
    CurvePoint(0.5, 0.35, 0.8),
    CurvePoint(1.0, 0.2, 0.25),
    CurvePoint(1.75, 0.1, 0.06),
    CurvePoint(10.0, 0.11, 0.0625),
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def curve_of(points=POINTS, *, epsilon=1.75, asked="top 5 of all pairs"):
    return PowerCurve(asked, 20_000, 1e-6, epsilon, tuple(points))


def scaled(points, factor):
    return [CurvePoint(e, d * factor, m * factor) for e, d, m in points]


@given(st.floats(-9, 4))
def test_epsilons_are_round_numbers_around_its_own(log_epsilon):
    own = 10**log_epsilon
    found = round_epsilons(own)
    assert own in found
    assert found == sorted(set(found))
    assert own / 50 <= found[0] <= own / 20
    assert 20 * own >= found[-1] >= 8 * own
    for each in set(found) - {own}:
        assert f"{each:e}"[0] in "125"
        assert float(f"{each:.0e}") == each
    # 1, 2, 5, 10: none is left out.
    around = [each for each in found if each != own or float(f"{own:.0e}") == own]
    ratios = np.divide(around[1:], around[:-1])
    assert np.all((ratios < 2.6) & (ratios > 1.9))


def test_a_round_epsilon_of_its_own_is_one_point():
    assert round_epsilons(1.0).count(1.0) == 1
    assert round_epsilons(0.5) == [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]


def test_its_own_point_and_what_is_found():
    assert curve_of().own == POINTS[4]
    assert curve_of(epsilon=0.1).own == LOST
    assert curve_of().found == POINTS[2:]


@pytest.mark.parametrize("epsilon", [1.75, 0.123456])
def test_the_text_has_a_line_of_every_point_and_marks_its_own(epsilon):
    points = [p._replace(epsilon=epsilon) if p.epsilon == 1.75 else p for p in POINTS]
    head, *lines = curve_of(points, epsilon=epsilon).text().splitlines()
    at = [head.index(name) for name in ("epsilon", "smallest MIC", "distance")]
    for line, point in zip(lines, points, strict=True):
        assert (line[0] == ">") == (point.epsilon == epsilon)
        assert float(line[at[0] : at[1]]) == pytest.approx(point.epsilon, rel=1e-5)
        if point in (POINTS[0], LOST):
            assert line[at[1] :] == "none: lost in noise"
            continue
        mic, distance, bar = line[at[1] :].split()
        assert line[at[2] :].startswith(distance)
        assert float(mic) == pytest.approx(point.mic, rel=5e-3)
        assert float(distance) == pytest.approx(point.distance, rel=5e-3)
        assert set(bar) == {"#"}
        assert len(bar) == pytest.approx(30 * point.mic, abs=1)


def test_json_has_null_where_it_is_lost():
    found = json.loads(json.dumps(curve_of().to_list(), allow_nan=False))
    assert found[0] == {"epsilon": 0.01, "mic": None, "distance": None}
    assert found[1] == {"epsilon": 0.1, "mic": None, "distance": 0.9}
    assert [(each["epsilon"], each["distance"], each["mic"]) for each in found[2:]] == [*POINTS[2:]]


def drawn(curve):
    """Points of the line, and the circles and the own one, in pixels; and places of the labels."""
    svg = ElementTree.fromstring(curve.svg()).find("svg")
    paths = {path.get("class"): path.get("d") for path in svg.iter("path")}
    numbers = {kind: re.findall(r"(-?[\d.]+) (-?[\d.]+)", path) for kind, path in paths.items()}
    placed = {kind: np.array(pairs, float).reshape(-1, 2) for kind, pairs in numbers.items()}
    texts = [text for text in svg.iter("text") if text.get("x")]
    up = {float(t.text): float(t.get("y")) - 4 for t in texts if t.get("class") == "left"}
    across = {float(t.text): float(t.get("x")) for t in texts if re.match(r"[\d.e-]+$", t.text)}
    return placed, up, {value: x for value, x in across.items() if x >= 0}, svg


def read_off(pixel, labels):
    """A number by the labels of its axis, which is logarithmic."""
    (one, at_one), (other, at_other) = min(labels.items()), max(labels.items())
    share = (pixel - at_one) / (at_other - at_one)
    return math.exp(math.log(one) + share * math.log(other / one))


@pytest.mark.parametrize("factor", [1.0, 1e-3])
def test_points_of_the_picture_lie_where_its_labels_say(factor):
    curve = curve_of([*POINTS[:2], *scaled(POINTS[2:], factor)])
    placed, up, across, svg = drawn(curve)
    for labels, upwards in ((up, True), (across, False)):
        pixels = [labels[value] for value in sorted(labels)]
        assert pixels == sorted(pixels, reverse=upwards)  # y counts downwards
    for kind in (None, "dots"):
        assert len(placed[kind]) == 4
        for (x, y), point in zip(placed[kind], curve.found, strict=True):
            assert read_off(x, across) == pytest.approx(point.epsilon, rel=0.01)
            assert read_off(y, up) == pytest.approx(point.mic, rel=0.02)
    assert placed["own"].tolist() == placed["dots"][2:3].tolist()
    # All within the drawn area, which the labels span, and that within the picture.
    frame = svg.find("rect")
    assert (max(up.values()), min(up.values())) == (float(frame.get("height")), 0)
    assert (max(across.values()), min(across.values())) == (float(frame.get("width")), 0)
    for pixels, side in ((placed[None][:, 0], "width"), (placed[None][:, 1], "height")):
        assert 0 <= pixels.min() <= pixels.max() <= float(frame.get(side))
    left, top, width, height = map(float, svg.get("viewBox").split())
    assert left <= 0 <= float(frame.get("width")) <= left + width
    assert top <= 0 <= float(frame.get("height")) <= top + height


def test_labels_are_round_numbers_and_at_most_a_dozen():
    _, up, across, _ = drawn(curve_of([*POINTS[:2], *scaled(POINTS[2:], 1e-3)]))
    assert sorted(up) == [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0]
    assert sorted(across) == [0.01, 0.1, 0.5, 1.0, 10.0]
    _, up, _, _ = drawn(curve_of())
    assert sorted(up) == [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]


@pytest.mark.parametrize("mics", [(), (1.0,), (1.0, 0.95)])
def test_nothing_or_only_the_largest_mic_can_be_drawn(mics):
    found = [CurvePoint(2.0 + i, 0.41, mic) for i, mic in enumerate(mics)]
    curve = curve_of([*POINTS[:2], *found], epsilon=0.1)
    placed, up, _, _ = drawn(curve)
    assert min(up) == 0.1
    assert "own" not in placed
    assert (None in placed) == bool(mics)
    for (_, y), mic in zip(placed.get(None, ()), mics, strict=True):
        assert read_off(y, up) == pytest.approx(mic, rel=0.01)
    assert "noise hides every dependence" in curve.caption()


def test_the_caption_says_what_is_asked_and_what_its_own_point_finds():
    caption = curve_of(asked="'<b>' against the rest").caption()
    for words in (
        "20000 records",
        "'<b>' against the rest",
        "delta = 1e-06",
        "MIC from about 0.06",
    ):
        assert words in caption


def test_the_figure_has_the_same_points():
    ax = curve_of(asked="'$x_{$' against the rest").plot()
    line, own = ax.get_lines()
    assert np.asarray(line.get_xydata()).tolist() == [[p.epsilon, p.mic] for p in POINTS[2:]]
    assert np.asarray(own.get_xydata()).tolist() == [[1.75, 0.06]]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlim() == (0.01, 10)
    assert ax.get_ylim() == (0.01, 1)
    # A name with dollars is no formula.
    ax.figure.canvas.draw()
    assert ax.get_title(loc="left") == "'$x_{$' against the rest, n = 20000, delta = 1e-06"


def test_a_figure_of_a_curve_without_its_own_point_has_no_dot():
    _, ax = plt.subplots()
    assert curve_of(epsilon=0.1).plot(ax) is ax
    assert len(ax.get_lines()) == 1
