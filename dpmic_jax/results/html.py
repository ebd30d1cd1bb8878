"""A result as a self-contained HTML page: statement, heat map, table, histograms.

The page contains released values only. Its style and script are inline, and its
Content-Security-Policy allows these two by their hashes and nothing else, so it sends no request.
"""

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float
from dpmic_jax.results import svg
from dpmic_jax.results.axes import Cells
from dpmic_jax.results.export import limits
from dpmic_jax.results.histograms import Histograms
from dpmic_jax.results.power_curve import PowerCurve
from dpmic_jax.results.statement import SEEDED
from dpmic_jax.results.text import short, summary

if TYPE_CHECKING:
    from dpmic_jax.results.screen_result import ScreenResult

_TITLE = "Which columns depend on each other"
_CELL = ((15, 36.0), (40, 18.0), (80, 12.0), (math.inf, 5.0))  # (most columns, pixels of a cell)
_WITH_NUMBERS = 15  # most columns whose cells have room for their values
_WITH_LINES = 80  # most columns whose cells have room for lines between them
_SIDE = 300.0  # pixels of a histogram's side
_LONGEST = 200  # characters of a name in the table


def page(result: "ScreenResult", histograms: Sequence[Histograms], curve: PowerCurve | None) -> str:
    """The text of the whole page, which is the same for the same release."""
    for group in histograms:
        group.check(result)
    secret = result.statement.key_is_secret and all(
        group.release.key_is_secret for group in histograms
    )
    shown = np.unique(result.pairs).tolist()
    style, script = f"{_read('report.css')}{svg.rules()}", _read("report.js")
    return Template(_read("report.html")).substitute(
        style_hash=_hash(style),
        script_hash=_hash(script),
        style=style,
        script=script,
        content=_content(result, shown, histograms),
        title=_TITLE if secret else f"{SEEDED}. {_TITLE}",
        heading=_TITLE,
        stamp="" if secret else f'<p class="seeded" role="alert">{SEEDED}</p>',
        summary=escape(summary(result).replace("(*)", "(★)")),
        promise=escape(_guarantee(result, histograms)),
        statement=escape(result.statement.text()),
        heatmap=_heatmap(result, shown) if shown else "<p>No pair was released.</p>",
        threshold=f"{result.dependence_threshold:.3g}",
        limits=escape(limits(result)),
        rows=_rows(result, shown),
        pairs=len(result.mic),
        curve="" if curve is None else _curve(curve),
        histograms="".join(map(_section, histograms)),
        version=escape(result.statement.version),
    )


def _content(result: "ScreenResult", shown: list[int], histograms: Sequence[Histograms]) -> str:
    """Data for the script beside the table, as JSON that cannot end its <script> element."""
    content = {
        "names": [_plain(result.names[i]) for i in shown],
        "histograms": [
            {
                "x": {"name": _plain(x.name), "labels": x.labels},
                "y": {"name": _plain(y.name), "labels": y.labels},
                "counts": counts.tolist(),
                "records": np.round(mass * group.release.event.n, 1).tolist(),
            }
            for group in histograms
            for x, y, counts, mass in group.pairs()
        ],
    }
    # Without "<", no name can close the <script> element or open a comment.
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def _guarantee(result: "ScreenResult", histograms: Sequence[Histograms]) -> str:
    """The guarantee of the whole page, for readers who do not know epsilon."""
    statement = result.statement
    costs = [statement.epsilon, *(group.release.event.epsilon for group in histograms)]
    epsilon = ceil_to_float(sum(map(as_fraction, costs), start=as_fraction(0.0)))
    records = statement.relation.records
    replaced = "record were replaced by any other"
    if records > 1:
        replaced = f"records, at most {records}, were replaced by any others"
    more = f", plus {statement.delta!r}" if statement.delta else ""
    together = "the values and the histograms together" if histograms else "all values together"
    return (
        f"Nothing on this page would be more than {_times(epsilon)} times as likely{more} if one "
        f"person's {replaced}: epsilon = {_digits(epsilon)}, delta = "
        f"{_digits(statement.delta)} for {together}."
    )


def _times(epsilon: float) -> str:
    """e^epsilon, rounded up, so that the guarantee holds."""
    if epsilon > 10:
        return f"e^{_digits(epsilon)}"
    odds = Context(prec=30).create_decimal(repr(epsilon)).exp(Context(prec=30))
    return f"{Context(prec=3, rounding=ROUND_CEILING).plus(odds):f}"


def _digits(value: float) -> str:
    return repr(value).removesuffix(".0")


def _plain(name: str) -> str:
    return short(name, _LONGEST)


def _heatmap(result: "ScreenResult", shown: list[int]) -> str:
    """A heat map of the columns with a released pair, in the order of the table."""
    matrix = result.matrix[np.ix_(shown, shown)]
    np.fill_diagonal(matrix, np.nan)  # a convention, not a measurement
    columns = len(shown)
    cell = next(pixels for most, pixels in _CELL if columns <= most)
    labels = [(place + 0.5, short(result.names[i])) for place, i in enumerate(shown)]
    drawn = svg.picture(
        svg.levels(matrix),
        svg.Frame(cell, cell, svg.thinned(labels, cell, 12), svg.thinned(labels, cell, 18)),
        label=f"Heat map of {len(result.mic)} private values of {columns} columns",
        over=_numbers(matrix, cell) if columns <= _WITH_NUMBERS else "",
        lines=columns <= _WITH_LINES,
        stamp="" if result.statement.key_is_secret else SEEDED,
    )
    absent = len(result.names) - columns
    left_out = f" Columns without a released pair are left out: {absent}." if absent else ""
    colours = svg.scale([(k / 4, f"{k / 4:g}") for k in range(5)])
    kind = "map" if columns <= _WITH_NUMBERS else "map large"
    return (
        f'<figure class="{kind}">{drawn}<figcaption>{colours}<p>Private MIC. Empty cells were not '
        f"released.{left_out}</p></figcaption><output></output></figure>"
    )


def _numbers(matrix: Float[np.ndarray, "names names"], cell: float) -> str:
    """The values as texts in the cells."""
    return "".join(
        f'<text class="{"strong" if matrix[i, j] > 0.5 else "weak"}" x="{(j + 0.5) * cell:g}" '
        f'y="{(i + 0.5) * cell + 4:g}">{f"{matrix[i, j]:.2f}".removeprefix("0")}</text>'
        for i, j in np.argwhere(~np.isnan(matrix)).tolist()
    )


def _rows(result: "ScreenResult", shown: list[int]) -> str:
    """A table row for each pair, with all digits of the value in its `data` element."""
    place = {column: i for i, column in enumerate(shown)}
    names = [escape(_plain(name)) for name in result.names]
    columns: Any = (
        result.pairs,
        svg.levels(result.mic),
        result.mic,
        result.lower,
        result.upper,
        result.distance,
        result.dependent,
    )
    return "\n".join(
        f'<tr data-at="{place[i]} {place[j]}"><td>{names[i]}</td><td>{names[j]}</td>'
        f'<td class="number l{level}">{_number(mic)}</td>'
        f"{''.join(map(_cell, values))}"
        f"<td>{'★' if dependent else ''}</td></tr>"
        for (i, j), level, mic, *values, dependent in zip(
            *(c.tolist() for c in columns), strict=True
        )
    )


def _cell(value: float) -> str:
    return f'<td class="number">{_number(value)}</td>'


def _number(value: float) -> str:
    return f'<data value="{value!r}">{value:.3f}</data>'


def _curve(curve: PowerCurve) -> str:
    return (
        '<section id="power"><h2>What such a screen finds</h2><figure class="curve">'
        f"{curve.svg()}<figcaption><p>{escape(curve.caption())}</p></figcaption></figure></section>"
    )


def _section(group: Histograms) -> str:
    drawn = "".join(
        _histogram(x, y, mass * group.release.event.n, stamped=not group.release.key_is_secret)
        for x, y, _, mass in group.pairs()
    )
    return (
        f'<section><h2>Histograms</h2><p>{escape(group.text())}</p><div class="many">{drawn}</div>'
        "</section>"
    )


def _histogram(x: Cells, y: Cells, records: Float[np.ndarray, "x y"], *, stamped: bool) -> str:
    most = max(records.max().item(), 1e-9)
    shares = (records / most).T[::-1]  # the largest y first
    down, across = shares.shape
    drawn: Int[np.ndarray, "y x"] = np.where(shares > 0, svg.levels(shares), svg.NONE)
    left = [(down - at, short(text)) for at, text in y.ticks]
    below = [(at, short(text)) for at, text in x.ticks]
    title = f"{_plain(y.name)} against {_plain(x.name)}"
    shown = svg.picture(
        drawn,
        svg.Frame(_SIDE / across, _SIDE / down, left, below),
        label=f"Histogram: {title}",
        over="",
        lines=False,
        stamp=SEEDED if stamped else "",
    )
    ticks = [(at, f"{most * at:.3g}") for at in (0.0, 0.5, 1.0)]
    return (
        f'<figure class="histogram"><h3>{escape(title)}</h3>{shown}<figcaption>{svg.scale(ticks)}'
        "<p>Estimated number of records in a cell.</p></figcaption><output></output></figure>"
    )


@cache
def _read(name: str) -> str:
    return resources.files("dpmic_jax.results").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """The hash of an inline text in a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
