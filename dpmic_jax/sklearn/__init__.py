"""Feature selectors for scikit-learn: by a private top-k or threshold, and non-private.

`PrivateMICSelector` charges a ledger at every fit; docs/sklearn.md says what refitting costs.
`MICSelector` and `mic_score` (for `SelectKBest`) are exact and not private.
"""

from dpmic_jax.sklearn.nonprivate import MICSelector, NominalOrderWarning, mic_score
from dpmic_jax.sklearn.private import PrivateMICSelector

__all__ = ["MICSelector", "NominalOrderWarning", "PrivateMICSelector", "mic_score"]
