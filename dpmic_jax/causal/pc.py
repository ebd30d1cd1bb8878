"""The PC algorithm without noise: two orders, one result."""

from collections.abc import Sequence

from dpmic_jax.causal.result import CausalResult
from dpmic_jax.causal.skeleton import Decide, original_skeleton, stable_skeleton


def pc(independent: Decide, *, names: Sequence[str], max_order: int) -> CausalResult:
    """PC in the stable order, which does not depend on the order of columns. Not private.

    Args:
      independent: answers queries: `score_at_most(test, threshold)`, or
        `p_value_above(test.p_values, level)`.
      names: of the columns.
      max_order: the most columns to condition on; len(names) - 2 leaves no query out.
    """
    found = stable_skeleton(len(names), independent, max_order=max_order)
    return CausalResult(names=tuple(names), found=found, privacy=None)


def pc_original(independent: Decide, *, names: Sequence[str], max_order: int) -> CausalResult:
    """The same in the original order: edges are removed at once, one query at a time."""
    found = original_skeleton(len(names), independent, max_order=max_order)
    return CausalResult(names=tuple(names), found=found, privacy=None)
