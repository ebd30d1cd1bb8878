"""`PrivateMICSelector`: which features tell most about the target, for a budget."""

import os
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Tags

from dpmic_jax.data.schema import Schema
from dpmic_jax.dp.accounting.events import Event, ReplaceOne
from dpmic_jax.dp.rng.keys import AnyKey, SecretKey, secret_key, seeded_key
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.results import ScreenResult, Statement, backend_of
from dpmic_jax.screening import Above, Against, TopK, default_screen_statistic, screen
from dpmic_jax.screening.planning import Rule, plan
from dpmic_jax.sklearn.base import Selector
from dpmic_jax.sklearn.inputs import held_inputs, set_feature_names
from dpmic_jax.sklearn.schema import public_schema


class PrivateMICSelector(Selector):
    """Keep the features that tell most about the target, (epsilon, delta)-DP at every fit.

    The target is screened against each feature (`screen`), and the selection is released with
    noisy scores. Every `fit` is a release of its own: it is charged before a value is used, and
    k folds and a final fit are k + 1 charges. A fit that is refused leaves the estimator as it
    was. `transform` only drops columns: what it returns is as private as X, and so is a model
    that is fitted to it.

    What is promised is about the records that `fit` sees. It says nothing if they come out of a
    step that was fitted to the same records, such as a scaler or an imputer, or of a split that
    looked at y, such as a stratified one: there one person's record changes those of others.

    Args:
      epsilon: of each fit.
      bounds: what is public about the features: a (low, high) for all of them, one for each,
        bounds by name, a `Schema`, or the path of a bounds file. Values outside are clipped, and
        what is no number counts as the middle; no value is refused.
      k_features: keep the k strongest. Pays for k, whatever the number of features; or
      threshold: keep those whose noisy MICr is at least this. Pays for every feature, unless
      at_most: keep the first so many that are above the threshold. Pays for so many.
      target_bounds: what is public about the target: (low, high), or `Categories([...])` with
        all classes, unless `bounds` have it under the target's name.
      target: what the target is called in bounds, ledgers and statements.
      delta: of each fit; with a threshold and no `at_most` it buys smaller noise.
      selection_fraction: of epsilon, that choosing features takes; the rest is for their scores.
      ledger: the path of a ledger's file to charge; a path, since scikit-learn copies what it is
        given. Without one, record the charge yourself.
      key: "secret" for a new secret key at each fit; a `SecretKey`; or an integer seed, for
        research, which stamps results "seeded: not for release".
      records_per_person: how many records one person may own.
      statistic: a `MICr`, or a rule (n, epsilon for each value) -> MICr.

    Attributes:
      support_: which features are kept.
      scores_: noisy MICr of each feature with the target; NaN where none was released.
      result_: all that was released, as `screen` gives it.
      privacy_: the statement of what it cost.
      schema_: what was taken as public.
      n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Any,
        k_features: int | None = None,
        threshold: float | None = None,
        at_most: int | None = None,
        target_bounds: Any = None,
        target: str = "target",
        delta: float = 0.0,
        selection_fraction: float = 0.5,
        ledger: str | os.PathLike[str] | None = None,
        key: str | int | SecretKey = "secret",
        records_per_person: int = 1,
        statistic: MICr | Rule = default_screen_statistic,
    ):
        self.epsilon = epsilon
        self.bounds = bounds
        self.k_features = k_features
        self.threshold = threshold
        self.at_most = at_most
        self.target_bounds = target_bounds
        self.target = target
        self.delta = delta
        self.selection_fraction = selection_fraction
        self.ledger = ledger
        self.key = key
        self.records_per_person = records_per_person
        self.statistic = statistic

    def fit(self, X: Any, y: Any) -> "PrivateMICSelector":
        """Check, charge, then select.

        Args:
          X: records by features; an array or a data frame.
          y: the target, one value a record.
        """
        given = held_inputs(self, X, y)
        schema = public_schema(tuple(given.columns), self.bounds, self.target, self.target_bounds)
        features = len(schema.columns) - 1
        ask = self._ask(features)
        found = screen(
            {**given.columns, self.target: given.target},
            bounds=schema,
            epsilon=self.epsilon,
            delta=self.delta,
            ask=ask,
            key=_noise_key(self.key),
            ledger=_ledger_path(self.ledger),
            records_per_person=self.records_per_person,
            statistic=self.statistic,
        )
        set_feature_names(self, X, y)
        self.schema_: Schema = schema
        self.result_: ScreenResult = replace(found, backend=backend_of(X))
        self.privacy_: Statement = found.statement
        # The target is the last column, so the feature is the first of every pair.
        places = [found.names[i] for i in found.pairs[:, 0].tolist()]
        released = dict(zip(places, found.mic.tolist(), strict=True))
        self.scores_ = np.array([released.get(name, np.nan) for name in given.columns])
        # Where a few were chosen, they are the ones that were released.
        all_released = isinstance(ask, Against)
        self.support_ = self.scores_ >= (self._wanted(features)[1] if all_released else 0.0)
        return self

    def event(self, *, n_samples: int, n_features: int) -> Event:
        """What a fit will charge, but for its label; for `LedgerFile.reserve`. No data is read.

        Args:
          n_samples: number of records that it will see. Fits of any number draw from a reservation.
          n_features: number of features that bounds describe.
        """
        names = (*(f"x{index}" for index in range(n_features)), self.target)
        return plan(
            names=names,
            n=n_samples,
            ask=self._ask(n_features),
            epsilon=self.epsilon,
            delta=self.delta,
            statistic=self.statistic,
            relation=ReplaceOne(self.records_per_person),
            label="",
        ).event

    def _ask(self, features: int) -> Against | TopK | Above:
        k, least = self._wanted(features)
        against = Against(self.target)
        if self.at_most is not None:
            if self.threshold is None:
                raise ValueError("at_most goes with threshold; with k_features leave it out")
            return Above(
                least, self.at_most, selection_fraction=self.selection_fraction, candidates=against
            )
        return (
            TopK(k, selection_fraction=self.selection_fraction, candidates=against)
            if k < features
            else against
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        # No value is refused: whether it is would tell that someone has it.
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def _noise_key(given: Any) -> AnyKey:
    if isinstance(given, SecretKey):
        return given
    if isinstance(given, str) and given == "secret":
        return secret_key()
    if isinstance(given, Integral) and not isinstance(given, bool):
        return seeded_key(int(given))
    raise TypeError(
        'expected key="secret" for a new secret key at each fit, a SecretKey, or an integer seed, '
        f"which stamps results as not for release; got {type(given).__name__}"
    )


def _ledger_path(given: Any) -> str | os.PathLike[str] | None:
    if given is None or isinstance(given, str | os.PathLike):
        return given
    raise TypeError(
        "expected ledger as the path of a ledger's file, since scikit-learn copies objects, got "
        f"{type(given).__name__}"
    )
