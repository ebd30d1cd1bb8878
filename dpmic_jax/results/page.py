"""The parts that pages of results share: template, style, script, heat map, table.

A page's style and script are inline, and its Content-Security-Policy allows these two by their
hashes and nothing else, so it sends no request.
"""

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from dpmic_jax.results import svg
from dpmic_jax.results.network import network
from dpmic_jax.results.plots import Scores, leaves
from dpmic_jax.results.text import short

TITLE = "Which columns depend on each other"
_CELL = ((15, 36.0), (40, 18.0), (80, 12.0), (math.inf, 5.0))  # (most columns, pixels of a cell)
_WITH_NUMBERS = 15  # most columns whose cells have room for their values
_WITH_LINES = 80  # most columns whose cells have room for lines between them
_LONGEST = 200  # characters of a name in the table


def filled(content: dict[str, Any], parts: dict[str, Any]) -> str:
    """The text of a page.

    Args:
      content: data for the script beside the table.
      parts: what fills the template.
    """
    style, script = f"{_read('report.css')}{svg.rules()}", _read("report.js")
    return Template(_read("report.html")).substitute(
        style_hash=_hash(style),
        script_hash=_hash(script),
        style=style,
        script=script,
        # Without "<", no name can close the <script> element or open a comment.
        content=json.dumps(content, separators=(",", ":")).replace("<", "\\u003c"),
        heading=TITLE,
        **parts,
    )


def plain(name: str) -> str:
    """A column's name, shortened for a table."""
    return short(name, _LONGEST)


def views(scores: Scores, shown: list[int], caption: str, joined: Bool[np.ndarray, " rows"]) -> str:
    """The pictures of a page, each in a tab: heat map, clusters, network.

    Without scripts, and on paper, they are one below the other. Clusters need the values of all
    pairs of the columns that are shown, and a network needs a pair to draw.

    Args:
      scores: the values.
      shown: positions of the columns.
      caption: what is below the scale of colours.
      joined: the pairs that the network shows.
    """
    panels = [("Heat map", _heatmap(scores, shown, caption))]
    if len(shown) > 2 and len(scores.values) == len(shown) * (len(shown) - 1) // 2:
        matrix = scores.matrix[np.ix_(shown, shown)]
        clustered = [shown[i] for i in leaves(matrix).tolist()]
        said = f"{caption} Columns that depend on each other are side by side."
        panels.append(("Clusters", _heatmap(scores, clustered, said)))
    if joined.any():
        drawn, said = network(scores, joined)
        kind = "network" if len(shown) <= _CELL[1][0] else "network large"
        legend = f"<figcaption><p>{said}</p></figcaption>"
        panels.append(("Network", f'<figure class="{kind}">{drawn}{legend}</figure>'))
    tabs = "".join(
        f'<button type="button" role="tab" id="tab{k}" aria-controls="panel{k}" '
        f'aria-selected="{"false" if k else "true"}">{name}</button>'
        for k, (name, _) in enumerate(panels)
    )
    shown_in = "".join(
        f'<section id="panel{k}" aria-labelledby="view{k}"><h2 id="view{k}">{name}</h2>{drawn}'
        "</section>"
        for k, (name, drawn) in enumerate(panels)
    )
    return (
        f'<div id="views"><div role="tablist" aria-label="Pictures" hidden="hidden">{tabs}</div>'
        f"{shown_in}</div>"
    )


def _heatmap(scores: Scores, order: list[int], caption: str) -> str:
    """A heat map of some columns, in this order of their positions."""
    matrix = scores.matrix[np.ix_(order, order)]
    np.fill_diagonal(matrix, np.nan)  # a convention, not a measurement
    columns = len(order)
    cell = next(pixels for most, pixels in _CELL if columns <= most)
    labels = [(place + 0.5, short(scores.names[i])) for place, i in enumerate(order)]
    drawn = svg.picture(
        svg.levels(matrix),
        svg.Frame(cell, cell, svg.thinned(labels, cell, 12), svg.thinned(labels, cell, 18)),
        label=f"Heat map: {scores.label}, {len(scores.values)} values of {columns} columns",
        over=_numbers(matrix, cell) if columns <= _WITH_NUMBERS else "",
        lines=columns <= _WITH_LINES,
        stamp=scores.warning,
    )
    kind = "map" if columns <= _WITH_NUMBERS else "map large"
    # Places of the columns in the order of the table, for the script.
    places = " ".join(str(place) for place in np.argsort(np.argsort(order)).tolist())
    return (
        f'<figure class="{kind}" data-order="{places}">{drawn}<figcaption>{_colours()}'
        f"<p>{caption}</p></figcaption><output></output></figure>"
    )


def _colours() -> str:
    return svg.scale([(k / 4, f"{k / 4:g}") for k in range(5)])


def heads(names: Sequence[str], by: int) -> str:
    """The heads of the table: x, y, these names and the star; sorted by one of them."""
    sort, star = ' aria-sort="descending"', ' aria-label="dependent"'
    cells = [
        f'<th scope="col"{sort if place == by else ""}><button type="button"'
        f"{star if name == '★' else ''}>{escape(name)}</button></th>"
        for place, name in enumerate(("x", "y", *names, "★"))
    ]
    return "\n".join(cells)


def rows(
    scores: Scores, shown: list[int], others: Iterable[Sequence[str]], stars: Iterable[bool]
) -> str:
    """A table row for each pair, with all digits of the value in its `data` element.

    Args:
      scores: the pairs and their values.
      shown: positions of the columns of the heat map.
      others: other cells of each row, as HTML.
      stars: whether a row has a star.
    """
    place = {column: i for i, column in enumerate(shown)}
    names = [escape(plain(name)) for name in scores.names]
    columns = scores.pairs, svg.levels(scores.values), scores.values
    lines = zip(*(column.tolist() for column in columns), others, stars, strict=True)
    return "\n".join(
        f'<tr data-at="{place[i]} {place[j]}"><td>{names[i]}</td><td>{names[j]}</td>'
        f'<td class="number l{level}">{number(value)}</td>{"".join(cells)}'
        f"<td>{'★' if star else ''}</td></tr>"
        for (i, j), level, value, cells, star in lines
    )


def cell(value: float, digits: str = ".3f") -> str:
    """A cell of the table."""
    return f'<td class="number">{number(value, digits)}</td>'


def number(value: float, digits: str = ".3f") -> str:
    """A number as it is shown, with all of its digits for the script; empty if it is unknown."""
    if math.isnan(value):
        return '<data value="-1"></data>'
    return f'<data value="{value!r}">{format(value, digits)}</data>'


def _numbers(matrix: Float[np.ndarray, "names names"], cell: float) -> str:
    """The values as texts in the cells."""
    return "".join(
        f'<text class="{"strong" if matrix[i, j] > 0.5 else "weak"}" x="{(j + 0.5) * cell:g}" '
        f'y="{(i + 0.5) * cell + 4:g}">{f"{matrix[i, j]:.2f}".removeprefix("0")}</text>'
        for i, j in np.argwhere(~np.isnan(matrix)).tolist()
    )


@cache
def _read(name: str) -> str:
    return resources.files("dpmic_jax.results").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """The hash of an inline text in a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
