"""Patterns that describe many columns at once: a star stands for any text.

`tax*` matches tax1, tax2 and taxes; `q*_score` matches q1_score. Nothing else is special. A star
that is itself part of a name is written `[*]`.
"""

import re

_STAR = "[*]"


def is_pattern(heading: str) -> bool:
    """Whether a heading in a bounds file is a pattern, not the name of one column."""
    return "*" in unescaped(heading, "")


def escaped(name: str) -> str:
    """The heading that stands for a name in a bounds file."""
    return name.replace("*", _STAR)


def unescaped(heading: str, star: str = "*") -> str:
    """The name that a heading stands for, if it is not a pattern."""
    return heading.replace(_STAR, star)


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern matches the whole name of a column."""
    special = {"*": ".*", _STAR: re.escape("*")}
    parts = re.split(r"(\[\*\]|\*)", pattern)
    regex = "".join(special.get(part, re.escape(part)) for part in parts)
    return re.fullmatch(regex, name, re.DOTALL) is not None
