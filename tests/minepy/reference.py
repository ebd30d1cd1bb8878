"""The procedure of 2011 as its supplement prints it, record by record."""

import itertools
import math

import numpy as np
import oracles


def equipartition(values, parts):
    """EquipartitionYAxis is the rule for tied groups: codes, and how many parts came out."""
    codes = oracles.mass_codes(values, parts)
    return codes, codes.max() + 1


def clumps(ordered, rows):
    """GetClumpsPartition: `ordered` values of one axis, the rows of the same records."""
    labels, begin, own = list(rows), 0, -1
    while begin < len(rows):
        end = begin
        while end < len(rows) and ordered[end] == ordered[begin]:
            end += 1
        if len(set(rows[begin:end])) > 1:
            labels[begin:end] = [own] * (end - begin)
            own -= 1
        begin = end
    return np.cumsum([0, *(a != b for a, b in itertools.pairwise(labels))])


def superclumps(labels, most):
    return labels if labels[-1] < most else equipartition(labels, most)[0]


def half(x, y, B, c):
    """{(parts of x, rows of y): I / log min}, with y fixed: ApproxMaxMI for every size."""
    order, found = np.argsort(x, kind="stable"), {}
    for rows in range(2, B // 2 + 1):
        codes, obtained = equipartition(y, rows)
        codes, most = codes[order], B // rows
        master = superclumps(clumps(x[order], codes.tolist()), max(int(c * most), 1))
        # Asked for more parts than there are clumps, all of them are taken.
        bits = oracles.merge_by_recursion(master, codes, master[-1] + 1, most)
        for k, information in zip(range(2, most + 1), bits, strict=True):
            fewer = min(k, obtained)
            found[k, rows] = information / math.log2(fewer) if fewer > 1 else 0.0
    return found


def matrix(x, y, alpha, c, est):
    """minepy's matrix: a list by rows of y, of arrays by parts of x."""
    n = len(x)
    B = math.floor(max(n**alpha, 4) if alpha <= 1 else min(alpha, n))
    upright, flipped = half(x, y, B, c), half(y, x, B, c)

    def entry(rows, parts):
        options = upright[parts, rows], flipped[rows, parts]
        return max(options) if est == "mic_approx" else options[0 if rows > parts else 1]

    return [[entry(a, b) for b in range(2, B // a + 1)] for a in range(2, B // 2 + 1)]


def statistics(mine):
    return {
        "mic": mine.mic(),
        "mas": mine.mas(),
        "mev": mine.mev(),
        "mcn": mine.mcn(),
        "mcn 0.2": mine.mcn(0.2),
        "mcn_general": mine.mcn_general(),
        "gmic": mine.gmic(),
        "gmic 2": mine.gmic(2),
        "tic": mine.tic(),
        "tic norm": mine.tic(norm=True),
    }


KINDS = 6


def column(kind, n, rng):
    """Untied, two values, five values, rounded, mostly zero, constant."""
    return (
        lambda: rng.random(n),
        lambda: rng.integers(0, 2, n).astype(float),
        lambda: rng.integers(0, 5, n).astype(float),
        lambda: np.round(rng.normal(size=n), 1),
        lambda: (rng.random(n) < 0.1) * rng.random(n),
        lambda: np.full(n, 2.5),
    )[kind]()


def pair(seed, most=120):
    """Two columns of any kinds, one in three with a relation; every tenth of 2 to 4 records."""
    rng = np.random.default_rng([11, seed])
    n = int(rng.integers(2, 5)) if seed % 10 == 0 else int(rng.integers(5, most))
    x, y = (column(kind, n, rng) for kind in rng.integers(0, KINDS, 2))
    return (x, np.round(x * x + 0.1 * y, 2)) if seed % 3 == 0 else (x, y)
