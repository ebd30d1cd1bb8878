"""Atomic, durable writes: a file is complete or absent."""

import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

PUBLIC, PRIVATE = 0o666, 0o600  # modes of new files, before the user's umask


def write(
    path: str | os.PathLike[str], fill: Callable[[BinaryIO], object], *, mode: int = PUBLIC
) -> None:
    """Replace the file at `path` by what `fill` writes.

    The new file is written and synced under another name in the same folder, then renamed: a crash
    leaves the old file or the new one. A link at `path` is replaced; its target is left unchanged.
    """
    path = Path(path)
    filled = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        with open(os.open(filled, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(filled, path)
    finally:
        filled.unlink(missing_ok=True)
    if os.name == "posix":  # a rename is durable only once its folder is synced
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def unfinished(folder: Path, names: str) -> list[Path]:
    """Temporary files that a killed `write` left in `folder`, of targets that match `names`."""
    temporary = re.compile(rf"\.({names})\.[0-9a-f]{{16}}\.new")
    return [entry for entry in folder.iterdir() if temporary.fullmatch(entry.name)]
