"""The PC algorithm without noise, in the stable and in the original order."""

from collections.abc import Sequence

from dpmic_jax.causal.result import CausalResult
from dpmic_jax.causal.skeleton import Decide, original_skeleton, stable_skeleton


def pc(independent: Decide, *, names: Sequence[str], max_order: int) -> CausalResult:
    """PC in the stable order, whose result does not depend on the order of columns. Not private.

    Args:
      independent: decides queries: `score_at_most(test, threshold)`, or
        `p_value_above(test.p_values, level)`.
      names: names of the columns.
      max_order: the most columns to condition on; len(names) - 2 leaves no query out.
    """
    found = stable_skeleton(len(names), independent, max_order=max_order)
    return CausalResult(names=tuple(names), found=found, privacy=None)


def pc_original(independent: Decide, *, names: Sequence[str], max_order: int) -> CausalResult:
    """PC in the original order: one query at a time, edges removed at once. Not private."""
    found = original_skeleton(len(names), independent, max_order=max_order)
    return CausalResult(names=tuple(names), found=found, privacy=None)
