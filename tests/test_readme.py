"""The examples of the README and of pages with examples print what is said there."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": 4, "docs/after_selection.md": 1}  # and how many examples each has
EXAMPLES = {
    page: re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    for page in PAGES
}


def test_there_are_examples():
    assert {page: len(found) for page, found in EXAMPLES.items()} == PAGES


@pytest.mark.parametrize(
    ("program", "printed"), [example for found in EXAMPLES.values() for example in found]
)
def test_examples_print_what_the_page_shows(program, printed):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, "an example", "exec"), {})
    assert out.getvalue() == printed
