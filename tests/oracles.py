"""Slow and obvious versions of everything, sharing no code with the package."""

import itertools
import math
from fractions import Fraction

import numpy as np


def information(table):
    """Mutual information in bits of a table of counts, from the definition."""
    p = np.asarray(table, float)
    p = p / p.sum()
    outer = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    seen = p > 0
    return float((p[seen] * np.log2(p[seen] / outer[seen])).sum())


def table_of(a, b):
    counts = np.zeros((max(a) + 1, max(b) + 1))
    np.add.at(counts, (np.asarray(a), np.asarray(b)), 1)
    return counts


def plan(B, c, rule="reshef", sizes=None):
    """(l, K, k_max) for every fixed-axis size."""
    B = math.floor(B)
    out = []
    for rows in sizes or range(2, B // 2 + 1):
        parts = min(rows, B // rows)
        master = max(2, math.floor(Fraction(str(c)) * (parts if rule == "reshef" else rows)))
        out.append((rows, master, min(parts, master)))
    return out


def mass_codes(values, parts):
    """Walk the tied groups in order, as the rule says it, in exact arithmetic."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    part_of, n = [], len(group)
    current, held, seen, mean = 0, 0, 0, Fraction(n, parts)
    for size in sizes.tolist():
        if held and abs(held + size - mean) >= abs(held - mean):
            current, held = current + 1, 0
            mean = Fraction(n - seen, parts - current)
        part_of.append(current)
        held, seen = held + size, seen + size
    return np.array(part_of)[group]


def width_codes(values, parts, low, high):
    """Count the exact cuts at or below each value, rounded to its dtype as the rule says."""
    values = np.asarray(values)
    cuts = [
        Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(p, parts)
        for p in range(1, parts)
    ]
    if values.dtype.kind == "f":
        cuts = [Fraction(float(nearest(cut, values.dtype))) for cut in cuts]
    exact = [Fraction(value.item()) for value in values]
    return np.array([sum(cut <= value for cut in cuts) for value in exact])


def nearest(value, dtype):
    """The nearest float, by trying the neighbours of a first guess."""
    guess = dtype.type(float(value))
    options = [
        np.nextafter(guess, dtype.type(-np.inf)),
        guess,
        np.nextafter(guess, dtype.type(np.inf)),
    ]
    gap = min(abs(Fraction(float(option)) - value) for option in options)
    ties = [option for option in options if abs(Fraction(float(option)) - value) == gap]
    return next((t for t in ties if int(t.view(f"u{dtype.itemsize}")) % 2 == 0), ties[0])


def merge_by_enumeration(columns, rows, master, parts):
    """Most information that exactly `parts` merged master columns keep: try them all."""
    counts = np.zeros((master, max(rows) + 1))
    np.add.at(counts, (np.asarray(columns), np.asarray(rows)), 1)
    return max(
        information(np.add.reduceat(counts, [0, *cuts], axis=0))
        for cuts in itertools.combinations(range(1, master), parts - 1)
    )


def merge_by_recursion(columns, rows, master, parts):
    """The same in float64 by dynamic programming, for 2 .. parts."""
    counts = np.zeros((master, max(rows) + 1))
    np.add.at(counts, (np.asarray(columns), np.asarray(rows)), 1)
    n = counts.sum()

    def phi(a):
        return np.where(a > 0, a * np.log2(np.where(a > 0, a, 1)), 0)

    edges = np.vstack([np.zeros((1, counts.shape[1])), counts.cumsum(axis=0)])
    gain = np.full((master + 1, master + 1), -np.inf)
    for s in range(master + 1):
        inside = edges[s:] - edges[s]
        gain[s, s:] = phi(inside).sum(axis=1) - phi(inside.sum(axis=1))
    best, found = gain[0], []
    entropy = phi(n) - phi(counts.sum(axis=0)).sum()
    for _ in range(2, parts + 1):
        best = (best[:, None] + gain).max(axis=0)
        found.append((entropy + best[-1]) / n)
    return found


def characteristic(x, y, B, c, codes, merge, rule="reshef", sizes=None):
    """{(k, l): value} with k parts on x and l on y; `codes(values, parts, axis)` bins."""
    entries = {}
    for (merged, m_axis), (fixed, f_axis), flip in (
        ((x, 0), (y, 1), False),
        ((y, 1), (x, 0), True),
    ):
        for rows, master, parts in plan(B, c, rule, sizes):
            found = merge(codes(merged, master, m_axis), codes(fixed, rows, f_axis), master, parts)
            for k, bits in zip(range(2, parts + 1), found, strict=True):
                cell = (rows, k) if flip else (k, rows)
                entries[cell] = max(entries.get(cell, 0.0), bits / math.log2(k))
    return entries


def mice(x, y, B, c, **settings):
    entries = characteristic(
        x, y, B, c, lambda v, parts, _: mass_codes(v, parts), merge_by_recursion, **settings
    )
    return max(entries.values())


def micr(x, y, bounds, B, c, **settings):
    entries = characteristic(
        x,
        y,
        B,
        c,
        lambda v, parts, axis: width_codes(v, parts, *bounds[axis]),
        merge_by_recursion,
        **settings,
    )
    return max(entries.values())


def enumerate_merges(columns, rows, master, parts):
    return [merge_by_enumeration(columns, rows, master, k) for k in range(2, parts + 1)]


def mic(x, y, B):
    """MIC itself (Definition 2.1): every grid with at most B cells, every cut on both axes."""

    def partitions(values, parts):
        steps = np.unique(values)[1:]
        for cuts in itertools.combinations(steps, parts - 1):
            yield np.searchsorted(np.array(cuts), values, side="right")

    best = 0.0
    for k, rows in itertools.product(range(2, B // 2 + 1), repeat=2):
        if k * rows <= B:
            for a in partitions(x, k):
                for b in partitions(y, rows):
                    best = max(best, information(table_of(a, b)) / math.log2(min(k, rows)))
    return best


def split_distance(counts):
    """The distance from independence over splits of the rows, from the definition in `distance`.

    By rationals: every t of the definition, every side, and the total variation to the nearest
    table whose columns all have the share t of their records on the near side.
    """
    parts, best = len(counts), Fraction(0)
    steps, price = _steps_and_price(int(counts.sum()))
    for side in itertools.product([False, True], repeat=parts - 1):
        cut = sorted(side, reverse=True) == list(side)
        eighths = all(side[i] == side[i + 1] for i in range(0, parts - 2, 2)) and not side[-1]
        if not any(side) or not (cut or eighths):
            continue
        best = max(best, _across(counts, np.array([*side, False]), steps) - (0 if cut else price))
    return best


def nominal_distance(counts):
    """The same of a nominal column, whose bins are the rows: any subset of them may be a side.

    One bin against the others is free. More than eight bins have sides of two, and more than
    sixteen have no other sides.
    """
    bins, best = len(counts), Fraction(0)
    steps, price = _steps_and_price(int(counts.sum()))
    sizes = range(1, bins) if bins <= 8 else [1, 2] if bins <= 16 else [1]
    for size in sizes:
        for chosen in itertools.combinations(range(bins), size):
            side = np.isin(np.arange(bins), chosen)
            free = size in (1, bins - 1)
            best = max(best, _across(counts, side, steps) - (0 if free else price))
    return best


def length_price(bins, n):
    """What is taken off if the other column has many bins: (sqrt(bins) - 4) / (2 sqrt n)."""
    steps, _ = _steps_and_price(n)
    above = math.isqrt(bins * n) + 1 - math.isqrt(16 * n)
    return Fraction(steps * above, 2 * steps * n) if bins > 16 else Fraction(0)


def _steps_and_price(n):
    steps = 32
    while steps < 256 and 16 * steps**2 < 25 * n:
        steps *= 2
    root = math.isqrt(n) + (math.isqrt(n) ** 2 < n)
    return steps, Fraction((steps * root + 1) // 2, 2 * steps * n)


def _across(counts, side, steps):
    near, every = counts[side].sum(axis=0), counts.sum(axis=0)
    return min(_alike(one, every, int(counts.sum()), steps) for one in (near, every - near))


def _alike(near, every, n, steps):
    k = np.arange(steps + 1)
    apart = np.abs((steps + k)[:, None] * near - steps * every).sum(axis=1)
    beyond = np.abs(steps * n - (steps + k) * near.sum())
    weight = (256 * (steps - k)) // (steps + k)
    return Fraction(int((apart + weight * beyond // 256).min()), 2 * steps * n)
