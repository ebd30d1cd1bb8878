"""What the tests of selections share: neighbouring scores, and draws against an exact law."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

ALARM = 1e-6
DRAWS = 20_000  # a scale that is off by 3/2 or 2/3 is far below ALARM


def int32(values):
    return jnp.asarray(np.asarray(values, np.int32))


def boxes(corners, sensitivity):
    """Groups of score vectors in which any two differ by at most the sensitivity everywhere."""
    for corner in corners:
        yield list(itertools.product(*(range(c, c + sensitivity + 1) for c in corner)))


def pairs(vectors, sensitivity):
    """Each vector with all that move every score up or down by the whole sensitivity."""
    for vector in vectors:
        for signs in itertools.product((-sensitivity, sensitivity), repeat=len(vector)):
            yield [vector, tuple(v + s for v, s in zip(vector, signs, strict=True))]


def drawn(select, scores, key, draws):
    """How often each outcome comes up: one compiled program for all keys."""
    found = jax.vmap(lambda key: select(int32(scores), key=key))(jax.random.split(key, draws))
    rows, counts = np.unique(np.asarray(found).reshape(draws, -1), axis=0, return_counts=True)
    return {
        tuple(i for i in row if i >= 0): int(count)
        for row, count in zip(rows.tolist(), counts, strict=True)
    }


def p_value(counts, law):
    """Of a chi-square test of counted outcomes against their exact probabilities."""
    draws, outcomes = sum(counts.values()), list(law)
    assert set(counts) <= set(outcomes)
    expected = np.array([float(law[o]) for o in outcomes]) * draws
    found = np.array([counts.get(o, 0) for o in outcomes], float)
    large = expected >= 20
    expected = np.append(expected[large], expected[~large].sum())
    found = np.append(found[large], found[~large].sum())
    kept = expected > 0.5
    gaps = (found[kept] - expected[kept]) ** 2 / expected[kept]
    return stats.chi2.sf(gaps.sum(), kept.sum() - 1)
