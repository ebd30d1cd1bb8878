"""Which columns each package takes: every kind is passed as it is, and what comes back is noted."""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.exact_peers.scores import PEERS

N = 300


def kinds() -> pd.DataFrame:
    """Columns of each kind that depend on `number`."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=N)
    y = x + 0.3 * rng.normal(size=N)
    cut = np.digitize(y, [-1, 0, 1])
    return pd.DataFrame(
        {
            "number": x,
            "other number": y,
            "missing values": np.where(rng.random(N) < 0.1, np.nan, y),
            "boolean": y > 0,
            "text": np.array(["south", "east", "north", "west"])[cut],
            "ordered": pd.Categorical.from_codes(cut, list("abcd"), ordered=True),
            "date": pd.Timestamp("2024-01-01") + pd.to_timedelta((100 * y).round(), "D"),
            "constant": np.ones(N),
        }
    )


def measured() -> dict[str, dict[str, str]]:
    """What each package answers, by the kind of column beside a column of numbers."""
    frame = kinds()
    found = {}
    for name, call in calls().items():
        found[name] = {kind: _answer(call, frame[["number", kind]]) for kind in frame.columns[1:]}
        found[name]["text, text"] = _answer(
            call, frame[["text"]].assign(again=np.where(frame["text"] == "east", "no", "yes"))
        )
    return found


def calls() -> dict[str, Callable[[pd.DataFrame], float]]:
    """Two columns in the way that each package takes them."""
    dm: Any = import_module("dpmic_jax")
    pps: Any = import_module("ppscore")
    import_module("phik")
    ccc = import_module("ccc.coef").ccc
    selection: Any = import_module("sklearn.feature_selection")
    found: dict[str, Callable[[Any], Any]] = {
        "dpmic_jax.pairwise": lambda two: dm.pairwise(two).matrix[0, 1],
        "phik": lambda two: two.phik_matrix(verbose=False).iloc[0, 1],
        "ppscore": lambda two: pps.score(two, *two.columns, catch_errors=False),
        "ccc-coef": lambda two: float(ccc(two.iloc[:, 0], two.iloc[:, 1])),
        "scikit-learn": lambda two: selection.mutual_info_regression(
            two.iloc[:, 1:], two.iloc[:, 0], random_state=0
        )[0],
    }
    arrays = {"scipy": "xi", "dcor": "dcor", "hyppo": "HSIC", "minepy": "minepy's MIC"}
    for package, name in arrays.items():
        pair = PEERS[name]().pair
        found[package] = lambda two, pair=pair: pair(
            two.iloc[:, 0].to_numpy(), two.iloc[:, 1].to_numpy()
        )
    return found


def _answer(call: Callable[[Any], Any], two: pd.DataFrame) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = call(two.copy())
    except Exception as error:  # every refusal is what is asked for
        return type(error).__name__
    if isinstance(value, dict):  # of ppscore
        if not value["is_valid_score"]:
            return f"no score: {value['case']}"
        value = value["ppscore"]
    return "NaN" if np.isnan(value) else f"{value:.2f}"
