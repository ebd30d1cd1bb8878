from collections import Counter
from itertools import permutations
from math import factorial

import jax
import numpy as np
import pytest

from dpmic_jax.dp.rng.orders import uniform_order, untied


@pytest.mark.parametrize("n", [3, 4])
def test_every_order_is_equally_likely(n):
    keys = jax.random.split(jax.random.key(0), 2400)
    found = Counter(tuple(uniform_order(key, n).tolist()) for key in keys)
    expected = len(keys) / factorial(n)
    chi = sum((found[order] - expected) ** 2 / expected for order in permutations(range(n)))
    assert sum(found[order] for order in permutations(range(n))) == len(keys)
    # Of at most 23 degrees of freedom, above 60 with probability 4e-5.
    assert chi < 60


def test_further_words_decide_only_between_equal_ones():
    words = np.array([5, 2, 5, 1, 5], np.uint64)
    orders = {tuple(untied(words, jax.random.key(seed)).tolist()) for seed in range(60)}
    assert orders == {(3, 1, *rest) for rest in permutations((0, 2, 4))}
