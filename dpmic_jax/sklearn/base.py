"""The base class of both selectors, whose errors show no values."""

from typing import Any

import numpy as np
from jaxtyping import Bool

try:
    from sklearn.base import BaseEstimator
    from sklearn.feature_selection import SelectorMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise ImportError(
        "dpmic_jax.sklearn needs scikit-learn 1.6 or newer: pip install 'dpmic_jax[sklearn]'"
    ) from None

from dpmic_jax.dp.arithmetic.exact_decimal import check_positive_int, check_probability
from dpmic_jax.sklearn.inputs import table_of


class Selector(SelectorMixin, BaseEstimator):
    """A selector of the features in `support_`, which subclasses set in `fit`."""

    support_: Bool[np.ndarray, " features"]
    k_features: int | None
    threshold: float | None

    def transform(self, X: Any) -> Any:
        """X with the selected features only."""
        check_is_fitted(self, "support_")
        table_of(X)  # refuses arrays that scikit-learn would quote in its error messages
        return super().transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """X with columns of zeros for the features that were not selected."""
        check_is_fitted(self, "support_")
        table_of(X)
        return super().inverse_transform(X)

    def _get_support_mask(self) -> Any:
        check_is_fitted(self, "support_")
        return self.support_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _wanted(self, features: int) -> tuple[int, float]:
        """The largest number of features to keep, and the least score of a kept feature."""
        if (self.k_features is None) == (self.threshold is None):
            raise ValueError("expected either k_features or threshold, and not both")
        if self.threshold is not None:
            return features, check_probability("threshold", self.threshold)
        k = check_positive_int("k_features", self.k_features or 0)
        if k > features:
            raise ValueError(f"expected k_features <= n_features = {features}, got {k}")
        return k, 0.0
