"""The `dpmic` command."""

import os
from pathlib import Path

import click

from dpmic_jax.cli.bounds import bounds
from dpmic_jax.cli.causal import causal
from dpmic_jax.cli.demo import demo
from dpmic_jax.cli.inference import test, units
from dpmic_jax.cli.ledger import ledger
from dpmic_jax.cli.pairwise import pairwise
from dpmic_jax.cli.paper import paper
from dpmic_jax.cli.report import report
from dpmic_jax.cli.screen import plan, screen


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dpmic_jax")
def main() -> None:
    """Find which columns of a table depend on each other, privately.

    Exit codes: 0 done, 2 bad input, 3 budget exceeded, 4 interrupted and resumable.
    """
    _keep_compiled_programs()


for command in (screen, plan, report, test, units, causal, bounds, ledger, demo, pairwise, paper):
    main.add_command(command)


def _keep_compiled_programs() -> None:
    """Let JAX keep what it compiles between runs, unless the user says where or not to."""
    import jax

    if os.environ.get("JAX_COMPILATION_CACHE_DIR") is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "dpmic_jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
