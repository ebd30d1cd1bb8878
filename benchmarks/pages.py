"""Write tables into a page of the documentation, between marks that name the command."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(line)} |" for line in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def fill(page: Path, mark: str, text: str) -> None:
    """Replace the text between `<!-- mark: command -->` and `<!-- end of mark -->` in a page."""
    marks = rf"(<!-- {mark}: [^\n]*-->\n).*(<!-- end of {mark} -->)"
    content, found = re.subn(
        marks, lambda old: f"{old[1]}{text}\n{old[2]}", page.read_text(), flags=re.S
    )
    if not found:
        raise ValueError(f"{page.name} has no place marked {mark!r}")
    page.write_text(content)
