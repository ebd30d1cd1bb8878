"""The comparison with other measures: its threshold, and what it calls equitable."""

import numpy as np
import pytest

from benchmarks.exact_peers.power import LEVEL, equitability, of_score
from benchmarks.exact_peers.scores import Score


def score(of):
    def many(x, y):
        return np.array([of(*pair) for pair in zip(x, y, strict=True)])

    return Score("made up", "another", of, lambda frame: None, many)


def test_power_is_at_a_level_of_at_most_5_percent_of_shuffled_pairs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(191, 2, 30))
    strength = np.r_[np.zeros(189), [5, 5]][:, None, None]
    y = strength * x + rng.normal(size=x.shape)
    names = [f"F{1 + i // 9}" for i in range(189)] + ["line", "line"]
    found = of_score(
        score(lambda x, y: abs(np.corrcoef(x, y)[0, 1])), names, x, y, rng.permuted(y, axis=2)
    )
    assert found["false_positives"] <= LEVEL
    assert found["by_name"]["line"] == 1
    low, high = found["functions"][1:]
    assert low < LEVEL < high


def test_a_score_that_depends_on_r_squared_alone_is_equitable_and_one_on_the_function_is_not():
    r_squared = np.tile(np.arange(1, 10) / 10, 21)[:, None] + np.zeros(4)
    function = np.repeat(np.arange(21), 9)[:, None]
    exact, confused = equitability(r_squared), equitability(r_squared + function / 20)
    assert exact == pytest.approx({"mean_interval": 0, "worst_interval": 0, "spread": 0})
    assert confused["worst_interval"] > 0.5
    assert confused["spread"] > 0.3
