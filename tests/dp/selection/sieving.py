"""Settings of a small sieve, to be changed one at a time."""

from dpmic_jax.dp.selection.sieve import SieveAndExamine


def settings(**changes):
    usual = {
        "sieve_epsilon": 1.0,
        "examine_epsilon": 1.0,
        "sieve_sensitivity": 1,
        "examine_sensitivity": 1,
        "threshold": 1,
        "tweak": 0,
        "n": 4,
        "subsample": 2,
        "queries": 3,
        "rounds": 1,
    }
    return SieveAndExamine(**(usual | changes))
