"""Cache the programs that commands compile."""

import click


def cache_compiled_programs() -> None:
    """Enable JAX's persistent compilation cache, unless the user has configured it.

    Call it in commands that compile, after their options are parsed, because it imports JAX. A
    command does not fail because the cache folder is unusable.
    """
    from dpmic_jax.mic.compilation_cache import enable_compilation_cache

    try:
        enable_compilation_cache()
    except OSError as error:
        click.echo(
            f"Compiled programs are not cached: {error} (set XDG_CACHE_HOME to use another folder, "
            "or JAX_ENABLE_COMPILATION_CACHE=false to disable the cache)",
            err=True,
        )
