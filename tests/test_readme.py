"""The README's examples print what it says they print."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)


def test_there_are_examples():
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize(("program", "printed"), EXAMPLES)
def test_examples_print_what_the_readme_shows(program, printed):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, "README.md", "exec"), {})
    assert out.getvalue() == printed
