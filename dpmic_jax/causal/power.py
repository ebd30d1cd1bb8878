"""What a search can tell from its noise, by public numbers only: a refusal, and a caution.

An edge is kept only if it is kept by every test of its columns. So a search finds nothing if noise
removes even the largest score that the columns can have in the test of order 0, which every pair
of columns undergoes.
"""

from collections.abc import Sequence

from dpmic_jax.causal.decisions import SURE, Decision

# A caution is given if a pair has to have more than this part of the largest score to be kept.
_WEAK = 0.5


def check_not_lost(first: Decision, largest: float, *, threshold: float, fewer: str) -> None:
    """Refuse a search whose noise hides every dependence.

    Args:
      first: a decision of order 0.
      largest: the largest score that the test can have.
      threshold: T.
      fewer: what would leave more epsilon to each release, in words.
    """
    if first.removed(largest) <= 1 - SURE:
        return
    if threshold >= largest:
        raise ValueError(
            f"threshold={threshold:g} is not below the largest score that these columns can have, "
            f"{largest:.3g}: every edge would be removed. Pass a smaller threshold, or force=True "
            "(--force) to spend epsilon all the same"
        )
    # Noise is inverse to epsilon. Scores grow with the root of n, and noise falls with it.
    times = (first.smallest_kept - threshold) / (largest - threshold)
    raise ValueError(
        "noise would hide every dependence: even a pair with the largest possible score, "
        f"{largest:.3g}, would be removed with a probability of {first.removed(largest):.2g} in "
        f"its first test. Use about {max(times, 1.01):.3g} times the epsilon or the records, or "
        f"{fewer}; `dpmic causal-plan` and preview_search() show what is kept. Pass force=True "
        "(--force) to spend epsilon all the same"
    )


def caution(decisions: Sequence[Decision], largest: float) -> str:
    """A sentence on a search whose noise decides much of the graph; else an empty text."""
    kept = [1 - each.removed(0.0) for each in decisions]
    smallest = max(each.smallest_kept for each in decisions)
    if max(kept) <= 1 - SURE and smallest <= _WEAK * largest:
        return ""
    return (
        "Caution: noise decides much of this graph. In one test, a pair with a score of 0 is kept "
        f"with a probability of up to {max(kept):.2g}, and a pair needs a score of {smallest:.3g} "
        f"to be kept with 95 % probability; the largest possible one is {largest:.3g}."
    )
