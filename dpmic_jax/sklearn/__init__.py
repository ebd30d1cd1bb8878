"""Feature selection with scikit-learn's manners: by a private top-k or threshold, and without.

`PrivateMICSelector` charges a ledger at every fit; docs/sklearn.md says what refitting costs.
`MICSelector` and `mic_score` (for `SelectKBest`) are exact and not private at all.
"""

from dpmic_jax.sklearn.nonprivate import MICSelector, mic_score
from dpmic_jax.sklearn.private import PrivateMICSelector

__all__ = ["MICSelector", "PrivateMICSelector", "mic_score"]
