"""Compiled programs kept between runs: JAX's persistent cache, in a folder of the user's own.

A cached program is code that runs: a user who can write to the folder can run code as its owner.
So a folder that another user owns or may write to is refused, and a new one is private (0700).
Programs hold no data: tables are their arguments (`tests/test_kept_programs.py`
reads every byte of them). What tells programs apart is their code, JAX's version, the compiler's
flags and the processor's features, so one folder may serve several versions and machines.
"""

import math
import os
import stat
from pathlib import Path

_OWNER_ONLY = 0o700
_ROOT = 0  # may write anywhere as it is


def enable_compilation_cache(folder: str | os.PathLike[str] | None = None) -> str | None:
    """Keep what JAX compiles between runs.

    This is JAX's own persistent cache (`jax_compilation_cache_dir`), for everything that this
    process compiles from now on, also by other libraries. Nothing is kept without this call or
    JAX's settings, except by the `dpmic` command. A cache that is set already, by `jax.config` or
    `JAX_COMPILATION_CACHE_DIR`, is left as it is, and so is one that is switched off by
    `JAX_ENABLE_COMPILATION_CACHE=false`. Otherwise programs are kept however quickly they were
    compiled; in a folder that may be read but not written, such as an image's, none is added.

    Args:
      folder: where to; made for its owner only, if it is not there. By default `dpmic_jax` in
        `$XDG_CACHE_HOME`, or in `~/.cache`.

    Returns:
      The folder in use, or None if JAX's cache is switched off.

    Raises:
      OSError: the folder cannot be made or read, or others may write to it.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    settings = jax.config.values
    if not settings["jax_enable_compilation_cache"]:
        return None
    already = settings["jax_compilation_cache_dir"]
    if already is not None:
        return already or None
    place = _own(_default() if folder is None else Path(folder))
    jax.config.update("jax_compilation_cache_dir", str(place))
    least = 0.0 if os.access(place, os.W_OK) else math.inf  # seconds of compiling that are kept
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least)
    # XLA's own caches are told where they are, which would make the folder's path a part of every
    # program: one that is moved, or mounted elsewhere, would not be found again.
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")
    compilation_cache.reset_cache()  # JAX looks for its folder once
    return str(place)


def _default() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "dpmic_jax"


def _own(folder: Path) -> Path:
    """The folder without links, made if it is not there, that no other user may write to."""
    try:
        place = folder.expanduser().resolve()
    except RuntimeError:  # in a container, say
        raise FileNotFoundError(f"there is no home for {folder}; choose another folder") from None
    for missing in (*reversed(place.parents), place):
        missing.mkdir(mode=_OWNER_ONLY, exist_ok=True)
    if not os.access(place, os.R_OK | os.X_OK):
        raise PermissionError(f"{place} cannot be read; choose another folder")
    found = place.stat()
    if os.name == "posix" and found.st_uid not in (os.getuid(), _ROOT):
        raise PermissionError(
            f"{place} belongs to somebody else, whose programs would run; choose another folder"
        )
    if os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"others may write to {place}, and their programs would run; remove it, and it is made "
            "anew for you only"
        )
    return place
