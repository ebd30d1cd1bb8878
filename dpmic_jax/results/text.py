"""A result as text for a terminal, and as HTML for a notebook."""

import html as markup
import math
from typing import TYPE_CHECKING

from dpmic_jax.results.export import limits
from dpmic_jax.results.statement import SEEDED

if TYPE_CHECKING:
    from dpmic_jax.results.screen_result import ScreenResult

_ROWS = 15  # of results that have the values of all candidates
_BAR = 30  # characters of a bar for the value 1
_STAMP = '<p style="color: #b30000; font-weight: bold">{}</p>'
_FILL = '<div style="width: {:.0f}px; height: 0.7em; display: inline-block; background: {}"></div>'
_DEPENDENT, _WEAK = "#225ea8", "#c7c7c7"
_IN_HTML = ("x", "y", "mic", "lower", "upper", "distance", "dependent")


def short(name: str, longest: int = 28) -> str:
    """A column's name, shortened, with unprintable characters replaced by question marks."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in name)
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def rows_shown(result: "ScreenResult") -> int:
    """How many pairs are shown by default: all of a selection, which was asked for, or 15."""
    released = len(result.mic)
    return max(released, 1) if released < result.candidates else _ROWS


def summary(result: "ScreenResult") -> str:
    """The number of pairs, the noise and the threshold of dependence, in one line."""
    mic = "MIC is estimated from the distance."
    if result.noise_sd is not None:
        mic = f"Noise on MIC: sd {result.noise_sd:.3g}."
    return (
        f"{len(result.mic)} of {result.candidates} pairs of {len(result.names)} columns "
        f"({result.ask}). Dependent (*): distance from independence above "
        f"{result.dependence_threshold:.3g}, noise sd {result.distance_noise_sd:.2g}. {mic}"
    )


def text(result: "ScreenResult", rows: int) -> str:
    """The strongest `rows` pairs with bars, the summary, and the privacy statement in one line."""
    shown = result.top(rows)
    names = [(short(x), short(y)) for x, y, _ in shown.ranked()]
    left = max((len(x) for x, _ in names), default=1)
    right = max((len(y) for _, y in names), default=1)
    relative = "  relative" if result.own else "  "
    lines = [f"{'x':<{left}}  {'y':<{right}}  mic    95 % limits   distance{relative}".rstrip()]
    values = (shown.mic, shown.lower, shown.upper, shown.distance)
    columns = (*values, shown.dependent, shown.relative.value)
    for (x, y), mic, low, high, far, dependent, share in zip(names, *columns, strict=True):
        mark = "*" if dependent else " "
        bar = "#" * round(_BAR * mic)
        within = f"{low:.2f} to {high:.2f}"
        if result.own:
            mark += f"     {'' if math.isnan(share) else format(share, '.2f'):<4}  "
        line = f"{x:<{left}}  {y:<{right}}  {mic:.3f}  {within}  {far:.3f}{mark}    {bar}"
        lines.append(line.rstrip())
    return "\n".join((*lines, summary(result), result.statement.line))


def html(result: "ScreenResult", rows: int) -> str:
    """The strongest `rows` pairs as an HTML table, with the privacy statement."""
    columns = result.top(rows).columns()
    heads = ("x", "y", "mic", "", "lower", "upper", "distance", "dependent")
    body = []
    rows_of = zip(*(columns[name] for name in _IN_HTML), strict=True)
    for x, y, mic, lower, upper, far, dependent in rows_of:
        bar = _FILL.format(100 * mic, _DEPENDENT if dependent else _WEAK)
        cells = (
            markup.escape(short(x)),
            markup.escape(short(y)),
            f"{mic:.3f}",
            bar,
            f"{lower:.3f}",
            f"{upper:.3f}",
            f"{far:.3f}",
            "yes" if dependent else "no",
        )
        body.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    stamp = "" if result.statement.key_is_secret else _STAMP.format(SEEDED)
    return (
        f"<div>{stamp}<table><thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"
        f"</thead><tbody>{''.join(body)}</tbody></table>"
        f"<p>{markup.escape(summary(result))} Limits: {limits(result)}.</p>"
        f"<p><small>{markup.escape(result.statement.text())}</small></p></div>"
    )
