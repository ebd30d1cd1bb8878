"""Atomic, durable writes: a file is complete or absent, whenever the process is killed.

A new file is written under a temporary name in the same folder and synced. Then it is renamed, in
place of an older file, or linked, which fails if there is one.
"""

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PUBLIC, PRIVATE = 0o666, 0o600  # modes of new files, before the user's umask
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)

Fill = Callable[[BinaryIO], object]


def replace(path: str | os.PathLike[str], fill: Fill, *, mode: int = PUBLIC) -> None:
    """Replace the file at `path` by what `fill` writes.

    A crash leaves the old file or the new one. A link at `path` is replaced; its target is left
    unchanged.
    """
    path = Path(path)
    with temporary(path) as filled:
        _write(filled, fill, mode)
        os.replace(filled, path)
    sync_folder(path.parent)


def create(path: Path, fill: Fill, *, mode: int) -> None:
    """Write a new file at `path`, which must not exist (FileExistsError)."""
    with temporary(path) as filled:
        _write(filled, fill, mode)
        os.link(filled, path)
    sync_folder(path.parent)


@contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """A new name beside `path`; what is there at the end of the block is removed."""
    filled = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        yield filled
    finally:
        filled.unlink(missing_ok=True)


def unfinished(folder: Path, names: str) -> list[Path]:
    """Temporary files that a killed process left in `folder`, of targets that match `names`."""
    left = re.compile(rf"\.({names})\.[0-9a-f]{{16}}\.new")
    return [entry for entry in folder.iterdir() if left.fullmatch(entry.name)]


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable, which only POSIX needs and allows."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write(path: Path, fill: Fill, mode: int) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())
