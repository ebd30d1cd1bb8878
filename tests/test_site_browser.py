"""axe-core on the main pages of the built site: run with `pytest -m browser`.

The folder of the built site is named in SITE; without it, the site is built here.
"""

import functools
import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[1]
PAGES = ("", "tutorial/", "privacy_review/", "protection/", "reference/screening/")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a folder."""

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where the site is served."""
    folder = os.environ.get("SITE")
    if folder is None:
        folder = str(tmp_path_factory.mktemp("site"))
        build = (sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder)
        silent = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        subprocess.run(build, cwd=ROOT, env=silent, check=True)
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("width", [1100, 390])
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious_on_the_site(browser, axe, address, page, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(f"{address}/{page}")
    assert browser.title
    assert axe(browser) == []
