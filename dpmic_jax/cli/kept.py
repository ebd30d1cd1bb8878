"""What commands compile is kept between runs."""

import click


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles, unless the user says where or not to.

    For commands that compile, once their words are understood: this imports JAX. A command never
    fails for want of a folder.
    """
    from dpmic_jax.mic.compilation_cache import enable_compilation_cache

    try:
        enable_compilation_cache()
    except OSError as error:
        click.echo(
            f"Compiled programs are not kept: {error} (XDG_CACHE_HOME sets the folder's place, and "
            "JAX_ENABLE_COMPILATION_CACHE=false does without)",
            err=True,
        )
