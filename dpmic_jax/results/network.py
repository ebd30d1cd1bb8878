"""The strongest pairs of a result as a network, in inline SVG: columns on a circle."""

import math
from html import escape

import numpy as np
from jaxtyping import Bool, Float, Int

from dpmic_jax.results import svg
from dpmic_jax.results.plots import Scores, leaves
from dpmic_jax.results.text import short

Point = Float[np.ndarray, " 2"]

MOST = 1000  # lines; more are a disc of ink
_RADIUS = 210.0  # pixels of the circle
_LETTER = 6.8  # average width of a letter, in pixels
_APART = 11.0  # least pixels between two names
_STEPS = 9  # widths of lines
_PALEST = 7  # level of the weakest line


def network(scores: Scores, joined: Bool[np.ndarray, " rows"]) -> tuple[str, str]:
    """A picture of the columns of the joined pairs, and a sentence on it.

    Args:
      scores: the pairs and their values.
      joined: which pairs are drawn, if they are not too many.
    """
    edges = np.flatnonzero(joined)
    edges = edges[np.argsort(-scores.values[edges], kind="stable")]
    drawn = edges[:MOST]
    columns = np.unique(scores.pairs[drawn])
    places = _places(scores, drawn, columns)
    # Names that would overlap get a larger circle.
    radius = max(_RADIUS, _APART * len(columns) / (2 * math.pi))
    names = [short(scores.names[i]) for i in columns.tolist()]
    room = 16 + _LETTER * max(map(len, names), default=0)
    side = 2 * (radius + room)
    index = {column: at for at, column in enumerate(columns.tolist())}
    # The strongest are drawn last, on top.
    lines = "".join(
        _line(
            radius * places[index[i]],
            radius * places[index[j]],
            float(scores.values[row]),
            f"{short(scores.names[i])}, {short(scores.names[j])}: {scores.values[row]:.3f}",
        )
        for row in drawn[::-1].tolist()
        for i, j in [scores.pairs[row].tolist()]
    )
    labels = "".join(
        _label(radius * place, name) for place, name in zip(places, names, strict=True)
    )
    title = f"Network of {len(drawn)} pairs of {len(columns)} columns"
    picture = (
        f'<div class="box" tabindex="0" role="img" aria-label="{title}">'
        f'<svg width="{side:.0f}" height="{side:.0f}" '
        f'viewBox="{-side / 2:.1f} {-side / 2:.1f} {side:.1f} {side:.1f}">'
        f'<g class="edges">{lines}</g>{labels}{svg.stamped(scores.warning, side, 0.0)}</svg></div>'
    )
    fewer = "" if len(drawn) == len(edges) else f" the {len(drawn)} strongest of"
    said = f"Lines are{fewer} {len(edges)} pairs; wider and darker ones are stronger."
    return picture, said


def _places(
    scores: Scores, edges: Int[np.ndarray, " edges"], columns: Int[np.ndarray, " columns"]
) -> Float[np.ndarray, "columns 2"]:
    """Points of a circle of radius 1, so that columns that depend on each other are neighbours."""
    count = len(columns)
    order = np.arange(count)
    if count > 2:
        matrix = np.zeros((count, count))
        x, y = np.searchsorted(columns, scores.pairs[edges]).T
        matrix[x, y] = matrix[y, x] = scores.values[edges]
        np.fill_diagonal(matrix, 1)
        order = leaves(matrix)
    angle = np.empty(count)
    angle[order] = -np.pi / 2 + 2 * np.pi * np.arange(count) / max(count, 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _line(
    start: Float[np.ndarray, " 2"], end: Float[np.ndarray, " 2"], value: float, says: str
) -> str:
    """A curve that bends towards the centre, the more the further its ends are apart."""
    apart = np.linalg.norm(end - start) / max(np.linalg.norm(start), 1e-9)
    middle = (1 - min(0.75, 0.12 + 0.7 * apart)) * (start + end) / 2
    x, y, z = (f"{a:.0f} {b:.0f}" for a, b in (start, middle, end))
    # The palest third of the colours is hard to see as a line.
    level = _PALEST + round((svg.LEVELS - 1 - _PALEST) * value)
    return (
        f'<path class="l{level} w{round(_STEPS * value)}" d="M{x}Q{y} {z}">'
        f"<title>{escape(says)}</title></path>"
    )


def _label(place: Point, name: str) -> str:
    x, y = place
    degrees = math.degrees(math.atan2(y, x))
    left = abs(degrees) > 90.01
    turned = degrees + 180 * left
    side, offset = (' class="left"', -9) if left else (' class="right"', 9)
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        f'<text{side} transform="translate({x:.1f} {y:.1f}) rotate({turned:.1f})" x="{offset}" '
        f'y="4">{escape(name)}</text>'
    )
