"""Results of screens, made by hand: nothing is computed for them."""

import itertools
from fractions import Fraction

import numpy as np

from dpmic_jax.dp.accounting.events import Event, PureDP, ReplaceOne
from dpmic_jax.results import MICrSettings, ScreenResult, Statement

NAMES = ("age", "dose", "<script>alert(1)</script>", '"=1+1", # no $comment$', "naïve\nline")


def event_of(n=20_000, records=1):
    return Event(
        mechanism="MICrLap",
        guarantee=PureDP(0.125),
        relation=ReplaceOne(records),
        n=n,
        sensitivity=Fraction(1, 1024),
        count=10,
    )


def statement_of(*, n=20_000, records=1, **changes):
    given = {
        "relation": ReplaceOne(records),
        "epsilon": 1.25,
        "delta": 3e-07,
        "mechanism": "MICr-Lap, all pairs",
        "guarantee": "10 releases of 0.125-DP each",
        "sensitivity": 0.000976562512345,
        "n": n,
        "micr": MICrSettings(B=151, c=5.5, sizes="ladder(1.25)", sensitivity=0.000876562512345),
        "key_is_secret": True,
        "version": "0.9.7",
        "ledger": "0f3a9c#41",
        "run": "run-7c1f",
        "event": event_of(n, records).to_json(),
    }
    return Statement(**{**given, **changes})


def result_of(names=NAMES, *, seed=0, key_is_secret=True, **changes):
    pairs = np.array(list(itertools.combinations(range(len(names)), 2)))
    mic = np.asarray(changes.pop("mic", np.random.default_rng(seed).random(len(pairs))))
    half_width = changes.pop("half_width", 0.04)
    given = {
        "names": names,
        "pairs": pairs,
        "mic": mic,
        "lower": np.clip(mic - half_width, 0, 1),
        "upper": np.clip(mic + half_width, 0, 1),
        "distance": mic / 4,
        "noise_sd": 0.02,
        "distance_noise_sd": 0.001,
        "dependence_threshold": 0.075,
        "candidates": len(pairs),
        "ask": "all pairs",
        "statement": statement_of(key_is_secret=key_is_secret),
    }
    return ScreenResult(**{**given, **changes})


def estimated_of(**changes):
    """A result whose MIC is estimated from the distance."""
    return result_of(noise_sd=None, statement=statement_of(micr=None), **changes)
