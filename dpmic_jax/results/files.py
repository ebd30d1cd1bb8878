"""Files that are there whole or not at all."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write(path: str | os.PathLike[str], fill: Callable[[BinaryIO], object]) -> None:
    """Put at `path` what `fill` writes, in place of what was there.

    It is filled and synced under another name in the same folder, then renamed: a crash leaves
    the old file or the new one.
    """
    path = Path(path)
    filled = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        with open(filled, "xb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(filled, path)
    finally:
        filled.unlink(missing_ok=True)
    if os.name == "posix":  # where a rename is durable only once its folder is synced
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
