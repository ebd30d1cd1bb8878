"""Which room of the package imports from which; `python tests/rooms.py` draws it in the docs."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1] / "dpmic_jax"
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
# From the bottom up: a room imports from itself and from rooms before it.
ORDER = (
    "version",
    "dp",
    "data",
    "mic",
    "runs",
    "mechanisms",
    "results",
    "screening",
    "causal",
    "inference",
    "frames",
    "paper",
    "minepy",
    "sklearn",
    "integrations",
    "cli",
    "__main__",
)
ORDER_IN_DP = (
    "files",
    "arithmetic",
    "rng",
    "noise",
    "accounting",
    "selection",
    "information",
    "max_information",
    "conversions",
    "ledger",
    "audit",
)


def rooms_of(folder):
    """The folders and modules of a folder, each with its files."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).parts[0].removesuffix(".py")
        if name != "__init__":
            found.setdefault(name, []).append(path)
    return found


def imports(path):
    """The names that a file imports from the package."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == "dpmic_jax")


def edges(folder):
    """(room, file, the room it imports from), for all imports inside a folder."""
    prefix = ".".join(["dpmic_jax", *folder.relative_to(ROOT).parts, ""])
    for room, files in rooms_of(folder).items():
        for path in files:
            for name in imports(path):
                if name.startswith(prefix):
                    yield room, path, name.removeprefix(prefix).split(".")[0]


def picture(folder, order):
    """A line a room, the highest first: its name, how many files it has, what it imports from."""
    rooms, below = rooms_of(folder), {room: set() for room in order}
    for here, _, there in edges(folder):
        below[here].add(there)
    lines = []
    for room in reversed(order):
        used = [each for each in order if each in below[room] - {room}]
        lines.append(f"{room:<16}{len(rooms[room]):>4}   {' '.join(reversed(used))}".rstrip())
    return "\n".join(lines)


def drawn(text):
    """A page with both pictures put between their marks."""
    for mark, folder, order in (("rooms", ROOT, ORDER), ("dp", ROOT / "dp", ORDER_IN_DP)):
        begin, end = f"<!-- {mark}: python tests/rooms.py -->", f"<!-- end of {mark} -->"
        before, rest = text.split(begin)
        text = (
            f"{before}{begin}\n<pre>\n{picture(folder, order)}\n</pre>\n{end}{rest.split(end)[1]}"
        )
    return text


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
