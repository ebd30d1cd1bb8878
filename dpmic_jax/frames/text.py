"""Exact values of pairs as text for a terminal, and as HTML for a notebook."""

import html as markup
import math
from typing import TYPE_CHECKING

from dpmic_jax.results.text import short

if TYPE_CHECKING:
    from dpmic_jax.frames.result import Pairwise

_BAR = 30  # characters of a bar for the value 1
_FORMATS = {"records": "{:d}", "p": "{:.2g}", "p_adjusted": "{:.2g}"}


def summary(result: "Pairwise") -> str:
    """What the values are, in one line."""
    same = result.x_columns is result.y_columns
    columns = len(result.x_columns) + (0 if same else len(result.y_columns))
    least, most = result.records.min(), result.records.max()
    records = f"{most}" if least == most else f"{least} to {most} complete"
    pairs = len(result.pairs)
    line = f"{pairs} pair{'s' if pairs > 1 else ''} of {columns} columns, {records} records."
    if result.p_values is not None:
        line += f" p_adjusted: {result.control.error}."
    return f"{line} Not private: exact values of {result.statistic}."


def text(result: "Pairwise", rows: int) -> str:
    """The strongest `rows` pairs with bars, and the summary."""
    cells = _cells(result, rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    bars = ["", *map(_bar, result.columns()[result.measure][:rows].tolist())]
    lines = [
        "  ".join([*map(str.ljust, row, widths), bar]).rstrip()
        for row, bar in zip(cells, bars, strict=True)
    ]
    return "\n".join((*lines, summary(result)))


def _bar(value: float) -> str:
    return "" if math.isnan(value) else "#" * round(_BAR * min(max(value, 0), 1))


def html(result: "Pairwise", rows: int) -> str:
    """The strongest `rows` pairs as an HTML table."""
    head, *body = [[markup.escape(cell) for cell in row] for row in _cells(result, rows)]
    lines = ("".join(f"<td>{cell}</td>" for cell in row) for row in body)
    return (
        f"<div><table><thead><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr></thead>"
        f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"
        f"<p>{markup.escape(summary(result))}</p></div>"
    )


def _cells(result: "Pairwise", rows: int) -> list[list[str]]:
    """The head and the rows of the table, as texts."""
    columns = result.columns()
    shown = [
        [short(value) if name in "xy" else _shown(name, value) for value in values[:rows]]
        for name, values in columns.items()
    ]
    return [list(columns), *map(list, zip(*shown, strict=True))]


def _shown(name: str, value: float) -> str:
    return "" if math.isnan(value) else _FORMATS.get(name, "{:.3f}").format(value)
