"""Pictures of coloured cells as inline SVG, without a script; a style sheet sets the colours."""

import math
from collections.abc import Sequence
from functools import cache
from html import escape
from itertools import groupby
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

LEVELS = 20  # number of colours
NONE = -1  # level of an empty cell
# YlGnBu of ColorBrewer, as in `plots`: light to dark in every kind of colour vision.
_ANCHORS = "ffffd9 edf8b1 c7e9b4 7fcdbb 41b6c4 1d91c0 225ea8 253494 081d58"
_LETTER = 6.8  # average width of a letter, in pixels
_LENGTH = 240  # length of the colour bar, in pixels

Levels = Int[np.ndarray, "down across"]
Ticks = Sequence[tuple[float, str]]


class Frame(NamedTuple):
    """The size of the cells of a picture, and the labels around them.

    Attributes:
      width, height: size of a cell, in pixels.
      left, below: (position, label), with positions in cells.
    """

    width: float
    height: float
    left: Ticks
    below: Ticks


def colours() -> list[str]:
    """The colours of the levels, the palest first."""
    anchors = [[int(word[k : k + 2], 16) for k in (0, 2, 4)] for word in _ANCHORS.split()]
    places = np.linspace(0, len(anchors) - 1, LEVELS)
    channels = [np.interp(places, np.arange(len(anchors)), c) for c in np.transpose(anchors)]
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.round(channels).astype(int).T.tolist()]


@cache
def rules() -> str:
    """The style sheet of the levels: a colour and a percentage of a length for each.

    A dark screen reverses the colours, so that weak values fade into the page.
    """

    def classes(shades: Sequence[str]) -> str:
        percents = (100 * (i + 0.5) / LEVELS for i in range(LEVELS))
        pairs = enumerate(zip(shades, percents, strict=True))
        return "".join(f".l{i}{{--c:{shade};--w:{percent:g}%}}" for i, (shade, percent) in pairs)

    shades, dark = colours(), "@media screen and (prefers-color-scheme:dark)"
    return f"{classes(shades)}\n{dark}{{{classes(shades[::-1])}}}"


def levels(values: Float[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"]:
    """The level of each value in [0, 1]; `NONE` for NaN."""
    found = np.minimum((np.nan_to_num(values) * LEVELS).astype(int), LEVELS - 1)
    return np.where(np.isnan(values), NONE, found)


def picture(drawn: Levels, frame: Frame, *, label: str, over: str, lines: bool, stamp: str) -> str:
    """Coloured cells with labels to the left and below.

    Args:
      drawn: the level of each cell.
      frame: size and labels of the cells.
      label: description of the picture for screen readers.
      over: SVG to draw over the cells, in pixels from the corner of the first one.
      lines: whether to draw lines between cells.
      stamp: a warning across the picture, where it cannot be cut off; or an empty text.
    """
    down, across = drawn.shape
    width, height = across * frame.width, down * frame.height
    letters = max((len(text) for _, text in (*frame.left, *frame.below)), default=0)
    room = 14 + _LETTER * letters
    whole, tall = room + width + 10, 10 + height + 0.75 * room + 10
    return (
        f'<div class="box" tabindex="0" role="img" aria-label="{escape(label)}">'
        f'<svg width="{whole:.0f}" height="{tall:.0f}" '
        f'viewBox="{-room:.1f} -10 {whole:.1f} {tall:.1f}">'
        f'<g transform="scale({frame.width:.6g} {frame.height:.6g})">'
        f'<rect class="grid" width="{across}" height="{down}"/>{_cells(drawn)}'
        f"{_lines(down, across) if lines else ''}"
        '<rect class="mark" width="1" height="1" visibility="hidden"/></g>'
        f"{over}{_labels(frame, height)}"
        f"{stamped(stamp, min(width, height), width / 2, height / 2)}</svg></div>"
    )


def scale(ticks: Ticks) -> str:
    """A colour bar, with ticks at positions from 0 to 1 below it."""
    texts = (f'<text x="{_LENGTH * at:.1f}" y="30">{escape(text)}</text>' for at, text in ticks)
    return (
        f'<svg class="scale" width="{_LENGTH + 60}" height="38" '
        f'viewBox="-30 -4 {_LENGTH + 60} 38" role="img" aria-label="Scale of colours">'
        f'<g transform="scale({_LENGTH / LEVELS:g} 16)">{_cells(np.arange(LEVELS)[None])}</g>'
        f"{''.join(texts)}</svg>"
    )


def thinned(labels: Ticks, pitch: float, least: float) -> Ticks:
    """Every k-th label, with the smallest k that puts them at least `least` pixels apart."""
    return labels[:: math.ceil(least / pitch)]


def _cells(drawn: Levels) -> str:
    """A path for each colour, in which each run of equal cells in a row is one thick line."""
    runs: dict[int, list[str]] = {}
    for row, line in enumerate(drawn.tolist()):
        start = 0
        for level, cells in groupby(line):
            size = len(list(cells))
            runs.setdefault(level, []).append(f"M{start} {row}h{size}")
            start += size
    paths = (
        f'<path class="l{level}" d="{"".join(runs[level])}"/>'
        for level in sorted(runs)
        if level != NONE
    )
    return f'<g class="cells" transform="translate(0 0.5)">{"".join(paths)}</g>'


def _lines(down: int, across: int) -> str:
    upright = "".join(f"M{i} 0v{down}" for i in range(1, across))
    level = "".join(f"M0 {i}h{across}" for i in range(1, down))
    return f'<path class="lines" d="{upright}{level}"/>'


def _labels(frame: Frame, height: float) -> str:
    left = (
        f'<text class="left" x="-7" y="{at * frame.height + 4:.1f}">{escape(text)}</text>'
        for at, text in frame.left
    )
    below = (
        f'<text class="left" transform="translate({at * frame.width + 4:.1f} {height + 13:.1f}) '
        f'rotate(-45)">{escape(text)}</text>'
        for at, text in frame.below
    )
    return "".join((*left, *below))


def stamped(text: str, side: float, x: float, y: float = 0.0) -> str:
    """A warning across a picture, where it cannot be cut off; nothing for an empty text.

    Args:
      text: the warning.
      side: shorter side of the picture, in pixels.
      x, y: its centre.
    """
    if not text:
        return ""
    return (
        f'<text class="stamp" transform="translate({x:.1f} {y:.1f}) rotate(-30)" '
        f'font-size="{1.6 * side / len(text):.1f}">{escape(text)}</text>'
    )
