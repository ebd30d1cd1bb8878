"""The scores that are compared: of one pair, of many pairs of one length, of a table.

A module of a peer is imported when its score is made, so that a process holds one peer only.
"""

import itertools
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

Column = np.ndarray
OnePair = Callable[[Column, Column], float]
ManyPairs = Callable[[np.ndarray, np.ndarray], np.ndarray]  # x, y: a row a pair
OfTable = Callable[[pd.DataFrame], Any]


class Score(NamedTuple):
    """A measure of dependence.

    Attributes:
      name: in tables.
      package: that it is of, as pip knows it.
      pair: of one pair.
      table: of all pairs of columns.
      many: of many pairs.
    """

    name: str
    package: str
    pair: OnePair
    table: OfTable
    many: ManyPairs


def _score(name: str, package: str, pair: OnePair, table: OfTable | None = None) -> Score:
    def each_pair(frame: pd.DataFrame) -> list[float]:
        columns = frame.to_numpy().T.copy()
        return [pair(x, y) for x, y in itertools.combinations(columns, 2)]

    def many(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.array([pair(*both) for both in zip(x, y, strict=True)])

    return Score(name, package, pair, table or each_pair, many)


def chatterjee() -> Score:
    stats: Any = import_module("scipy.stats")
    return _score("xi", "scipy", lambda x, y: stats.chatterjeexi(x, y).statistic)


def dcor() -> Score:
    module: Any = import_module("dcor")
    return _score("dcor", "dcor", module.distance_correlation)


def hyppo_dcorr() -> Score:
    test = import_module("hyppo.independence").Dcorr()
    return _score("Dcorr", "hyppo", lambda x, y: float(test.statistic(x[:, None], y[:, None])))


def hyppo_hsic() -> Score:
    test = import_module("hyppo.independence").Hsic()
    return _score("HSIC", "hyppo", lambda x, y: float(test.statistic(x[:, None], y[:, None])))


def hyppo_mgc() -> Score:
    test = import_module("hyppo.independence").MGC()
    return _score("MGC", "hyppo", lambda x, y: float(test.statistic(x[:, None], y[:, None])))


def phik() -> Score:
    import_module("phik")  # which gives data frames their method
    of_pair = import_module("phik.phik").phik_from_array
    return _score(
        "phi_k",
        "phik",
        lambda x, y: of_pair(x, y, num_vars=["x", "y"]),
        lambda frame: frame.phik_matrix(interval_cols=list(frame.columns), verbose=False),
    )


def ccc() -> Score:
    of = import_module("ccc.coef").ccc
    return _score("CCC", "ccc-coef", lambda x, y: float(of(x, y)), of)


def mutual_information() -> Score:
    of = import_module("sklearn.feature_selection").mutual_info_regression

    def table(frame: pd.DataFrame) -> list[np.ndarray]:
        X = frame.to_numpy()
        return [of(X[:, :i], X[:, i], random_state=0) for i in range(1, X.shape[1])]

    def one(x: np.ndarray, y: np.ndarray) -> float:
        return of(x[:, None], y, random_state=0)[0]

    return _score("mutual information", "scikit-learn", one, table)


def _fast_mine(name: str, est: str, c: float, read: str) -> Score:
    mine: Any = import_module("fast_mine")
    settings = mine.MineParameter(alpha=0.6, c=c, est=getattr(mine, est))

    def pair(x: Column, y: Column) -> float:
        problem = mine.MineProblem(x.astype(float), y.astype(float), len(x))
        found = mine.mine_compute_score(problem, settings)
        return mine.mine_mic(found) if read == "mic" else mine.mine_tic(found, True)

    return _score(name, "fast-mine", pair)


def minepy_mic() -> Score:
    return _fast_mine("minepy's MIC", "EST_MIC_APPROX", 15, "mic")


def minepy_tic() -> Score:
    return _fast_mine("minepy's TIC", "EST_MIC_E", 5, "tic")


def ppscore() -> Score:
    module: Any = import_module("ppscore")

    def pair(x: Column, y: Column) -> float:
        return module.score(pd.DataFrame({"x": x, "y": y}), "x", "y")["ppscore"]

    return _score("PPS", "ppscore", pair, module.matrix)


def mice() -> Score:
    dm: Any = import_module("dpmic_jax")
    found = _score("MICe", "dpmic_jax", dm.mice, dm.pairwise)
    return found._replace(many=lambda x, y: _characteristics(x, y, 15).mic)


def mice_large() -> Score:
    """The setting for many records."""
    dm: Any = import_module("dpmic_jax")
    ladder = import_module("dpmic_jax.mic.grids").ladder
    statistic = dm.MICe(B=lambda n: min(n**0.6, 150.0), c=5, sizes=ladder(1.25))

    def pair(x: Column, y: Column) -> float:
        return dm.pairwise({"x": x, "y": y}, statistic=statistic).matrix[0, 1]

    return _score(
        "MICe, B <= 150, c = 5, ladder",
        "dpmic_jax",
        pair,
        lambda frame: dm.pairwise(frame, statistic=statistic),
    )


def tic() -> Score:
    dm: Any = import_module("dpmic_jax")
    read = import_module("dpmic_jax.mic.characteristic").tic_normalised
    found = _score(
        "TIC of MICe",
        "dpmic_jax",
        lambda x, y: dm.characteristic(x, y, statistic=dm.MICe(c=5)).tic_normalised,
        lambda frame: dm.pairwise(frame, statistic=dm.MICe(c=5), measure=read),
    )
    return found._replace(many=lambda x, y: _characteristics(x, y, 5).tic_normalised)


def table_test() -> Score:
    """1 - p of `TableTest`: draws of all untied pairs of one length are shared."""
    dm: Any = import_module("dpmic_jax")

    def many(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        pairs = np.arange(2 * len(x)).reshape(2, -1).T
        return 1 - dm.TableTest().p_values(
            [*x, *y], np.zeros(2 * len(x), int), pairs, rng=np.random.default_rng(0)
        )

    def table(frame: pd.DataFrame) -> np.ndarray:
        columns = list(frame.to_numpy().T.copy())
        pairs = np.array(list(itertools.combinations(range(len(columns)), 2)))
        return dm.TableTest().p_values(columns, np.zeros(len(columns), int), pairs, rng=0)

    found = _score(
        "TIC of few cells: p-value",
        "dpmic_jax",
        lambda x, y: float(many(x[None], y[None])[0]),
        table,
    )
    return found._replace(many=many)


def adjusted() -> Score:
    """MICe adjusted for chance: the largest (entry - mean) / sd, both of independent pairs."""
    null: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def many(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        n = x.shape[1]
        if n not in null:
            drawn = np.random.default_rng([20_261_119, n]).random((2, 400, n))
            by_chance = _characteristics(*drawn, 5).values
            null[n] = by_chance.mean(axis=0), by_chance.std(axis=0)
        mean, deviation = null[n]
        entries = _characteristics(x, y, 5).values
        return ((entries - mean) / np.maximum(deviation, 1e-9)).max(axis=1)

    found = _score(
        "MICe, adjusted for chance",
        "dpmic_jax",
        lambda x, y: float(many(x[None], y[None])[0]),
    )
    return found._replace(many=many)


def distance() -> Score:
    """The distance from independence of ranks, in 16 by 16 parts: what screens release."""
    jax: Any = import_module("jax")
    module: Any = import_module("dpmic_jax.mic.distance")
    program = jax.jit(module.split_distance)

    def many(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        n, parts = x.shape[1], module.PARTS
        cells = _parts(x, parts) * parts + _parts(y, parts)
        counts = [np.bincount(row, minlength=parts**2).reshape(parts, parts) for row in cells]
        lanes = np.moveaxis(np.array(counts, np.int32), 0, 2)
        steps, room, found = module.steps(n), 16 if len(x) <= 16 else 512, []
        for start in range(0, len(x), room):
            some = lanes[..., start : start + room]
            full = np.pad(some, ((0, 0), (0, 0), (0, room - some.shape[2])), mode="edge")
            both = (program(each, steps) for each in (full, full.swapaxes(0, 1).copy()))
            found.append(np.maximum(*map(np.asarray, both))[: some.shape[2]])
        return np.concatenate(found) / (2 * int(steps.number) * n)

    def table(frame: pd.DataFrame) -> np.ndarray:
        columns = frame.to_numpy().T
        x, y = np.array(list(itertools.combinations(range(len(columns)), 2))).T
        return many(columns[x], columns[y])

    found = _score(
        "distance from independence",
        "dpmic_jax",
        lambda x, y: float(many(x[None], y[None])[0]),
        table,
    )
    return found._replace(many=many)


def _parts(values: np.ndarray, parts: int) -> np.ndarray:
    ranks = values.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    return ranks * parts // values.shape[1]


def _characteristics(x: np.ndarray, y: np.ndarray, c: float) -> Any:
    """Characteristic matrices of MICe with B = n^0.6."""
    dm: Any = import_module("dpmic_jax")
    exact = import_module("dpmic_jax.mic.characteristic").Characteristic
    found = []
    for start in range(0, len(x), 4096):
        some = np.stack([x[start : start + 4096], y[start : start + 4096]]).transpose(2, 1, 0)
        width = some.shape[1]
        pairs = np.arange(2 * width).reshape(-1, 2).tolist()
        found.append(
            dm.characteristics(some.reshape(len(some), -1), pairs=pairs, statistic=dm.MICe(c=c))
        )
    return exact(np.concatenate([each.values for each in found]), found[0].entries)


PEERS: dict[str, Callable[[], Score]] = {
    "xi": chatterjee,
    "dcor": dcor,
    "mutual information": mutual_information,
    "minepy's MIC": minepy_mic,
    "minepy's TIC": minepy_tic,
    "phi_k": phik,
    "CCC": ccc,
    "PPS": ppscore,
    "Dcorr": hyppo_dcorr,
    "HSIC": hyppo_hsic,
    "MGC": hyppo_mgc,
}
OURS: dict[str, Callable[[], Score]] = {
    "MICe": mice,
    "MICe, B <= 150, c = 5, ladder": mice_large,
    "MICe, adjusted for chance": adjusted,
    "TIC of MICe": tic,
    "TIC of few cells: p-value": table_test,
    "distance from independence": distance,
}
SCORES = OURS | PEERS
