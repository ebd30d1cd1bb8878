"""A statistic of all pairs of columns of a table, or of two tables."""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.data.frame import Frame, Mask, Missing, TakenColumn, frame_of, pair_by_pair
from dpmic_jax.data.limits import Column, NumberLimits
from dpmic_jax.data.table import FEWEST_RECORDS, bounds_of
from dpmic_jax.frames.result import Pairwise
from dpmic_jax.inference.multiple_testing import Control, FalseDiscovery
from dpmic_jax.inference.tables import Rng, TableTest
from dpmic_jax.mic import characteristic as read
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.characteristic import Measure
from dpmic_jax.mic.mixed import MixedScorer
from dpmic_jax.mic.statistics import MICe, MICr, Statistic
from dpmic_jax.mic.xlogx import Gains, gains_for

Positions = Int[np.ndarray, "pairs 2"]

_MICE, _CONTROL = MICe(), FalseDiscovery()


def pairwise(
    X: Any,
    *,
    statistic: Statistic = _MICE,
    bounds: Any = None,
    Y: Any = None,
    y_bounds: Any = None,
    measure: Measure = read.mic,
    missing: Missing = pair_by_pair,
    p_values: TableTest | bool = False,
    control: Control = _CONTROL,
    rng: Rng = 0,
    gains: Callable[[int], Gains] = gains_for,
    devices: Sequence[Device] = (),
    weights: None = None,
) -> Pairwise:
    """A statistic of all pairs of columns of a table, or of two tables. Not private.

    Columns are taken by their types (`describe` of the result says how): numbers, booleans, dates,
    timestamps, durations and ordered categories by rank, with tied values in one part; texts and
    other categories without an order (docs/pairwise.md). A constant column has 0 with every column.

    Args:
      X: records by columns: an array, a pandas, polars or pyarrow data frame, or a dictionary of
        columns.
      statistic: `MICe()`, `MICe.for_large_n()` or `MICr(B=...)`.
      bounds: for MICr, public (low, high) or `ScaledBounds` of every column of numbers or dates of
        X, in order (None for a column that needs none) or by name.
      Y: if given, pair every column of X with every column of Y instead; a Series or one column is
        one against all.
      y_bounds: the bounds of the columns of Y.
      measure: what to read off each characteristic matrix: `mic`, `tic`, `mas`, ...
      missing: `pair_by_pair`, so that each pair has its complete records, or `refuse_missing`.
      p_values: True or a `TableTest(...)` to test the independence of each pair.
      control: how p-values are adjusted for the number of pairs: `FalseDiscovery()` (Benjamini and
        Yekutieli), `BenjaminiHochberg()` or `FamilyWise()` (Holm).
      rng: a seed or generator of the random tables behind p-values.
      gains: `fast_gains`, or `exact_gains` for the same bits on any machine.
      devices: where to run; the first device of JAX's default backend if none are given.
      weights: none are taken; what is not None is refused.

    Returns:
      The statistic of every pair. Of one table the matrix is symmetric, and its diagonal
      holds each column with itself. It is NaN for pairs of fewer than 4 complete records.
    """
    _check(statistic, measure, missing, p_values, control, rng, weights)
    left = _frame(X, "X", missing)
    limits = _limits(left, statistic, bounds, "bounds")
    if Y is None:
        if len(left.columns) < 2:
            raise ValueError("expected X to have at least 2 columns, got 1; pass Y for cross pairs")
        if y_bounds is not None:
            raise ValueError("y_bounds are the bounds of Y, which was not passed")
        right, columns = left, left.columns
        places = range(len(columns))
        pairs = np.array(list(itertools.combinations_with_replacement(places, 2)))
    else:
        right = _frame(Y, "Y", missing)
        if left.n != right.n:
            raise ValueError(
                f"expected X and Y to have the same number of records, got {left.n} and {right.n}"
            )
        limits += _limits(right, statistic, y_bounds, "y_bounds")
        columns = left.columns + right.columns
        ends = len(left.columns), len(columns)
        pairs = np.array(list(itertools.product(range(ends[0]), range(*ends))))
    test = TableTest() if p_values is True else p_values or None
    score = MixedScorer(statistic, measure, gains, devices)
    found = _scored(columns, limits, pairs, score, test, np.random.default_rng(rng))
    shape = len(left.columns), len(right.columns)
    x, y = pairs.T - [[0], [len(columns) - shape[1]]]

    def matrix(values: Float[np.ndarray, " pairs"]) -> Float[np.ndarray, "x_columns y_columns"]:
        out = np.empty(shape, values.dtype)
        out[x, y] = values
        if Y is None:
            out[y, x] = values
        return out

    return Pairwise(
        matrix=matrix(found.values),
        records=matrix(found.records),
        p_values=None if test is None else matrix(found.p_values),
        x_columns=left.columns,
        y_columns=right.columns,
        measure=getattr(measure, "__name__", type(measure).__name__),
        statistic=type(statistic).__name__,
        control=control,
        backend=left.backend,
    )


class _Found(NamedTuple):
    """What is found of every pair."""

    values: Float[np.ndarray, " pairs"]
    p_values: Float[np.ndarray, " pairs"]
    records: Int[np.ndarray, " pairs"]


def _scored(
    columns: Sequence[TakenColumn],
    limits: Sequence[NumberLimits],
    pairs: Positions,
    score: MixedScorer,
    test: TableTest | None,
    rng: np.random.Generator,
) -> _Found:
    values, p_values = np.full((2, len(pairs)), np.nan)
    records = np.empty(len(pairs), np.int64)
    for some, complete in _groups(columns, pairs):
        used, places = np.unique(pairs[some], return_inverse=True)
        chosen, bins = _complete([columns[i] for i in used], complete)
        records[some] = len(chosen[0])
        if len(chosen[0]) < FEWEST_RECORDS:
            continue
        own = places.reshape(-1, 2)
        values[some] = score(chosen, [limits[i] for i in used], bins, own)
        distinct = own[:, 0] != own[:, 1]  # no column is tested against itself
        if test is not None and distinct.any():
            p_values[some[distinct]] = test.p_values(chosen, bins, own[distinct], rng=rng)
    return _Found(values, p_values, records)


def _groups(
    columns: Sequence[TakenColumn], pairs: Positions
) -> Iterator[tuple[Int[np.ndarray, " some"], Mask]]:
    """Pairs that have the same complete records, and which these are."""
    masks = {column.missing.tobytes(): column.missing for column in columns}
    place = {key: at for at, key in enumerate(masks)}
    of_column = np.array([place[column.missing.tobytes()] for column in columns])
    patterns, distinct = list(masks.values()), np.sort(of_column[pairs], axis=1)
    both, at = np.unique(distinct, axis=0, return_inverse=True)
    unions: dict[bytes, list[int]] = {}
    for index, (one, other) in enumerate(both.tolist()):
        union = np.packbits(patterns[one] | patterns[other]).tobytes()
        # By a digest: there may be as many unions as pairs.
        unions.setdefault(hashlib.blake2b(union, digest_size=16).digest(), []).append(index)
    for members in unions.values():
        one, other = both[members[0]]
        complete = ~(patterns[one] | patterns[other])
        yield np.flatnonzero(np.isin(at.ravel(), members)), complete


def _complete(
    columns: Sequence[TakenColumn], complete: Mask
) -> tuple[list[Column], Int[np.ndarray, " columns"]]:
    """Some records of columns, and how many categories of the nominal ones occur in these."""
    chosen, bins = [], []
    for column in columns:
        values = column.values if complete.all() else column.values[complete]
        count = 0
        if column.nominal:
            occur, codes = np.unique(values, return_inverse=True)
            # Two categories have no order that matters: they are numbers.
            values, count = codes, len(occur) if len(occur) > 2 else 0
        chosen.append(values)
        bins.append(count)
    return chosen, np.array(bins)


def _frame(data: Any, argument: str, missing: Missing) -> Frame:
    frame = frame_of(data, argument)
    if frame.n < FEWEST_RECORDS:
        raise ValueError(
            f"expected {argument} to have at least {FEWEST_RECORDS} records, got {frame.n}"
        )
    missing(frame, argument)
    return frame


def _limits(
    frame: Frame, statistic: Statistic, bounds: Any, argument: str
) -> tuple[NumberLimits, ...]:
    """Bounds of every column for MICr; any for MICe, which takes none."""
    if isinstance(statistic, MICe):
        if bounds is not None:
            raise ValueError(
                f"MICe cuts by rank and takes no {argument}; leave them out, or use MICr"
            )
        return ((0.0, 1.0),) * len(frame.columns)
    given: Any = bounds
    if bounds is not None and not isinstance(bounds, Mapping):
        if len(bounds) != len(frame.names):
            return bounds_of(frame.names, bounds, argument)  # which says what is wrong
        pairs = zip(frame.names, bounds, strict=True)
        given = {name: pair for name, pair in pairs if pair is not None}
    own = {column.name: _own_limits(column) for column in frame.columns if column.categories}
    if bounds is None and len(own) == len(frame.columns):
        given = {}
    if given is not None:
        both = {**own, **given}
        kinds = {column.name: column for column in frame.columns}
        known = [name for name in frame.names if name in both]
        given = {**both, **{name: _as_numbers(both[name], kinds[name]) for name in known}}
    return bounds_of(frame.names, given, argument)


def _own_limits(column: TakenColumn) -> NumberLimits:
    """Bounds between which each category has the same width."""
    return -0.5, max(len(column.categories), 2) - 0.5


def _as_numbers(bounds: Any, column: TakenColumn) -> Any:
    """Bounds of dates and durations in the unit of the column."""
    if not column.unit or not isinstance(bounds, Sequence):
        return bounds
    try:
        ends = np.array([_plain(end) for end in bounds], column.unit)
    except (TypeError, ValueError):
        raise ValueError(
            f"expected bounds of {column.name!r} as {column.kind}s, got {bounds!r}"
        ) from None
    return tuple(ends.astype(np.int64).tolist())


def _plain(end: Any) -> Any:
    """A moment in UTC without its zone."""
    if isinstance(end, datetime) and end.tzinfo is not None:
        return end.astimezone(UTC).replace(tzinfo=None)
    return end


def _check(
    statistic: Any, measure: Any, missing: Any, p_values: Any, control: Any, rng: Any, weights: Any
) -> None:
    if not isinstance(statistic, MICe | MICr):
        hint = f"; write {statistic.__name__}(...)" if isinstance(statistic, type) else ""
        raise TypeError(f"expected statistic=MICe() or MICr(B=...), got {statistic!r}{hint}")
    if not callable(measure) or isinstance(measure, type):
        raise TypeError(f"expected measure to be a function such as mic or tic, got {measure!r}")
    if not callable(missing):
        raise TypeError(
            "expected missing=pair_by_pair or missing=refuse_missing, both of dpmic_jax.frames, "
            f"got {missing!r}"
        )
    if not isinstance(p_values, bool | TableTest):
        raise TypeError(f"expected p_values=True or TableTest(...), got {p_values!r}")
    if isinstance(control, type) or not hasattr(control, "adjusted"):
        raise TypeError(
            "expected control=FalseDiscovery(), BenjaminiHochberg() or FamilyWise(), all of "
            f"dpmic_jax.inference, got {control!r}"
        )
    if isinstance(rng, bool) or not isinstance(rng, Integral | np.random.Generator):
        raise TypeError(f"expected rng to be an int or a numpy Generator, got {rng!r}")
    if weights is not None:
        raise ValueError(
            "weights are not taken, as MIC counts records: repeat records whose weights are whole "
            "numbers, or draw records in proportion to their weights"
        )
