"""A private test of independence in a process of its own, which kills itself at a named point."""

from faults import die_at

from dpmic_jax import secret_key, seeded_key
from dpmic_jax.inference import PrivateDecisions, PrivatePValues, independence_test

# Before which step of a run a process dies, and how many charges there are then.
POINTS = {
    "it is being charged": ("COMMIT$", 0),
    "it is charged": (r"open \.result", 1),
    "the result is there": ("open key$", 1),
}
PAIRS = [("a", "d"), ("a", "e")]
METHODS = {"decisions": PrivateDecisions(draws=39), "p-values": PrivatePValues()}
EPSILON = 1.0


def asked(table, bounds, *, key="seeded", method="decisions", **settings):
    """The test that is asked for."""
    return independence_test(
        table,
        bounds=bounds,
        pairs=PAIRS,
        epsilon=EPSILON,
        key=seeded_key(1) if key == "seeded" else secret_key(),
        method=METHODS[method],
        **settings,
    )


def work(point, table, bounds, settings):
    """What the process does."""
    if point is not None:
        die_at(POINTS[point][0])
    asked(table, bounds, **settings)
