"""Every code block of the README and of docs/ is run, and prints what the page shows.

Blocks of a page run from top to bottom, in one namespace and one folder of their own:

- `python` is run as it is; `toml` is written to bounds.toml;
- `sh` has commands: those of `dpmic` are run in this process, those of `NOT_RUN` are not, and
  there are no others;
- of a `dockerfile` what `RUN dpmic` does is run;
- a plain block is what the code block before it prints, where "..." stands for anything;
- `<!-- setup: ... -->` has Python that a reader of the page need not see;
- the block after `<!-- slow -->` is run in the slow tests only, and so is `dpmic paper`, with
  --quick; `dpmic test` is run with few draws, and --force.
"""

import contextlib
import inspect
import io
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import click
import matplotlib.pyplot as plt
import pytest
from cli.commands import dpmic

from dpmic_jax.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
NOT_RUN = ("pip install", "pytest", "python -m benchmarks.")
BLOCK = re.compile(
    r"^(?:<!-- setup:\n(?P<setup>.*?)-->|(?P<slow><!-- slow -->)"
    r"|```(?P<kind>.*?)\n(?P<text>.*?)```)$",
    re.MULTILINE | re.DOTALL,
)
ROW = re.compile(r"^\S+ +\S+ +\d\.\d{3}(?!\d).*$", re.MULTILINE)  # of a result, on a terminal
REFUSED = ("Error: ", "Budget exceeded: ")
SCHEDULER = "tcp://scheduler:8786"


class Block(NamedTuple):
    """A code block, what the page shows of its output, and whether it takes long."""

    kind: str
    text: str
    line: int
    shown: str | None
    slow: bool


def blocks(page):
    text = page.read_text()
    found, slow = [], False
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["slow"]:
            slow = True
        elif match["kind"] == "":
            assert found, f"{page.name}:{line}: no code prints this"
            assert found[-1].shown is None, f"{page.name}:{line}: the second output of a block"
            found[-1] = found[-1]._replace(shown=match["text"])
        else:
            kind = "setup" if match["kind"] is None else match["kind"]
            code = match["setup"] or match["text"]
            found.append(Block(kind, code, line, None, slow or "dpmic paper" in code))
            slow = False
    return found


def shell(block):
    """The commands of a block, one a line."""
    if block.kind == "sh":
        return block.text
    return "\n".join(re.findall(r"^RUN (dpmic .*)$", block.text, re.MULTILINE))


def commands(text):
    """The commands of a shell block, as lists of words."""
    for line in text.replace("\\\n", " ").splitlines():
        words, start = [*shlex.split(line, comments=True), "&&"], 0
        for stop in [i for i, word in enumerate(words) if word == "&&"]:
            if words[start:stop]:
                yield words[start:stop]
            start = stop + 1


def is_run(words):
    return not " ".join(words).startswith(NOT_RUN)


class Reader:
    """Somebody who tries what a page says."""

    def __init__(self, page):
        self.page, self.names = page, {"__name__": "__main__", "Path": Path}

    def tries(self, block):
        """What the block prints."""
        if block.kind == "toml":
            Path("bounds.toml").write_text(block.text)
            return ""
        if block.kind in ("sh", "dockerfile"):
            asked = [words for words in commands(shell(block)) if is_run(words)]
            return "".join(self.runs(words, block.shown or "") for words in asked)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block.text, f"{self.page.name}:{block.line}", "exec"), self.names)
        return out.getvalue()

    def runs(self, words, shown):
        assert words[0] == "dpmic", f"{self.page.name}: {words[0]} is not run by this test"
        if words[1] == "paper" and words[2] != "page":
            words = [*words, "--quick"]
        if words[1] == "test":
            words = [*words, "--draws", "99", "--force"]  # too few to show anything
        with contextlib.ExitStack() as stack:
            if SCHEDULER in words:
                words[words.index(SCHEDULER)] = stack.enter_context(cluster()).scheduler_address
            done = dpmic(*words[1:])
        if shown.startswith(REFUSED):
            assert done.exit_code in (2, 3), done.output
            return done.stderr
        assert done.exit_code == 0, f"{' '.join(words)}\n{done.output}"
        return done.stdout.replace("Usage: main ", "Usage: dpmic ")


def cluster():
    """In this process, in place of the one whose address the page makes up."""
    from distributed import LocalCluster

    return LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address=None)


def draws_new_noise(block):
    asked = commands(block.text) if block.kind == "sh" else ()
    return any("screen" in words and "--seed" not in words for words in asked)


def check(block, printed, where):
    shown = block.shown
    if draws_new_noise(block):
        # Rows can only be counted, and the paragraph that names the run may be left out.
        printed, shown = (ROW.sub("a row", re.sub(" +", " ", text)) for text in (printed, shown))
        shown += "..."
    if "..." not in shown:
        assert printed == shown, where
    pattern = re.escape(shown).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, printed, re.DOTALL), f"{where} prints\n{printed}"


def run(page, *, slow):
    reader = Reader(page)
    for block in blocks(page):
        if slow or not block.slow:
            printed = reader.tries(block)
            if block.shown is not None:
                check(block, printed, f"{page.name}:{block.line}")


def named(pages):
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages]


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def reads(test):
    """In a folder of its own. Dask leaves sockets to the collector, of workers in this process."""
    for mark in (
        pytest.mark.usefixtures("own_folder"),
        pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
        pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    ):
        test = mark(test)
    return test


@pytest.mark.parametrize("page", named(page for page in PAGES if blocks(page)))
@reads
def test_examples_print_what_the_page_shows(page):
    run(page, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", named(p for p in PAGES if any(b.slow for b in blocks(p))))
@reads
def test_long_examples_too(page):
    run(page, slow=True)


def test_no_block_is_overlooked():
    kinds = {"python", "sh", "toml", "setup", "dockerfile"}
    for page in PAGES:
        found = blocks(page)
        assert {block.kind for block in found} <= kinds, page
        fenced = sum((b.kind != "setup") + (b.shown is not None) for b in found)
        assert page.read_text().count("```") == 2 * fenced, page


@pytest.mark.parametrize(
    ("shown", "printed"),
    [("a 1\n", "a 2\n"), ("a 1\n", "a 1\nb\n"), ("a ... c\n", "a b d\n"), ("", "a\n")],
)
def test_other_output_than_shown_is_noticed(shown, printed):
    block = Block("python", "", 1, shown, False)
    check(block, shown.replace("...", "b"), "")
    with pytest.raises(AssertionError):
        check(block, printed, "")


def test_what_an_image_runs_is_found():
    text = "FROM a\nRUN pip install b\nRUN dpmic warm-up --columns 3\nUSER dpmic\n"
    block = Block("dockerfile", text, 1, None, False)
    assert list(commands(shell(block))) == [["dpmic", "warm-up", "--columns", "3"]]


def test_commands_are_found_behind_others_and_over_several_lines():
    text = "pip install . && dpmic a 'b c'   # said\ndpmic d \\\n  --e\n"
    assert list(commands(text)) == [
        ["pip", "install", "."],
        ["dpmic", "a", "b c"],
        ["dpmic", "d", "--e"],
    ]
    assert not is_run(["pip", "install", "."])
    assert is_run(["python", "-m", "http.server"])


def options_of(words):
    """The command that words begin with, and the options that it has."""
    command = main
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    known = {name for parameter in command.params for name in parameter.opts}
    return command, known | {"-h", "--help"}


@pytest.mark.parametrize("page", named(PAGES))
def test_commands_named_in_the_text_have_these_options(page):
    for inline in re.findall(r"`dpmic\s([^`]+)`", page.read_text()):
        words = inline.split()
        command, known = options_of(words)
        assert command is not main or words[0].startswith("-") or "..." in inline, inline
        assert {word for word in words if re.match("--?[a-zA-Z]", word)} <= known, inline


def prose(page):
    """The lines of a page that are neither code, tables nor comments."""
    text = re.sub(r"```.*?```|<!--.*?-->|<pre>.*?</pre>", "", page.read_text(), flags=re.DOTALL)
    return [line for line in text.splitlines() if not line.startswith(("|", "    "))]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


@pytest.mark.parametrize("page", named([*PAGES, *ROOT.glob("*.md")]))
def test_lines_of_text_have_at_most_120_characters(page):
    assert [line for line in prose(page) if len(line) > 120] == []


def test_pages_have_at_most_1500_words_unless_they_are_proofs():
    proofs = (ROOT / "mkdocs.yml").read_text().split("- Proofs:")[1].split("- Contributing:")[0]
    words = {page.name: len(" ".join(prose(page)).split()) for page in DOCS.glob("*.md")}
    assert [name for name, n in words.items() if n > 1500 and f" {name}\n" not in proofs] == []


def test_every_page_is_in_the_navigation_once():
    listed = re.findall(r"[\w/]+\.md", (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1])
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", named(PAGES))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("https://", "http://", "#")):
            there = (page.parent / target.split("#")[0]).resolve()
            assert there.is_file(), f"{page.name}: {target}"
            assert page.parent == ROOT or there.is_relative_to(DOCS), f"{page.name}: {target}"


def test_pictures_are_small():
    for picture in DOCS.rglob("*.png"):
        assert picture.stat().st_size < 160_000, picture.name


@pytest.mark.parametrize(
    "package",
    [
        *("dpmic_jax", "dpmic_jax.integrations"),
        *("dpmic_jax.mechanisms", "dpmic_jax.inference", "dpmic_jax.screening"),
        *("dpmic_jax.results", "dpmic_jax.data.schema", "dpmic_jax.data.source"),
        *("dpmic_jax.dp.audit", "dpmic_jax.dp.noise", "dpmic_jax.dp.selection"),
        *("dpmic_jax.dp.information", "dpmic_jax.dp.max_information"),
        *("dpmic_jax.causal", "dpmic_jax.frames", "dpmic_jax.minepy", "dpmic_jax.sklearn"),
    ],
)
def test_every_public_name_is_in_the_reference(package):
    package = import_module(package)
    pages = "\n".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    paths = [path.rsplit(".", 1) for path in re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE)]
    described = [getattr(import_module(module), name) for module, name in paths]
    missing = [
        name
        for name in package.__all__
        if inspect.isclass(getattr(package, name)) or inspect.isfunction(getattr(package, name))
        if not any(getattr(package, name) is thing for thing in described)
    ]
    assert not missing
