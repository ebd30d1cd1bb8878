"""Rank statistics from their definitions, pair by pair; shares no code with the package."""

from fractions import Fraction
from math import sqrt


def sign(a, b):
    return (a > b) - (a < b)


def pairs(xs, ys):
    """Concordant less discordant pairs."""
    n = len(xs)
    return sum(sign(xs[i], xs[j]) * sign(ys[i], ys[j]) for i in range(n) for j in range(i))


def tau(xs, ys):
    n = len(xs)
    return Fraction(2 * pairs(xs, ys), n * (n - 1)) if n > 1 else Fraction(0)


def ranks(xs):
    """Tied values share the mean of their ranks."""
    return [sum(1 for b in xs if b < a) + Fraction(sum(1 for b in xs if b == a) + 1, 2) for a in xs]


def rho(xs, ys):
    """Covariance of ranks over its largest value."""
    n = len(xs)
    if n < 2:
        return Fraction(0)
    mean = Fraction(n + 1, 2)
    total = sum((a - mean) * (b - mean) for a, b in zip(ranks(xs), ranks(ys), strict=True))
    return 12 * total / Fraction(n * (n * n - 1))


def by_distance(xs, ys):
    """Definition 7, with n (n^2 - 1)."""
    n = len(xs)
    apart = sum((a - b) ** 2 for a, b in zip(ranks(xs), ranks(ys), strict=True))
    return abs(1 - 6 * apart / Fraction(n * (n * n - 1)))


def tau_weight(m):
    return Fraction(9 * m * (m - 1), 2 * (2 * m + 5))


def rho_weight(m):
    return Fraction(m - 1) if m else Fraction(0)


def conditional(xs, ys, zs, statistic, weight, signed=False):
    """Definitions 6 and 8: (sum of w |theta|, sum of w), whose score is first / sqrt(second)."""
    top, whole = Fraction(0), Fraction(0)
    for block in set(zs):
        at = [i for i, z in enumerate(zs) if z == block]
        theta = statistic([xs[i] for i in at], [ys[i] for i in at])
        top += weight(len(at)) * (theta if signed else abs(theta))
        whole += weight(len(at))
    return abs(top), whole


def score(*args, **options):
    top, whole = conditional(*args, **options)
    return float(top) / sqrt(whole) if whole else 0.0
