"""The `dpmic` command."""

import click

from dpmic_jax.cli.bounds import bounds
from dpmic_jax.cli.causal import causal, causal_plan
from dpmic_jax.cli.data import data
from dpmic_jax.cli.demo import demo
from dpmic_jax.cli.inference import test, units
from dpmic_jax.cli.ledger import ledger
from dpmic_jax.cli.pairwise import pairwise
from dpmic_jax.cli.paper import paper
from dpmic_jax.cli.report import report
from dpmic_jax.cli.screen import plan, screen
from dpmic_jax.cli.warm_up import warm_up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dpmic_jax")
def main() -> None:
    """Find which columns of a table depend on each other, privately.

    \b
    Exit codes:
      0    done
      2    bad input, or a failure: nothing was charged
      3    budget exceeded: nothing was charged
      4    interrupted, or a failure: the same command goes on, and is not charged again
      5    interrupted, or a failure, with nothing to go on with: what was charged is spent
      130  interrupted before anything was charged
    """


for command in (
    screen,
    plan,
    report,
    test,
    units,
    causal,
    causal_plan,
    bounds,
    data,
    ledger,
    demo,
    pairwise,
    paper,
    warm_up,
):
    main.add_command(command)
