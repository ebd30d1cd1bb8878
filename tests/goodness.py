"""Do draws follow a law, or not; and does a program touch only what it may."""

import itertools

import jax
import numpy as np
from scipy import stats


def cells(law, edges):
    """Exact probabilities of x < edges[0], edges[0] <= x < edges[1], ..., edges[-1] <= x."""
    tails = [1, *(law.tail(int(edge)) for edge in edges), 0]
    return np.array([float(a - b) for a, b in itertools.pairwise(tails)])


def p_value(draws, law, edges):
    """Of a chi-square test of draws against the exact law."""
    counts = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    expected = cells(law, edges) * len(draws)
    large = expected >= 20
    counts = np.append(counts[large], counts[~large].sum())
    expected = np.append(expected[large], expected[~large].sum())
    kept = expected > 0
    assert counts[~kept].sum() == 0
    statistic = ((counts[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    return stats.chi2.sf(statistic, kept.sum() - 1)


def equations(jaxpr):
    """Every equation of a program, those of inner programs too."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "eqns")
        ):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from equations(inner)


def dtypes(function, *arguments):
    """Every type that appears in a program."""
    closed = jax.make_jaxpr(function)(*arguments)
    found = {variable.aval.dtype for variable in closed.jaxpr.invars}
    for equation in equations(closed.jaxpr):
        found |= {v.aval.dtype for v in [*equation.invars, *equation.outvars]}
    return {str(dtype) for dtype in found}


def primitives(function, *arguments):
    """Every operation of a program."""
    return {e.primitive.name for e in equations(jax.make_jaxpr(function)(*arguments).jaxpr)}
