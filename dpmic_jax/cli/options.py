"""Options that several commands share, and what they stand for."""

from typing import Any

import click

SEED = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    help="Repeat a run. Whoever guesses the seed takes the noise off: not for release.",
)


def the_key(seed: int | None) -> Any:
    """A secret key, or the seed's, with a warning."""
    from dpmic_jax import secret_key, seeded_key

    if seed is None:
        return secret_key()
    click.echo("Warning: seeded: not for release.", err=True)
    return seeded_key(seed)


def the_ask(text: str) -> Any:
    """all, top:K, above:THRESHOLD:AT_MOST, against:COLUMN or between:A,B/C,D."""
    from dpmic_jax.screening import Above, Against, AllPairs, Between, TopK

    kind, _, rest = text.partition(":")
    try:
        if kind == "all" and not rest:
            return AllPairs()
        if kind == "top":
            return TopK(int(rest))
        if kind == "above" and rest.count(":") == 1:
            threshold, at_most = rest.split(":")
            return Above(float(threshold), int(at_most))
        if kind == "between" and rest.count("/") == 1:
            a, b = rest.split("/")
            return Between(tuple(a.split(",")), tuple(b.split(",")))
        if kind == "against" and rest:
            return Against(rest)
    except ValueError as error:
        raise ValueError(f"--ask {text}: {error}") from None
    raise ValueError(
        f"expected --ask as all, top:20, above:0.3:10, against:age or between:a,b/c,d, got {text!r}"
    )
