"""Mechanisms of this library as measurements of OpenDP, which compose with its own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpmic_jax.data.limits import NumberLimits
from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_positive_int
from dpmic_jax.dp.rng.keys import AnyKey, is_secret
from dpmic_jax.mechanisms.base import OnBounds

if TYPE_CHECKING:
    from opendp.mod import Measurement


def to_opendp(
    mechanism: OnBounds[Any], *, n: int, bounds: Sequence[NumberLimits], key: AnyKey
) -> "Measurement":
    """A measurement that releases the value of a pair of columns by an epsilon-DP mechanism.

    Its input is a pair (x, y) of columns of n records, and its distance the number of persons whose
    records are replaced (`change_one_distance`): each has up to `mechanism.relation.records`. The
    measure is `max_divergence`. OpenDP accounts for it: nothing is charged to a ledger. Every
    invocation is a release with fresh noise.

    OpenDP calls measurements that are defined outside of it honest-but-curious, as it cannot check
    them: call `dp.enable_features("contrib", "honest-but-curious")` before.

    Args:
      mechanism: such as `MICrLap(epsilon=0.5)`.
      n: number of records, which is public.
      bounds: public limits of x and y.
      key: `secret_key()`; seeded keys would repeat their noise, and are refused.
    """
    try:
        from opendp.domains import user_domain
        from opendp.measurements import make_user_measurement
        from opendp.measures import max_divergence
        from opendp.metrics import change_one_distance
    except ImportError as error:
        raise ImportError('to_opendp needs opendp: pip install "dpmic_jax[opendp]"') from error
    check_positive_int("n", n)
    if not is_secret(key):
        raise ValueError("expected key=secret_key(): every invocation has to draw fresh noise")
    guarantee = mechanism.guarantee(n)
    if not isinstance(guarantee, PureDP):
        raise ValueError(
            f"expected an epsilon-DP mechanism, {type(mechanism).__name__} has {guarantee}; "
            "compose it with dp-accounting by to_dp_accounting"
        )
    epsilon = as_fraction(guarantee.epsilon)

    def release(columns: Any) -> Any:
        x, y = columns
        for column in (x, y):
            _check_size(column, n)
        return mechanism.release(x, y, bounds=bounds, key=key).value

    def privacy_map(persons: int) -> float:
        # Group privacy: each person costs epsilon.
        return ceil_to_float(persons * epsilon) if persons else 0.0

    return make_user_measurement(
        user_domain(f"pairs of columns of {n} records", lambda columns: len(columns) == 2),
        change_one_distance(),
        max_divergence(),
        function=release,
        privacy_map=privacy_map,
    )


def _check_size(column: Any, n: int) -> None:
    """The number of records is public, and decides how much noise is enough."""
    if len(column) != n:
        raise ValueError(f"expected columns of {n} records, got {len(column)}")
