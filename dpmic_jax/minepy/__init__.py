"""MINE, pstats and cstats: minepy's names, conventions and numbers, for users of minepy.

Nothing of this is imported unless it is asked for: `from dpmic_jax.minepy import MINE`.
"""

from dpmic_jax.minepy.mine import MINE
from dpmic_jax.minepy.pairs import cstats, pstats

__all__ = ["MINE", "cstats", "pstats"]
