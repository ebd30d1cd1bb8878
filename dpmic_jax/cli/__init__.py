"""The `dpmic` command.

Modules of commands import JAX and the rest of the package inside functions, when a command runs, so
that `--help` and usage errors come at once.
"""

import click

from dpmic_jax.cli.bounds import bounds
from dpmic_jax.cli.causal import causal, causal_plan
from dpmic_jax.cli.data import data
from dpmic_jax.cli.demo import demo
from dpmic_jax.cli.independence import independence
from dpmic_jax.cli.inference import test, units
from dpmic_jax.cli.ledger import ledger
from dpmic_jax.cli.pairwise import pairwise
from dpmic_jax.cli.paper import paper
from dpmic_jax.cli.plan import plan
from dpmic_jax.cli.registry import registry
from dpmic_jax.cli.report import report
from dpmic_jax.cli.screen import screen
from dpmic_jax.cli.verify import verify
from dpmic_jax.cli.warm_up import warm_up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dpmic_jax")
def main() -> None:
    """Find dependent columns of a table with differential privacy.

    \b
    Exit codes:
      0    success
      1    `dpmic verify` only: something differs
      2    invalid input, or an error; nothing was charged
      3    budget exceeded; nothing was charged
      4    interrupted, or an error; repeat the command to resume at no further charge
      5    interrupted, or an error, after the charge; the run cannot be resumed
      130  interrupted; nothing was charged
    """


for command in (
    screen,
    plan,
    report,
    verify,
    registry,
    independence,
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
