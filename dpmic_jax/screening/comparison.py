"""What each kind of query would find for one budget, side by side."""

import math
from collections.abc import Sequence
from typing import Any

from dpmic_jax.screening.plan import described
from dpmic_jax.screening.preview import Preview, preview
from dpmic_jax.screening.queries import Above, Against, AllPairs, Ask, TopK

_HEADS = ("asked", "noise sd", "smallest MIC", "distance", "how")


def usual_asks(names: Sequence[str]) -> tuple[Ask, ...]:
    """One query of each kind for a table of these columns, with two sizes of top k."""
    pairs = len(names) * (len(names) - 1) // 2
    top = (TopK(k) for k in (5, 20) if k < pairs)
    return AllPairs(), Against(names[0]), *top, Above(0.3, min(10, pairs))


def compare(asks: Sequence[Ask], **settings: Any) -> tuple[Preview, ...]:
    """Preview several queries of one budget.

    Args:
      asks: the queries, such as `usual_asks(names)`.
      **settings: all arguments of `preview` but ask.
    """
    return tuple(preview(**settings, ask=ask) for ask in asks)


def rows(previews: Sequence[Preview]) -> list[dict[str, Any]]:
    """The previews as JSON objects; `smallest_mic` is None where noise hides every dependence."""
    return [
        {
            "asked": str(each.plan.ask),
            "noise_sd": each.plan.distances.sd,
            "smallest_mic": _finite(each.smallest),
            "smallest_distance": _finite(each.smallest_distance),
            "mechanism": each.plan.mechanism,
        }
        for each in previews
    ]


def table(previews: Sequence[Preview]) -> str:
    """The previews as a table for a terminal."""
    lines: list[tuple[str, ...]] = [_HEADS]
    for each in previews:
        smallest = f"{each.smallest:.3g}" if each.found else "none"
        how = described(each.plan.noises).removeprefix("pairs ").replace("discrete ", "")
        numbers = (f"{each.plan.distances.sd:.3g}", smallest, f"{each.smallest_distance:.3g}")
        lines.append((str(each.plan.ask), *numbers, how))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _finite(value: float) -> float | None:
    """The value for JSON, which has no infinity."""
    return value if math.isfinite(value) else None
