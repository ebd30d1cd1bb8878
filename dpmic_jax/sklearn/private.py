"""`PrivateMICSelector`: differentially private selection of features by MICr."""

import os
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Tags

from dpmic_jax.data.schema import Schema
from dpmic_jax.data.source.coding import limits
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.rng.keys import AnyKey, SecretKey, secret_key, seeded_key
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.results import ScreenResult, Statement, backend_of
from dpmic_jax.runs.relation import relation_of
from dpmic_jax.screening import Above, Against, TopK, default_screen_statistic, screen
from dpmic_jax.screening.planning import Rule, plan
from dpmic_jax.sklearn.base import Selector
from dpmic_jax.sklearn.inputs import held_inputs, set_feature_names
from dpmic_jax.sklearn.schema import public_schema


class PrivateMICSelector(Selector):
    """Keep the features that depend most on the target, (epsilon, delta)-DP at every fit.

    The target is screened against each feature (`screen`), and the selection is released with
    noisy scores. Every `fit` is a separate release that is charged before a value is used: k folds
    and a final fit are k + 1 charges. A fit that is refused leaves the estimator unchanged.
    `transform` only drops columns: what it returns is as sensitive as X, and so is a model that is
    fitted to it.

    The guarantee is about the records that `fit` sees. It does not hold if these come from a step
    that was fitted to the same records, such as a scaler or an imputer, or from a split that uses
    y, such as a stratified one: there one person's record changes those of others.

    Args:
      epsilon: epsilon of each fit.
      bounds: the public description of the features: a (low, high) for all of them, one for each,
        bounds by name, a `Schema`, or the path of a bounds file. Values outside are clipped, and
        a value that is not a number counts as the midpoint; no value is refused.
      k_features: keep the k strongest. Noise grows with k, not with the number of features; or
      threshold: keep those whose noisy MICr is at least this. Noise grows with the number of
        features, unless
      at_most: keep the first `at_most` features above the threshold. Noise grows with `at_most`.
      target_bounds: the public description of the target: (low, high), or `Categories([...])` with
        all classes; None if `bounds` have it under the name of the target.
      target: the name of the target in bounds, ledgers and statements.
      delta: delta of each fit; it allows less noise for a threshold without `at_most`.
      selection_fraction: fraction of epsilon for selecting features; the rest is for their scores.
      ledger: the path of a ledger to charge; a path, because scikit-learn copies its parameters.
        Without one, account for the cost yourself.
      key: "secret" for a new secret key at each fit; a `SecretKey`; or an integer seed, for
        research, which marks results "seeded: not for release".
      records_per_person: largest number of records of one person.
      statistic: a `MICr`, or a rule (n, epsilon for each value) -> MICr.

    Attributes:
      support_: mask of the features that are kept.
      scores_: noisy MICr of each feature with the target; NaN where none was released.
      result_: the `ScreenResult` with everything that was released.
      privacy_: its privacy statement.
      schema_: the public description of features and target.
      n_features_in_, feature_names_in_: as in all estimators of scikit-learn.
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
        selection_fraction: float | None = None,
        ledger: str | os.PathLike[str] | None = None,
        key: str | int | SecretKey = "secret",
        records_per_person: int = 1,
        statistic: MICr | Rule = default_screen_statistic,
    ):
        # scikit-learn's `clone` needs parameters unchanged here, so `fit` checks them.
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
        """Check X and y, charge the ledger, and select features.

        Args:
          X: records by features; an array or a data frame.
          y: the target, one value for each record.
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
        # Attributes are set after the release, so a refused fit changes nothing.
        set_feature_names(self, X, y)
        self.schema_: Schema = schema
        self.result_: ScreenResult = replace(found, backend=backend_of(X))
        self.privacy_: Statement = found.statement
        # The target is the last column, so the feature is the first of every pair.
        features_released = [found.names[i] for i in found.pairs[:, 0].tolist()]
        released = dict(zip(features_released, found.mic.tolist(), strict=True))
        self.scores_ = np.array([released.get(name, np.nan) for name in given.columns])
        # If features were selected, they are those that were released.
        all_released = isinstance(ask, Against)
        self.support_ = self.scores_ >= (self._wanted(features)[1] if all_released else 0.0)
        return self

    def event(self, *, n_samples: int, n_features: int) -> Event:
        """The event that a fit charges, except for its label; for `LedgerFile.reserve`.

        Args:
          n_samples: number of records of the fit. Fits of any number draw from a reservation.
          n_features: number of features that bounds describe.
        """
        features = tuple(f"x{index}" for index in range(n_features))
        schema = public_schema(features, self.bounds, self.target, self.target_bounds)
        return plan(
            names=tuple(name for name, _ in schema.columns),
            bounds=[limits(rule) for _, rule in schema.columns],
            n=n_samples,
            ask=self._ask(n_features),
            epsilon=self.epsilon,
            delta=self.delta,
            statistic=self.statistic,
            relation=relation_of(schema, self.records_per_person),
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
        # No value is refused, because a refusal would reveal that somebody has it.
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
        f"which marks results as not for release; got {type(given).__name__}"
    )


def _ledger_path(given: Any) -> str | os.PathLike[str] | None:
    if given is None or isinstance(given, str | os.PathLike):
        return given
    raise TypeError(
        "expected ledger as the path of a ledger, because scikit-learn copies objects, got "
        f"{type(given).__name__}"
    )
