"""The report page in a real browser: run with `pytest -m browser`."""

import base64
import functools
import http.server
import json
import re
import threading
from operator import itemgetter
from typing import ClassVar

import matplotlib.image
import numpy as np
import pytest
from made_results import result_of, statement_of
from report_pages import HOSTILE, one_histogram

from dpmic_jax.results import SEEDED
from dpmic_jax.results.power_curve import CurvePoint, PowerCurve

pytestmark = pytest.mark.browser

NAMES = ("age", "dose", "response", "hour", "risk", "weight")
PHONE = 390


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page from a file, on a screen of some width; then nothing may have been said."""

    def open_page(text, width=1100):
        (tmp_path / "page.html").write_text(text, "utf-8")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get_log("performance")
        browser.get((tmp_path / "page.html").as_uri())
        return browser

    yield open_page
    assert browser.get_log("browser") == []


def whole_page(**changes):
    pair, *_ = one_histogram()
    names = changes.get("names", NAMES)
    # Of their own, so that the order of the rows is not that of the values.
    distance = np.random.default_rng(3).uniform(0, 0.15, len(names) * (len(names) - 1) // 2)
    given = {"names": names, "statement": statement_of(n=400), "distance": distance, **changes}
    histograms = [pair] if {"age", "dose"} <= set(names) else []
    return result_of(**given), result_of(**given).to_html(histograms=histograms)


def rows(driver):
    """x, y and mic as they are shown."""
    cells = driver.execute_script(
        "return Array.from(document.querySelectorAll('#pairs tbody tr')).filter(r => "
        "r.getClientRects().length).map(r => [r.cells[0].innerText, r.cells[1].innerText, "
        "Number(r.cells[2].querySelector('data').value)])"
    )
    return [tuple(row) for row in cells]


def shown(driver, selector):
    return [each for each in driver.find_elements("css selector", selector) if each.is_displayed()]


def head(driver, name):
    (found,) = [
        button
        for button in driver.find_elements("css selector", "th button")
        if button.text.split()[0] == name
    ]
    return found


def sorting(driver):
    return {
        th.text.split()[0]: th.get_attribute("aria-sort")
        for th in driver.find_elements("css selector", "thead th")
        if th.get_attribute("aria-sort")
    }


def requests(driver):
    said = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [event for event in said if event["method"] == "Network.requestWillBeSent"]
    return [event["params"]["request"]["url"] for event in sent]


def test_the_page_loads_without_errors_or_requests(opened):
    found, text = whole_page()
    driver = opened(text)
    assert requests(driver) == [driver.current_url]
    assert driver.title == "Which columns depend on each other"
    assert rows(driver) == found.ranked()
    assert driver.find_element("id", "filter").is_displayed()
    assert found.statement.text() in driver.find_element("tag name", "main").text
    assert "15 of 15 pairs" in driver.find_element("id", "count").text


class Served(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, and a list of what was asked for."""

    asked: ClassVar[list[str]] = []

    def log_message(self, *_):
        self.asked.append(self.path)


@pytest.mark.parametrize("policy", [True, False])
def test_the_policy_stops_what_would_leave_the_page(browser, tmp_path, policy):
    """Without it the same page does load what is put in, so the test can see that."""
    _, text = whole_page()
    leaks = '<img src="/leak.png"><script>sent = fetch("/sent")</script>'
    text = text.replace("<main>", f"<main>{leaks}")
    if not policy:
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    (tmp_path / "page.html").write_text(text, "utf-8")
    Served.asked.clear()
    handler = functools.partial(Served, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.get(f"http://127.0.0.1:{server.server_port}/page.html")
        # The picture is answered when the page is loaded; what the script asks for, if it runs, is
        # waited for here.
        browser.execute_async_script("Promise.resolve(window.sent).finally(arguments[0])")
        server.shutdown()
    browser.get("about:blank")
    browser.get_log("browser")
    leaked = {"/leak.png", "/sent"} & set(Served.asked)
    assert "/page.html" in Served.asked
    assert leaked == (set() if policy else {"/leak.png", "/sent"})


def test_a_click_sorts_and_another_turns_it_round(opened):
    found, text = whole_page()
    driver = opened(text)
    assert sorting(driver) == {"★": "descending"}
    for name in ("mic", "lower", "upper", "distance"):
        values = getattr(found, name)
        head(driver, name).click()
        assert sorting(driver) == {name: "descending"}
        # Equal values, such as limits at 1, keep the order of the release.
        assert rows(driver) == [found.ranked()[i] for i in np.argsort(-values, kind="stable")]
        head(driver, name).click()
        assert sorting(driver) == {name: "ascending"}
        assert rows(driver) == [found.ranked()[i] for i in np.argsort(values, kind="stable")]
    for column, name in enumerate("xy"):
        head(driver, name).click()
        assert sorting(driver) == {name: "ascending"}
        # Equal names keep the order of the release.
        assert rows(driver) == sorted(found.ranked(), key=itemgetter(column))
        head(driver, name).click()
        assert sorting(driver) == {name: "descending"}
        names = [row[column] for row in rows(driver)]
        assert names == sorted(names, reverse=True)


def test_the_keyboard_sorts_too(opened):
    from selenium.webdriver.common.keys import Keys

    found, text = whole_page()
    driver = opened(text)
    strong = found.dependent.sum()
    assert 0 < strong < 15
    head(driver, "★").send_keys(Keys.ENTER)
    assert sorting(driver) == {"★": "ascending"}
    assert rows(driver) == found.ranked()[strong:] + found.ranked()[:strong]
    head(driver, "★").send_keys(Keys.SPACE)
    assert sorting(driver) == {"★": "descending"}
    assert rows(driver) == found.ranked()


def test_filters_keep_the_rows_that_fit_and_count_them(opened):
    from selenium.webdriver.common.keys import Keys

    found, text = whole_page()
    driver = opened(text)
    words, least, slide, starred = (
        driver.find_element("id", name) for name in ("words", "least", "slide", "starred")
    )

    def expect(*tests):
        fit = [row for row in found.ranked() if all(test(row) for test in tests)]
        assert 0 < len(fit) < 15
        assert rows(driver) == fit
        assert driver.find_element("id", "count").text == f"{len(fit)} of 15 pairs"

    words.send_keys("DOS")
    expect(lambda row: "dose" in row[:2])
    least.clear()
    least.send_keys("0.4")
    expect(lambda row: "dose" in row[:2], lambda row: row[2] >= 0.4)
    assert slide.get_attribute("value") == "0.4"
    words.clear()
    words.send_keys(" ")
    slide.send_keys(Keys.ARROW_RIGHT)
    assert least.get_attribute("value") == "0.41"
    expect(lambda row: row[2] >= 0.41)
    head(driver, "mic").click()
    fit = [row for row in found.ranked() if row[2] >= 0.41]
    assert rows(driver) == sorted(fit, key=itemgetter(2), reverse=True)
    head(driver, "★").click()
    least.clear()
    starred.click()
    strong = found.ranked()[: found.dependent.sum()]
    expect(lambda row: row in strong)
    words.send_keys(" ".join(strong[0][:2]))
    expect(lambda row: set(strong[0][:2]) == set(row[:2]))


def test_a_cell_of_the_map_tells_its_value(opened):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    found, text = whole_page()
    driver = opened(text)
    box = driver.find_element("css selector", ".map .box")
    box.send_keys(Keys.ARROW_RIGHT)
    (row,) = np.flatnonzero((found.pairs == [0, 1]).all(axis=1))
    value, distance = found.mic[row], found.distance[row]
    said = driver.find_element("css selector", ".map output")
    limits = f"({max(value - 0.04, 0):.3f} to {min(value + 0.04, 1):.3f})"
    star = " ★" if distance > 0.075 else ""
    assert said.text == f"age, dose: {value:.3f}{star} {limits}, distance {distance:.3f}"
    grid = driver.find_element("css selector", ".map .grid")
    width = grid.rect["width"]
    # From the middle: column 4 of 6 is 1.5 cells to the right, row 1 is 1.5 cells up.
    ActionChains(driver).move_to_element_with_offset(
        grid, round(1.5 * width / 6), round(-1.5 * width / 6)
    ).perform()
    assert said.text.startswith(f"dose, risk: {found.matrix[1, 4]:.3f}")


def test_a_cell_of_a_histogram_tells_its_count(opened):
    from selenium.webdriver.common.keys import Keys

    pair, *_ = one_histogram()
    driver = opened(result_of(statement=statement_of(n=400)).to_html(histograms=[pair]))
    box = driver.find_element("css selector", ".histogram .box")
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN):
        box.send_keys(key)
    said = driver.find_element("css selector", ".histogram output").text
    # The first row is the last of three categories, in cells 2, 6 and 10 of 12.
    assert "dose middle" in said
    assert f"(noisy count {pair.release.counts[2, 6]})" in said


@pytest.mark.parametrize("columns", [5, 30])
def test_a_phone_never_scrolls_the_page_sideways(opened, columns):
    long = (f"{3 * 'a_very_long_name_of_a_column_'}{i}" for i in range(columns - 2))
    names = ("age", "dose", *long)
    _, text = whole_page(names=names)
    driver = opened(text, width=PHONE)
    assert driver.execute_script("return innerWidth") == PHONE
    assert driver.execute_script("return document.documentElement.scrollWidth") == PHONE
    # Wide things scroll in boxes of their own, and those fit the screen.
    boxes = shown(driver, ".box")
    assert all(box.rect["x"] >= 0 and box.rect["x"] + box.rect["width"] <= PHONE for box in boxes)
    assert len(boxes) == 3


def test_no_name_is_run(opened):
    names = (*HOSTILE, "<img src=x onerror=document.title=1>", "<script>document.title=2</script>")
    driver = opened(result_of(names).to_html())
    assert driver.title == "Which columns depend on each other"
    assert {name for row in rows(driver) for name in row[:2]} == set(names)
    assert not driver.find_elements("css selector", "img")


def test_without_scripts_everything_is_there_to_read(opened, browser):
    found, text = whole_page()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver = opened(text)
        assert len(driver.find_elements("css selector", "#pairs tbody tr")) == 15
        assert not driver.find_element("id", "filter").is_displayed()
        assert not driver.find_element("id", "more").is_displayed()
        assert "15 of 15 pairs" in driver.find_element("id", "count").text
        assert driver.find_element("css selector", ".map svg").is_displayed()
        assert found.statement.text() in driver.find_element("tag name", "main").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_two_hundred_columns_are_shown_in_portions(opened):
    found = result_of(tuple(f"x{i}" for i in range(200)))
    driver = opened(found.to_html())
    assert rows(driver) == found.ranked()[:500]
    assert driver.find_element("id", "count").text == "19900 of 19900 pairs, the first 500 shown"
    driver.find_element("id", "more").click()
    assert rows(driver) == found.ranked()[:1500]
    head(driver, "mic").click()
    head(driver, "mic").click()
    assert sorting(driver) == {"mic": "ascending"}
    assert rows(driver) == found.ranked()[:-1501:-1]
    # In the order of their numbers: x2 before x10.
    driver.find_element("id", "words").send_keys("x199")
    head(driver, "x").click()
    assert [row[0] for row in rows(driver)] == [f"x{i}" for i in range(199)]


def test_pictures_are_tabs_for_the_mouse_and_the_keyboard(opened):
    from selenium.webdriver.common.keys import Keys

    found, text = whole_page()
    driver = opened(text)
    tabs = driver.find_elements("css selector", "[role=tab]")
    panels = driver.find_elements("css selector", "[role=tabpanel]")

    def chosen():
        selected = [tab.get_attribute("aria-selected") for tab in tabs]
        visible = [str(panel.is_displayed()).lower() for panel in panels]
        focusable = ["true" if tab.get_attribute("tabindex") == "0" else "false" for tab in tabs]
        assert selected == visible == focusable
        return [tab.text for tab in tabs][selected.index("true")]

    assert chosen() == "Heat map"
    tabs[1].click()
    assert chosen() == "Clusters"
    box = panels[1].find_element("css selector", ".box")
    box.send_keys(Keys.ARROW_RIGHT)
    order = panels[1].find_element("css selector", ".map").get_attribute("data-order").split()
    i, j = int(order[0]), int(order[1])
    said = panels[1].find_element("css selector", "output").text
    assert said.startswith(f"{NAMES[i]}, {NAMES[j]}: {found.matrix[i, j]:.3f}")
    for key, name in (
        (Keys.ARROW_RIGHT, "Network"),
        (Keys.ARROW_RIGHT, "Heat map"),
        (Keys.ARROW_LEFT, "Network"),
        (Keys.HOME, "Heat map"),
        (Keys.END, "Network"),
    ):
        (selected,) = shown(driver, "[role=tab][aria-selected=true]")
        selected.send_keys(key)
        assert chosen() == name
        assert driver.switch_to.active_element.text == name


def test_groups_of_columns_are_chosen_from_lists(opened):
    from selenium.webdriver.support.select import Select

    names = tuple(f"{group}_{i}" for group in ("lab", "drug") for i in range(3))
    found, text = whole_page(names=names)
    driver = opened(text)
    group, other = (Select(driver.find_element("id", name)) for name in ("group", "other"))
    assert [option.text for option in group.options] == ["any", "lab (3)", "drug (3)"]
    group.select_by_value("lab")
    assert rows(driver) == [row for row in found.ranked() if "lab" in row[0] + row[1]]
    other.select_by_value("drug")
    between = [row for row in found.ranked() if {row[0][:3], row[1][:3]} == {"lab", "dru"}]
    assert rows(driver) == between
    assert driver.find_element("id", "count").text == "9 of 15 pairs"
    assert not shown(opened(whole_page()[1]), "#group")


def test_paper_has_all_pictures_and_no_controls(opened, browser):
    _, text = whole_page()
    driver = opened(text, width=700)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert len(shown(driver, "figure")) == 4
        assert not shown(driver, "#filter, [role=tab], figure output")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 700
        printed = browser.execute_cdp_cmd("Page.printToPDF", {})["data"]
        assert base64.b64decode(printed).startswith(b"%PDF")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, PHONE])
def test_axe_finds_nothing_serious(opened, browser, axe, scheme, width):
    pair, *_ = one_histogram()
    curve = PowerCurve("all pairs", 400, 0.0, 1.0, tuple(CurvePoint(e, 0.02, 0.2) for e in (1, 2)))
    names = ("age", "dose", "lab_1", "lab_2", "drug_1", "drug_2")  # with two groups
    found, _ = whole_page(names=names, statement=statement_of(n=400, key_is_secret=False))
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        driver = opened(found.to_html(histograms=[pair], curve=curve), width=width)
        for tab in driver.find_elements("css selector", "[role=tab]"):
            tab.click()
            assert axe(driver) == []
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_axe_finds_a_fault_that_is_put_in(opened, axe):
    _, text = whole_page()
    driver = opened(text.replace("<main>", '<main><input type="text" />'))
    assert [found[0] for found in axe(driver)] == ["label"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_of_the_page_has_its_colours(opened, browser, tmp_path, scheme):
    _, text = whole_page(statement=statement_of(n=400, key_is_secret=False))
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver = opened(text)
    stamp = driver.find_element("css selector", ".seeded")
    assert stamp.text == SEEDED
    assert float(stamp.value_of_css_property("font-size").removesuffix("px")) >= 32
    driver.save_screenshot(tmp_path / "page.png")
    picture = np.round(255 * matplotlib.image.imread(tmp_path / "page.png")[..., :3]).astype(int)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    shades, counts = np.unique(picture.reshape(-1, 3), axis=0, return_counts=True)
    page = shades[counts.argmax()]
    assert page.mean() > 200 if scheme == "light" else page.mean() < 50
    red = (shades[:, 0] > 150) & (shades[:, 1:].max(axis=1) < 130)
    assert counts[red].sum() > 2000
