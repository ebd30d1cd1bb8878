"""A result as a self-contained HTML page: statement, heat map, table, histograms.

The page contains released values only, and sends no request (`page`).
"""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float
from dpmic_jax.results import page as page_of
from dpmic_jax.results import svg
from dpmic_jax.results.axes import Cells
from dpmic_jax.results.export import limits
from dpmic_jax.results.histograms import Histograms
from dpmic_jax.results.power_curve import PowerCurve
from dpmic_jax.results.statement import SEEDED
from dpmic_jax.results.text import short, summary

if TYPE_CHECKING:
    from dpmic_jax.results.screen_result import ScreenResult

_RELATIVE = ("relative", "from", "to")  # of distances, with their limits
_SIDE = 300.0  # pixels of a histogram's side


def page(result: "ScreenResult", histograms: Sequence[Histograms], curve: PowerCurve | None) -> str:
    """The text of the whole page, which is the same for the same release."""
    for group in histograms:
        group.check(result)
    secret = result.statement.key_is_secret and all(
        group.release.key_is_secret for group in histograms
    )
    shown, scores = np.unique(result.pairs).tolist(), result.scores
    heads = ("mic", "lower", "upper", "distance", *(_RELATIVE if result.own else ()))
    drawn = [*map(_section, histograms)]
    return page_of.filled(
        _content(result, shown, histograms),
        {
            "title": page_of.TITLE if secret else f"{SEEDED}. {page_of.TITLE}",
            "stamp": "" if secret else f'<p class="seeded" role="alert">{SEEDED}</p>',
            "summary": escape(summary(result).replace("(*)", "(★)")),
            "before": _privacy(result, histograms),
            "views": page_of.views(scores, shown, _caption(result, shown), result.dependent)
            if shown
            else "<p>No pair was released.</p>",
            "measure": "MIC",
            "plain": "",
            "heads": page_of.heads(heads, 2 + len(heads)),
            "rows": page_of.rows(scores, shown, _cells(result), result.dependent.tolist()),
            "pairs": len(result.mic),
            "note": _note(result),
            "after": "\n".join(["" if curve is None else _curve(curve), "".join(drawn)]),
            "origin": " from released values only",
            "version": escape(result.statement.version),
        },
    )


def _privacy(result: "ScreenResult", histograms: Sequence[Histograms]) -> str:
    return (
        '<section id="privacy">\n<h2>Privacy</h2>\n'
        f'<p class="promise">{escape(_guarantee(result, histograms))}</p>\n'
        f'<p class="statement">{escape(result.statement.text())}</p>\n</section>'
    )


def _note(result: "ScreenResult") -> str:
    return (
        "★ marks pairs whose distance from independence is above "
        f"{result.dependence_threshold:.3g}; if all pairs were independent, any of them would "
        "exceed it with a probability of at most 5 %. This holds for records of independent "
        "persons from one distribution, not for time series, or several sites whose averages "
        f"differ. Limits: {escape(limits(result))}."
        + (
            " Relative: the distance over the largest that rare values of the columns allow, with "
            "95 % limits by noise (from, to)."
            if result.own
            else ""
        )
    )


def _caption(result: "ScreenResult", shown: list[int]) -> str:
    absent = len(result.names) - len(shown)
    left_out = f" Columns without a released pair are left out: {absent}." if absent else ""
    return f"Private MIC. Empty cells were not released.{left_out}"


def _cells(result: "ScreenResult") -> list[list[str]]:
    """The cells of each row, but for the names, the value and the star."""
    columns = result.lower, result.upper, result.distance, *(result.relative if result.own else ())
    values = zip(*(column.tolist() for column in columns), strict=True)
    return [[page_of.cell(value) for value in row] for row in values]


def _content(
    result: "ScreenResult", shown: list[int], histograms: Sequence[Histograms]
) -> dict[str, Any]:
    """Data for the script beside the table."""
    return {
        "names": [page_of.plain(result.names[i]) for i in shown],
        "tell": f"{{2}} {{{9 if result.own else 6}}} ({{3}} to {{4}}), distance {{5}}",
        "none": "not released",
        "histograms": [
            {
                "x": {"name": page_of.plain(x.name), "labels": x.labels},
                "y": {"name": page_of.plain(y.name), "labels": y.labels},
                "counts": counts.tolist(),
                "records": np.round(mass * group.release.event.n, 1).tolist(),
            }
            for group in histograms
            for x, y, counts, mass in group.pairs()
        ],
    }


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
    title = f"{page_of.plain(y.name)} against {page_of.plain(x.name)}"
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
