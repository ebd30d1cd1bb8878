"""Audits of a mechanism's privacy guarantee: exact, by search, and by sampling.

`exact`: the privacy loss on data so small that the output distribution can be enumerated.
`search`: a lower bound on the sensitivity of a statistic. `sampled`: a lower bound on epsilon,
from draws of the output on two neighbouring data sets. All of them treat the mechanism as a black
box, which is passed in as functions and arrays.
"""

from dpmic_jax.dp.audit.exact import (
    Delta,
    Loss,
    exact_delta,
    exact_loss,
    exp_between,
    replace_one,
    replace_one_in_sequences,
)
from dpmic_jax.dp.audit.sampled import (
    FEATURES,
    SampledBound,
    bound_of_event,
    event_loss,
    lowest_bit,
    sampled_loss,
    values,
)
from dpmic_jax.dp.audit.search import Change, absolute, largest_change, mutate

__all__ = [
    "FEATURES",
    "Change",
    "Delta",
    "Loss",
    "SampledBound",
    "absolute",
    "bound_of_event",
    "event_loss",
    "exact_delta",
    "exact_loss",
    "exp_between",
    "largest_change",
    "lowest_bit",
    "mutate",
    "replace_one",
    "replace_one_in_sequences",
    "sampled_loss",
    "values",
]
