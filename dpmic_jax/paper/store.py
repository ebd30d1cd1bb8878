"""Keep the finished parts of a long computation, so that an interrupted run resumes."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpmic_jax.runs import stage

Part = dict[str, np.ndarray]


class Store:
    """A folder with one file for each finished part.

    Args:
      folder: created if it does not exist.
      description: of the whole computation, in JSON types.

    Raises:
      ValueError: if the folder belongs to a computation with another description, whose parts
        would be mixed with these.
    """

    def __init__(self, folder: Path, description: dict[str, Any]):
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        described = folder / "run.json"
        text = json.dumps(description, indent=1, sort_keys=True) + "\n"
        if not described.exists():
            _write(described, text.encode())
        elif described.read_text() != text:
            stage.reset()  # a command cannot be resumed here; it has not charged anything either
            raise ValueError(
                f"{folder} has parts of a run with other settings: pass another folder, or "
                "remove this one"
            )

    def part(self, name: str, compute: Callable[[], Part]) -> Part:
        """Read a part from its file, or compute it and write it there."""
        path = self._folder / f"{name}.npz"
        if not path.exists():
            unfinished = self._folder / f".{name}.npz"
            with unfinished.open("wb") as file:
                np.savez(file, **compute())  # pyright: ignore[reportArgumentType]
                file.flush()
                os.fsync(file.fileno())
            # The rename comes last, so that a file under its final name is always complete.
            unfinished.replace(path)
        with np.load(path) as kept:
            return dict(kept)


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_bytes(content)
    unfinished.replace(path)
