"""Select the package's table of defaults from the results of `tuning`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float32

from dpmic_jax.mechanisms import sensitivity
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.paper import family, objective, tuning
from dpmic_jax.paper.store import Store
from dpmic_jax.paper.tuning import PAPER_EPSILONS, PAPER_RECORDS, Search, Setting

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
# WSUM of the cheap setting, relative to the most accurate one, may be up to this.
_SLACK = 1.05
_QUANTILES = 3
# Calibration uses the most accurate setting of this epsilon; others have nearly the same B.
_CALIBRATED = 1.0

Measured = Float32[np.ndarray, "settings distributions sets"]


def tuned(search: Search, store: Store, command: str) -> dict[str, Any]:
    """The contents of tuned.json; values that the store does not hold yet are computed."""
    known = family.family()
    rows, calibration, published = [], [], []
    for n in search.records:
        values, settings = tuning.values(search, n, store), search.candidates(n)
        chosen = {e: wsums(values, settings, exact_scale(n, e)) for e in EPSILONS}
        rows += [{"n": n, "epsilon": e, **_pair(chosen[e], settings)} for e in EPSILONS]
        best = int(np.argmin(chosen[_CALIBRATED]))
        parts = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
        quantiles = np.quantile(values[best], parts, axis=1).T
        calibration.append({"n": n, **_as_json(settings[best]), "values": _rounded(quantiles)})
        if n in PAPER_RECORDS:
            published += [_published(search, n, e, values, store) for e in PAPER_EPSILONS]
    return {
        "command": command,
        "search": search.description() | {"settings": "see dpmic_jax.paper.tuning"},
        "records": search.records,
        "epsilons": EPSILONS,
        "settings": rows,
        "published": published,
        "functions": known.names,
        "mic_star": known.stars.tolist(),
        "calibration": calibration,
    }


def exact_scale(n: int, epsilon: float) -> float:
    """Scale of `MICrLap`'s noise: the exact sensitivity divided by epsilon."""
    return float(sensitivity.exact(MICr(B=4), n)) / epsilon


def published_scale(n: int, epsilon: float) -> float:
    """Scale of the published MICr-Lap's noise: the published sensitivity divided by epsilon."""
    return float(sensitivity.published(MICr(B=4), n)) / epsilon


def wsums(
    values: Measured, settings: Sequence[Setting], scale: float
) -> Float[np.ndarray, " settings"]:
    """WSUM of every setting under Laplace noise of the given scale."""
    stars = family.family().stars
    errors = (objective.expected_error(one.astype(float), stars[:, None], scale) for one in values)
    return np.array([objective.wsum(error, stars) for error in errors])


def _pair(wsum: Float[np.ndarray, " settings"], settings: Sequence[Setting]) -> dict[str, Any]:
    near = [index for index, value in enumerate(wsum) if value <= _SLACK * wsum.min()]
    picked = {
        "accurate": int(np.argmin(wsum)),
        "cheap": min(near, key=lambda index: (settings[index].cost, wsum[index])),
    }
    return {
        kind: _as_json(settings[index]) | {"wsum": round(float(wsum[index]), 5)}
        for kind, index in picked.items()
    }


def _as_json(setting: Setting) -> dict[str, Any]:
    return {**setting._asdict(), "evaluations": setting.cost}


def _rounded(values: Float[np.ndarray, "distributions quantiles"]) -> list[list[float]]:
    return np.round(values.astype(float), 4).tolist()


def _published(
    search: Search, n: int, epsilon: float, values: Measured, store: Store
) -> dict[str, Any]:
    """The settings of the published mechanisms by WSUM, to compare with Table 2."""
    stars, settings = family.family().stars, search.candidates(n)
    places = [settings.index(setting) for setting in search.published(n)]
    lap = wsums(values[places], search.published(n), published_scale(n, epsilon))
    released = tuning.geom_values(search, n, epsilon, store)
    errors = np.abs(released.astype(float) - stars[:, None])
    geom = np.array([objective.wsum(error, stars) for error in errors])
    return {
        "n": n,
        "epsilon": epsilon,
        "MICr-Lap": _listed(search.published(n), lap),
        "MICr-Geom": _listed(search.published_geom(n), geom),
    }


def _listed(settings: Sequence[Setting], wsum: Float[np.ndarray, " settings"]) -> list[Any]:
    """[c, B, WSUM] of every setting, best first."""
    order = np.argsort(wsum, kind="stable")
    return [[settings[i].c, settings[i].B, round(float(wsum[i]), 5)] for i in order]
