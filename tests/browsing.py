"""A real browser for tests, and axe-core in it.

The browser is Debian's chromium with chromium-driver, or another Chrome with its driver, steered by
selenium. axe-core is fetched by npm, once, into the cache of the tests; nothing of it is in the
repository.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

AXE = "4.14.1"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then((found) => done(found.violations.map((v) =>
  [v.id, v.impact, v.nodes.map((node) => node.html.slice(0, 200) + " " + node.failureSummary)])));
"""


def found_program(*names):
    for path in map(shutil.which, names):
        if path:
            return path
    pytest.fail(
        f"no {names[0]} on this machine: apt-get install chromium chromium-driver npm, or leave "
        "out `-m browser`"
    )


@pytest.fixture(scope="module")
def browser():
    """A browser without a window."""
    try:
        from selenium import webdriver
    except ImportError:
        pytest.fail("no selenium: pip install selenium, or leave out `-m browser`")
    options = webdriver.ChromeOptions()
    options.binary_location = found_program(*BROWSERS)
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(found_program("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


def axe_source():
    """The text of axe.min.js, from the cache or from npm."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpmic_jax-tests"
    folder = cache / f"axe-core-{AXE}"
    file = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        words = ("install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder))
        subprocess.run([found_program("npm"), *words, f"axe-core@{AXE}"], check=True)
    return file.read_text("utf-8")


@pytest.fixture(scope="module")
def axe():
    """The serious and critical violations of a page, by axe-core."""
    source = axe_source()

    def violations(driver):
        # By the protocol: a page's Content-Security-Policy allows no other script.
        driver.execute_cdp_cmd("Runtime.evaluate", {"expression": source})
        found = driver.execute_async_script(_RUN)
        return [each for each in found if each[1] in ("serious", "critical")]

    return violations
