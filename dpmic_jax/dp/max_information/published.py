"""Bounds as printed: Theorem 1.4, the proof of Theorem 3.1, and description length.

Theorems are those of Rogers, Roth, Smith and Thakkar (2016). `pure` and `truncated` are sharper.
"""

import math

import numpy as np

from dpmic_jax.dp.arithmetic.exact_decimal import check_positive, check_positive_int
from dpmic_jax.dp.max_information.bounds import Laws, MaxInformation, check_beta, from_nats
from dpmic_jax.dp.max_information.search import least

_RANGE = "0 < epsilon <= 1/2 and 0 < delta < epsilon"


def pure_any(epsilon: float, n: int) -> MaxInformation:
    """Theorem 1.4, first form: log2(e) epsilon n bits at beta = 0, for any data distribution."""
    return from_nats(check_positive("epsilon", epsilon) * check_positive_int("n", n), 0.0, Laws.ANY)


def pure_product(epsilon: float, n: int, beta: float) -> MaxInformation:
    """Theorem 1.4, second form: epsilon^2 n/2 + epsilon sqrt(n ln(2/beta)/2) nats."""
    check_beta("Theorem 1.4", beta)
    epsilon, n = check_positive("epsilon", epsilon), check_positive_int("n", n)
    nats = epsilon**2 * n / 2 + epsilon * math.sqrt(n * math.log(2 / beta) / 2)
    return from_nats(nats, beta, Laws.PRODUCT)


def approximate_product(epsilon: float, delta: float, n: int, beta: float) -> MaxInformation:
    """The proof of Theorem 3.1 with its constants, optimised over t and delta-hat.

    n nu + 6 t epsilon sqrt(n) nats at beta = e^(-t^2/2) + n (delta' + delta''), where

        delta'  = 2 delta/delta-hat + 2 delta/(1 - e^-epsilon),
        delta'' = 2 delta-hat/(1 - e^(-3 epsilon)),    delta-hat <= epsilon/15,
        nu = 6 epsilon (e^(6 epsilon)/(1 - delta'') - 1) + (e^(3 epsilon) - 1) delta''
             + delta-hat + 2 (e^(3 epsilon) delta'' + delta-hat)^2.

    The paper simplifies nu to 72 epsilon^2, which holds for epsilon <= 0.209 only, and does not
    say that these are nats. Infinite if no delta-hat brings n (delta' + delta'') below beta.
    """
    check_beta("Theorem 3.1", beta)
    epsilon, delta, n = (
        check_positive("epsilon", epsilon),
        check_positive("delta", delta),
        check_positive_int("n", n),
    )
    if not (epsilon <= 0.5 and delta < epsilon):
        raise ValueError(
            f"Theorem 3.1 needs {_RANGE}; got epsilon = {epsilon:g}, delta = {delta:g}"
        )

    def nats(hat: np.ndarray) -> np.ndarray:
        return theorem_3_1(epsilon, delta, n, beta, hat)

    (hat,) = least(nats, [(epsilon * 1e-40, epsilon / 15)])
    with np.errstate(all="ignore"):
        found = float(nats(np.asarray(hat)))
    return from_nats(np.inf if np.isnan(found) else found, beta, Laws.PRODUCT)


def theorem_3_1(epsilon: float, delta: float, n: int, beta: float, hat: np.ndarray) -> np.ndarray:
    """n nu + 6 t epsilon sqrt(n) in nats for each delta-hat; NaN where beta is too small for it."""
    first = 2 * delta / hat - 2 * delta / math.expm1(-epsilon)
    second = -2 * hat / math.expm1(-3 * epsilon)
    t = np.sqrt(-2 * np.log(beta - n * (first + second)))
    return n * nu(epsilon, hat) + 6 * t * epsilon * math.sqrt(n)


def nu(epsilon: float, hat: np.ndarray) -> np.ndarray:
    """Lemma 3.7: the mean of Z_i, given |Z_i| <= 6 epsilon, for each delta-hat; in nats."""
    second = -2 * hat / math.expm1(-3 * epsilon)
    # e^(6 epsilon)/(1 - delta'') - 1, without cancellation
    tilt = (math.expm1(6 * epsilon) + second) / (1 - second)
    coins = math.expm1(3 * epsilon) * second + hat
    return 6 * epsilon * tilt + coins + 2 * (math.exp(3 * epsilon) * second + hat) ** 2


def description_length(values: int, beta: float) -> MaxInformation:
    """log2(values/beta) bits for a result of `values` values (Dwork et al. 2015, Theorem 17)."""
    check_beta("the description-length bound", beta)
    return from_nats(math.log(check_positive_int("values", values) / beta), beta, Laws.ANY)
