"""What mechanisms on public bounds have in common: release one pair of columns, or many."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Int

from dpmic_jax.mechanisms.release import Key, PrivateValue
from dpmic_jax.mic.binning import Bounds
from dpmic_jax.table import BoundsOf, Pairs, Table, one_pair, positions, table

Released = TypeVar("Released", bound=PrivateValue)


class OnBounds(ABC, Generic[Released]):
    """A mechanism whose columns have public bounds."""

    def release(
        self, x: Any, y: Any, *, bounds: Sequence[Bounds], key: Key, label: str = ""
    ) -> Released:
        """Release one pair; see `MICrLap.release`."""
        return self._alone(self._release(one_pair(x, y), np.array([[0, 1]]), bounds, key, label))

    def release_batch(
        self, X: Any, *, pairs: Pairs, bounds: BoundsOf, key: Key, label: str = ""
    ) -> Released:
        """Release many pairs of columns of a table, each at the full cost of one."""
        data = table(X, "X")
        return self._release(data, positions(data, pairs), bounds, key, label)

    @abstractmethod
    def _release(
        self,
        data: Table,
        pairs: Int[np.ndarray, "pairs 2"],
        bounds: BoundsOf,
        key: Key,
        label: str,
    ) -> Released:
        """Release pairs, by their positions in a table."""

    def _alone(self, found: Released) -> Released:
        """A release of one pair, without the axis of pairs."""
        return replace(found, value=np.asarray(found.value).item())
