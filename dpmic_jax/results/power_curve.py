"""The smallest dependence that a screen finds, against epsilon: as text, JSON, SVG and a figure.

All of it is planned from public numbers; no data is in it.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

from dpmic_jax.results.plots import draw_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR = 30  # characters of a bar for the value 1
_WIDTH, _HEIGHT = 420.0, 220.0  # pixels of the drawn area
_LEFT, _BELOW = 58.0, 48.0  # pixels for the labels


class CurvePoint(NamedTuple):
    """What a screen with this epsilon finds with 95 % probability.

    Attributes:
      epsilon: of the whole screen.
      distance: the smallest distance from independence that is found.
      mic: the MIC that relationships at that distance typically have; infinity if noise hides
        every dependence.
    """

    epsilon: float
    distance: float
    mic: float


class PowerCurve(NamedTuple):
    """The smallest dependence that is found, at several epsilons.

    A point may be above the one before it, by at most a quarter of its distance: from some epsilon
    on, a part of it is spent on MICr.

    Attributes:
      asked: the query, in words.
      n: number of records.
      delta: of the whole screen.
      epsilon: that of the screen itself, which is one of the points.
      points: by rising epsilon.
    """

    asked: str
    n: int
    delta: float
    epsilon: float
    points: tuple[CurvePoint, ...]

    @property
    def own(self) -> CurvePoint:
        """The point of the screen itself."""
        return next(point for point in self.points if point.epsilon == self.epsilon)

    @property
    def found(self) -> tuple[CurvePoint, ...]:
        """The points at which noise does not hide every dependence."""
        return tuple(point for point in self.points if math.isfinite(point.mic))

    def text(self) -> str:
        """The curve for a terminal, with a line for each epsilon, and bars."""
        width = max(len("epsilon"), *(len(f"{point.epsilon:g}") for point in self.points))
        lines = [f"  {'epsilon':<{width}}  smallest MIC  distance"]
        for point in self.points:
            mark = ">" if point.epsilon == self.epsilon else " "
            start = f"{mark} {point.epsilon:<{width}g}  "
            if math.isfinite(point.mic):
                bar = "#" * max(1, round(_BAR * point.mic))
                start += f"{point.mic:<12.3g}  {point.distance:<8.3g}  {bar}"
            else:
                start += "none: lost in noise"
            lines.append(start)
        return "\n".join(lines)

    def to_list(self) -> list[dict[str, float | None]]:
        """The points as JSON objects; `mic` is None where noise hides every dependence."""
        return [
            {
                "epsilon": epsilon,
                "mic": mic if math.isfinite(mic) else None,
                # Above the largest distance, or infinite if there is no plan at all.
                "distance": distance if math.isfinite(distance) else None,
            }
            for epsilon, distance, mic in self.points
        ]

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw it with matplotlib, on `ax` or in a new figure; the dot is the screen itself."""
        return draw_curve(self, ax)

    def svg(self) -> str:
        """The curve as inline SVG, which a style sheet colours."""
        places = [f"{self._x(point.epsilon):.1f} {self._y(point.mic):.1f}" for point in self.found]
        drawn = ""
        if places:
            dots = "".join(f"M{place}h0" for place in places)
            drawn = f'<path d="M{"L".join(places)}"/><path class="dots" d="{dots}"/>'
        if self.own in self.found:
            drawn += f'<path class="own" d="M{places[self.found.index(self.own)]}h0"/>'
        return (
            '<div class="box" tabindex="0" role="img" aria-label="Smallest MIC found against '
            f'epsilon"><svg width="{_LEFT + _WIDTH + 20:g}" height="{_HEIGHT + _BELOW + 12:g}" '
            f'viewBox="{-_LEFT:g} -12 {_LEFT + _WIDTH + 20:g} {_HEIGHT + _BELOW + 12:g}">'
            f'<rect class="grid" width="{_WIDTH:g}" height="{_HEIGHT:g}"/>'
            f"{drawn}{self._labels()}</svg></div>"
        )

    @property
    def lowest(self) -> float:
        """A power of ten below 1, and at or below every MIC that is found."""
        least = min((0.1, *(point.mic for point in self.found)))
        return 10.0 ** math.floor(math.log10(least))

    def _x(self, epsilon: float) -> float:
        first, last = self.points[0].epsilon, self.points[-1].epsilon
        return _WIDTH * math.log(epsilon / first) / math.log(last / first)

    def _y(self, mic: float) -> float:
        return _HEIGHT * math.log(mic) / math.log(self.lowest)

    def _labels(self) -> str:
        decades = -round(math.log10(self.lowest))
        # 2 and 5 have room in two decades.
        digits = (1, 2, 5) if decades <= 2 else (1,)
        up = [float(f"{digit}e{-power}") for power in range(1, decades + 1) for digit in digits]
        # Round numbers only: the screen's own epsilon may be close to one of them.
        across = [point.epsilon for point in self.points if _is_round(point.epsilon)]
        return "".join(
            (
                *(
                    f'<text class="left" x="-7" y="{self._y(mic) + 4:.1f}">{mic:g}</text>'
                    for mic in (*up, 1.0)
                ),
                *(
                    f'<text x="{self._x(epsilon):.1f}" y="{_HEIGHT + 18:g}">{epsilon:g}</text>'
                    for epsilon in across
                ),
                f'<text x="{_WIDTH / 2:g}" y="{_HEIGHT + 38:g}">epsilon</text>',
                f'<text transform="translate({12 - _LEFT:g} {_HEIGHT / 2:g}) rotate(-90)">'
                "smallest MIC found</text>",
            )
        )

    def caption(self) -> str:
        """The curve in a sentence or two."""
        own = self.own
        here = "noise hides every dependence"
        if math.isfinite(own.mic):
            here = f"dependences of a MIC from about {own.mic:.2g} on are found"
        return (
            f"What a screen of {self.n} records finds with 95 % probability at other epsilons, "
            f"asked for {self.asked}, with delta = {self.delta:g}: the smallest MIC of a typical "
            f"relationship, planned from public numbers only. At epsilon = {own.epsilon:g}, that "
            f"of this screen, {here}."
        )


def _is_round(epsilon: float) -> bool:
    return f"{epsilon:e}"[0] in "125" and float(f"{epsilon:.0e}") == epsilon


def round_epsilons(epsilon: float) -> list[float]:
    """1, 2 and 5 times powers of ten around `epsilon`, and itself."""
    exponent = math.floor(math.log10(epsilon))
    near = (
        float(f"{digit}e{power}")
        for power in range(exponent - 2, exponent + 3)
        for digit in (1, 2, 5)
    )
    return sorted({epsilon, *(each for each in near if epsilon / 50 <= each <= 20 * epsilon)})
