"""MICr with soft bins, so that gradients go through it. NOT private, and nor are its gradients.

A record lies before a cut to the share sigmoid((cut - value) / temperature). Shares of a part
are differences of these, counts are sums of shares, and information is a smooth function of
counts. The maximum over grids stays a hard one: the best grid is searched for without
gradients, as OptimizeAxis does it, and then the information of that one grid is
differentiated with its cuts held fixed. By the envelope theorem that is the gradient of the
maximum, wherever one grid alone attains it; where several do, it is that of one of them.

Grids are searched one after the other, so memory is O(n (K + l)) for the finest master of K
parts and the most rows l, and independent of n a K x K x l array of gains.
"""

import math
from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from dpmic_jax.mic.grids import Cells, Grid
from dpmic_jax.mic.statistics import MICr

FEWEST_RECORDS = 4

# A cut at infinity is none: every record lies before it, and the part behind it is empty.
NO_CUT = np.inf


class _Cuts(NamedTuple):
    """A grid of a plan on the unit interval, padded to the shape of its group."""

    rows: Float[Array, "*grids row_cuts"]
    master: Float[Array, "*grids master_cuts"]
    parts: Int[Array, "*grids"]


class _Best(NamedTuple):
    """A grid that was optimised: what it scores, and where it cuts which axis."""

    score: Float[Array, "*grids"]
    merged: Float[Array, "*grids merged_cuts"]
    fixed: Float[Array, "*grids fixed_cuts"]
    parts: Int[Array, "*grids"]
    flipped: Bool[Array, "*grids"]  # whether y is merged and x fixed


def soft_micr(
    x: Any,
    y: Any,
    *,
    bounds: Sequence[Any] | Array | np.ndarray,
    B: Cells,
    c: float = 5,
    temperature: Any,
) -> Float[Array, ""]:
    """MICr of two columns with soft bins: differentiable, for learning. NOT private.

    The same grids as `micr`, and the maximum over them is hard. As the temperature goes to 0
    the value goes to that of `micr`, if no value is equal to a cut (such a value stays half
    in either part), and gradients go to 0 except near cuts. Bins as soft as the finest parts
    are wide, 1/(c sqrt(B)), are a good start for learning. Soft bins see less dependence
    than hard ones: judge what was learnt by `micr`.

    Works under `jax.jit`, `jax.vmap` (over pairs) and `jax.grad`, with respect to x, y,
    bounds, temperature, or whatever these were made from.

    Args:
      x, y: two columns of numbers, record by record.
      bounds: `((x_low, x_high), (y_low, y_high))`, numbers or arrays. Values outside belong
        to the outer parts.
      B: the most cells a grid may have, or a rule of n such as `power(0.6)`; static.
      c: how many times finer than the parts wanted the master partition is; static.
      temperature: above 0, in units of a column's range (high - low).

    Returns:
      A number from 0 to 1, in the wider dtype of x and y (float32 if they are integers).
    """
    x, y = _columns(x, y)
    grids = MICr(B=B, c=c).grids(len(x))
    try:
        x_bounds, y_bounds = bounds
    except (TypeError, ValueError):
        raise ValueError(
            "expected bounds to be ((x_low, x_high), (y_low, y_high)): public limits of x and of y"
        ) from None
    if not isinstance(temperature, Tracer):
        _positive(temperature)
    temperature = jnp.asarray(temperature, x.dtype)
    if temperature.ndim:
        raise ValueError(f"expected one temperature, got shape {temperature.shape}; use jax.vmap")
    return _soft_micr(_unit(x, x_bounds, "x"), _unit(y, y_bounds, "y"), temperature, grids)


def memberships(
    values: Float[Array, " n"], cuts: Float[Array, " cuts"], temperature: Float[Array, ""]
) -> Float[Array, "n parts"]:
    """The share of each record in each part; a record's shares add up to 1.

    Between cuts a < b that is sigmoid((b - value) / temperature) - sigmoid((a - value) /
    temperature). The outer parts are open: values far outside belong to them alone.
    """
    before = jnp.pad(
        _before(values, cuts, temperature), ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1))
    )
    return before[:, 1:] - before[:, :-1]


def _before(
    values: Float[Array, " n"], cuts: Float[Array, " cuts"], temperature: Float[Array, ""]
) -> Float[Array, "n cuts"]:
    """The share of each record that lies before each cut."""
    end = jnp.isinf(cuts)
    # No infinity gets into the quotient: its derivative would be 0 times infinity.
    distance = (jnp.where(end, 0, cuts)[None] - values[:, None]) / temperature
    return jnp.where(end[None], 1, lax.logistic(distance))


@partial(jax.jit, static_argnames="grids")
def _soft_micr(
    x: Float[Array, " n"],
    y: Float[Array, " n"],
    temperature: Float[Array, ""],
    grids: tuple[Grid, ...],
) -> Float[Array, ""]:
    held = lax.stop_gradient((x, y, temperature))
    best = _best_grid(*held, grids)
    merged, fixed = jnp.where(best.flipped, y, x), jnp.where(best.flipped, x, y)
    told = _information(merged, fixed, best.merged, best.fixed, temperature)
    # The truth is within [0, 1]; what is outside is rounding.
    return jnp.clip(told / jnp.log2(best.parts.astype(x.dtype)), 0, 1)


def _information(
    merged: Float[Array, " n"],
    fixed: Float[Array, " n"],
    merged_cuts: Float[Array, " merged_cuts"],
    fixed_cuts: Float[Array, " fixed_cuts"],
    temperature: Float[Array, ""],
) -> Float[Array, ""]:
    """Mutual information in bits of the soft counts on one grid: what is differentiated."""
    columns = memberships(merged, merged_cuts, temperature)
    rows = memberships(fixed, fixed_cuts, temperature)
    table = _product(columns, rows) / len(merged)
    margins = _phi(table.sum(axis=0)).sum() + _phi(table.sum(axis=1)).sum()
    return _phi(table).sum() - margins


def _best_grid(
    x: Float[Array, " n"],
    y: Float[Array, " n"],
    temperature: Float[Array, ""],
    grids: tuple[Grid, ...],
) -> _Best:
    """The grid of the plan, in either orientation, that scores most."""
    most_parts, most_rows = max(grid.parts for grid in grids), max(grid.rows for grid in grids)
    both = jnp.stack([x, y])
    found = []
    for group in _groups(grids, len(x)):
        parts = max(grid.parts for grid in group)
        cuts = _cuts(group, both.dtype)

        def optimise(item, parts=parts):
            grid, orientation = item
            merged, fixed = both[orientation], both[1 - orientation]
            score, size, merged_cuts = _optimise(merged, fixed, grid, temperature, parts)
            return _Best(
                score,
                jnp.pad(merged_cuts, (0, most_parts - parts), constant_values=NO_CUT),
                jnp.pad(grid.rows, (0, most_rows - 1 - grid.rows.size), constant_values=NO_CUT),
                size,
                orientation == 1,
            )

        twice = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), cuts)
        found.append(lax.map(optimise, (twice, jnp.repeat(jnp.arange(2), len(group)))))
    scored = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *found)
    best = scored.score.argmax()
    return jax.tree.map(lambda leaf: leaf[best], scored)


def _optimise(
    merged: Float[Array, " n"],
    fixed: Float[Array, " n"],
    grid: _Cuts,
    temperature: Float[Array, ""],
    parts: int,
) -> tuple[Float[Array, ""], Int[Array, ""], Float[Array, " merged_cuts"]]:
    """OptimizeAxis on soft counts: the best score, for how many parts, and their cuts.

    The recursion of `optimise`: G_1(t) = g(0, t), G_{k+1}(t) = max_s G_k(s) + g(s, t), and k
    parts score (H(rows) + G_k(last)) / log2 k. The choices of s are remembered.
    """
    rows = memberships(fixed, grid.rows, temperature)
    total = rows.sum(axis=0)
    inner = _product(_before(merged, grid.master, temperature), rows)
    # Behind a cut that is none there has to be exactly nothing.
    inner = jnp.where(jnp.isinf(grid.master)[:, None], total[None], inner)
    edges = jnp.concatenate([jnp.zeros_like(total)[None], inner, total[None]])
    inside = (edges[None] - edges[:, None]) / len(merged)
    gain = _phi(inside).sum(axis=2) - _phi(inside.sum(axis=2))
    gain = jnp.where(jnp.tri(len(gain), k=-1, dtype=bool), -jnp.inf, gain)

    def add_part(best, _):
        options = best[:, None] + gain
        best = options.max(axis=0)
        return best, (best[-1], options.argmax(axis=0))

    _, (told, chosen) = lax.scan(add_part, gain[0], length=parts - 1)
    sizes = jnp.arange(2, parts + 1, dtype=jnp.int32)
    scores = (told - _phi(total / len(merged)).sum()) / jnp.log2(sizes.astype(told.dtype))
    scores = jnp.where(sizes <= grid.parts, scores, -jnp.inf)
    size = sizes[scores.argmax()]

    def step_back(edge, step):
        number, choice = step
        edge = jnp.where(number <= size, choice[edge], edge)
        return edge, edge

    last = jnp.asarray(len(gain) - 1, chosen.dtype)
    _, at = lax.scan(step_back, last, (sizes, chosen), reverse=True)
    # A cut at either end leaves an empty part, which is none.
    edge_values = jnp.pad(grid.master, 1, constant_values=NO_CUT)
    return scores.max(), size, jnp.sort(edge_values[at])


def _phi(share: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """share log2 share; 0 with derivative 0 where there is nothing, and NaN of NaN."""
    nothing = share <= 0
    return jnp.where(nothing, 0, share * jnp.log2(jnp.where(nothing, 1, share)))


def _product(one: Float[Array, "n left"], other: Float[Array, "n right"]) -> Float[Array, "_ _"]:
    """Soft counts, never in the lower precision that some devices take for products."""
    return jnp.matmul(one.T, other, precision=lax.Precision.HIGHEST)


def _groups(grids: tuple[Grid, ...], n: int) -> list[tuple[Grid, ...]]:
    """Neighbouring grids that share a loop, and are padded to one shape.

    A loop takes half a second to compile, so a grid joins the ones before it while padding
    them all at most doubles the work, or adds a millisecond or so.
    """

    def work(rows: int, master: int) -> float:
        return rows * master * (master + n / 8)  # gains, and the product that counts

    groups: list[tuple[Grid, ...]] = []
    for grid in grids:
        joined = (*groups[-1], grid) if groups else (grid,)
        shape = max(one.rows for one in joined), max(one.master for one in joined)
        needed = sum(work(one.rows, one.master) for one in joined)
        if groups and len(joined) * work(*shape) <= 2 * needed + 2**18:
            groups[-1] = joined
        else:
            groups.append((grid,))
    return groups


def _cuts(group: tuple[Grid, ...], dtype: Any) -> _Cuts:
    """The cuts p/q of the grids of a group."""

    def of(sizes: list[int]) -> Float[Array, "grids cuts"]:
        cuts = np.full((len(sizes), max(sizes) - 1), NO_CUT)
        for row, size in zip(cuts, sizes, strict=True):
            row[: size - 1] = np.arange(1, size) / size
        return jnp.asarray(cuts, dtype)

    parts = jnp.asarray([grid.parts for grid in group], jnp.int32)
    return _Cuts(of([grid.rows for grid in group]), of([grid.master for grid in group]), parts)


def _columns(x: Any, y: Any) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Both columns in one floating-point dtype, of 32 bits at least."""
    x, y = jnp.asarray(x), jnp.asarray(y)
    for values, name in ((x, "x"), (y, "y")):
        if values.ndim != 1:
            raise ValueError(
                f"expected {name} to have one dimension, got {values.ndim}; for many pairs use "
                "jax.vmap"
            )
        if values.dtype.kind not in "biu" and not jnp.issubdtype(values.dtype, jnp.floating):
            raise TypeError(f"expected numbers in {name}, got dtype {values.dtype}")
    if len(x) != len(y):
        raise ValueError(
            f"expected x and y to have the same number of records, got {len(x)} and {len(y)}"
        )
    if len(x) < FEWEST_RECORDS:
        raise ValueError(f"expected at least {FEWEST_RECORDS} records, got {len(x)}")
    float64 = any(values.dtype == jnp.float64 for values in (x, y))
    dtype = jnp.float64 if float64 else jnp.float32
    return x.astype(dtype), y.astype(dtype)


def _unit(values: Float[Array, " n"], limits: Any, name: str) -> Float[Array, " n"]:
    """The values in units of the range, counted from its low end."""
    try:
        low, high = limits
    except (TypeError, ValueError):
        raise ValueError(f"expected bounds of {name} to be (low, high), got {limits!r}") from None
    if not any(isinstance(end, Tracer) for end in (low, high)):
        # Bounds are public, so their values may be shown.
        if not all(math.isfinite(end) for end in (low, high)):
            raise ValueError(f"expected finite numbers as bounds of {name}, got {low}, {high}")
        if low >= high:
            raise ValueError(f"expected low < high as bounds of {name}, got {low}, {high}")
    low, width = (jnp.asarray(end, values.dtype) for end in (low, high - low))
    return (values - low) / width


def _positive(temperature: Any) -> None:
    array = isinstance(temperature, np.ndarray | jax.Array)
    if not (array or isinstance(temperature, Real)) or isinstance(temperature, bool):
        raise TypeError(f"expected temperature to be a number above 0, got {temperature!r}")
    if not (array and temperature.ndim) and not 0 < float(temperature) < math.inf:
        raise ValueError(
            f"expected temperature > 0, got {float(temperature)}; 0.02 of the range is usual, and "
            "micr is the limit at 0"
        )
