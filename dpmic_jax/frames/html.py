"""Exact values of pairs as a self-contained HTML page."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dpmic_jax.frames.plots import scores_of
from dpmic_jax.frames.text import summary
from dpmic_jax.results import page as page_of
from dpmic_jax.version import __version__

if TYPE_CHECKING:
    from dpmic_jax.frames.result import Pairwise

_LEVEL = 0.05
_DIGITS = {"records": "d", "p": ".2g", "p_adjusted": ".2g"}


def page(result: "Pairwise") -> str:
    """The text of the whole page."""
    scores = scores_of(result)
    shown = np.unique(scores.pairs).tolist()
    names = [name for name in _DIGITS if name in result.columns()]
    stars = np.zeros(len(scores.values), bool)
    if result.p_values is not None:
        stars = np.asarray(result.columns()["p_adjusted"][: len(stars)]) <= _LEVEL
    return page_of.filled(
        {
            "names": [page_of.plain(scores.names[i]) for i in shown],
            "tell": "{2}" + "".join(f", {name} {{{3 + i}}}" for i, name in enumerate(names)),
            "none": "fewer than 4 complete records",
            "histograms": [],
        },
        {
            "title": page_of.TITLE,
            "stamp": "",
            "summary": escape(summary(result)),
            "before": "",
            "views": page_of.views(scores, shown, f"Exact {escape(result.measure)}.", stars),
            "measure": escape(result.measure),
            "plain": "" if result.p_values is not None else ' hidden="hidden"',
            "heads": page_of.heads((result.measure, *names), 2),
            "rows": _rows(result, names, shown, stars.tolist()),
            "pairs": len(scores.values),
            "note": escape(_note(result)),
            "after": _taken(result),
            "origin": ". It shows exact values, which are not private",
            "version": escape(__version__),
        },
    )


def _rows(result: "Pairwise", names: list[str], shown: list[int], stars: list[bool]) -> str:
    columns, scores = result.columns(), scores_of(result)
    known = len(scores.values)  # pairs without a value come last
    cells = (
        [page_of.cell(value, _DIGITS[name]) for name, value in zip(names, row, strict=True)]
        for row in zip(*(columns[name][:known].tolist() for name in names), strict=True)
    )
    return page_of.rows(scores, shown, cells, stars)


def _note(result: "Pairwise") -> str:
    if result.p_values is None:
        return "Values are exact: nothing hides a single record."
    return (
        f"★ marks adjusted p-values up to {_LEVEL:g} ({result.control.error}). P-values are of "
        "independence, by random tables with the margins of each pair, and hold for independent "
        "records."
    )


def _taken(result: "Pairwise") -> str:
    """How each column was taken."""
    columns = {column.name: column for column in (*result.x_columns, *result.y_columns)}
    rows = "".join(
        f"<tr><td>{escape(page_of.plain(name))}</td><td>{escape(column.note())}</td>"
        f'<td class="number">{int(column.missing.sum())}</td></tr>'
        for name, column in columns.items()
    )
    return (
        '<section><h2>Columns</h2><div class="box"><table><thead><tr><th>column</th><th>taken as'
        f"</th><th>missing</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )
