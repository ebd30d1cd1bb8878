"""Keep finished parts of a long computation, so that an interrupted one goes on where it was."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Part = dict[str, np.ndarray]


class Store:
    """A folder with one file for each finished part.

    Args:
      folder: made if it is not there.
      description: of the whole computation, as JSON can hold it. A folder of another one is
        refused, since parts of two would be mixed.
    """

    def __init__(self, folder: Path, description: dict[str, Any]):
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        described = folder / "run.json"
        text = json.dumps(description, indent=1, sort_keys=True) + "\n"
        if not described.exists():
            _write(described, text.encode())
        elif described.read_text() != text:
            raise ValueError(
                f"{folder} has parts of a run with other settings: pass another folder, or "
                "remove this one"
            )

    def part(self, name: str, compute: Callable[[], Part]) -> Part:
        """A part from its file, or computed and written there."""
        path = self._folder / f"{name}.npz"
        if not path.exists():
            unfinished = self._folder / f".{name}.npz"
            with unfinished.open("wb") as file:
                np.savez(file, **compute())  # pyright: ignore[reportArgumentType]
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        with np.load(path) as kept:
            return dict(kept)


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_bytes(content)
    unfinished.replace(path)
