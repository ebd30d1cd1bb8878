"""A run's folder: what lets a killed run go on to the same bits, and nothing exact.

    run.json      public: the event, what was asked, the ledger; written before the charge
    key           the run's key, for its owner only; destroyed when the run is done
    tiles/        finished tiles: noised values, or noisy scores sealed under the key
    result.json   the result; the run is done once it is there

Every file is written under another name, synced and renamed: it is whole or not there.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from dpmic_jax.dp import keyfile
from dpmic_jax.dp.events import Event
from dpmic_jax.dp.keyfile import KeyLostError
from dpmic_jax.dp.keys import AnyKey, is_secret
from dpmic_jax.results.files import write

_OURS = {"run.json", "key", "tiles", "result.json", "result.csv", "heatmap.png", "lock"}
_NEEDED = {"run", "event", "columns", "ledger", "table", "tile"}  # in run.json
_UNFINISHED = ".*.new"  # what a killed `write` leaves


@dataclass(frozen=True)
class Folder:
    """The folder of one run. Use it under `locked`, but for `key`, which workers read."""

    path: Path

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, and keep other processes out; the system lets go if we are killed."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"expected out to be a folder, but {self.path} is a file")
        strangers = self._strangers()
        if strangers and not (self.path / "run.json").exists():
            raise ValueError(
                f"out={self.path} holds {strangers[0]!r}, which is no run's; use a new folder"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / "lock", "w") as file:
            _lock(file, self.path)
            yield

    def _strangers(self) -> list[str]:
        there = [entry.name for entry in self.path.iterdir()] if self.path.exists() else []
        return sorted({name for name in there if not fnmatch(name, _UNFINISHED)} - _OURS)

    @property
    def begun(self) -> dict[str, Any] | None:
        """What `begin` wrote, if it did."""
        try:
            content = json.loads((self.path / "run.json").read_text())
        except FileNotFoundError:
            if self.result is not None:
                raise ValueError(
                    f"out={self.path} has a result, but not the run.json of its run; use a new "
                    "folder"
                ) from None
            return None
        except ValueError:
            content = None
        if not isinstance(content, dict) or not content.keys() >= _NEEDED:
            raise ValueError(f"{self.path / 'run.json'} is damaged; use a new folder")
        return content

    @property
    def records(self) -> int | None:
        """How many records the table of a run has that is done; None if there is none."""
        if not self.path.is_dir() or self.result is None:
            return None
        begun = self.begun
        return None if begun is None else Event.from_json(begun["event"]).n

    def begin(self, content: dict[str, Any], key: AnyKey) -> None:
        """Keep the key and the public description. What a killed start left is replaced."""
        keyfile.destroy(self.path / "key")
        keyfile.save(self.path / "key", key)
        self._remove_tiles()
        (self.path / "tiles").mkdir()
        _write(self.path / "run.json", json.dumps(content, indent=1, sort_keys=True).encode())

    def abandon(self) -> None:
        """Undo `begin`: nothing was charged."""
        # First, for a run without its key would be taken for one that was charged.
        (self.path / "run.json").unlink(missing_ok=True)
        self.clear()
        (self.path / "lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # which is not empty if it was not ours alone
            self.path.rmdir()

    @property
    def key(self) -> AnyKey:
        """The run's key. A new one would need a new charge."""
        try:
            return keyfile.load(self.path / "key")
        except KeyLostError as error:
            raise KeyLostError(
                f"{error}; this run cannot go on without its key. What it charged is spent: a new "
                "run in a new folder costs a new charge"
            ) from None

    def check_key(self, key: AnyKey) -> None:
        """Whether a resumed run's caller means the same key; secret ones need not be the same."""
        kept = self.key
        if is_secret(kept) and is_secret(key):
            return
        if not keyfile.same(kept, key):
            raise ValueError(
                f"the run in {self.path} has another key; pass the seed it was begun with, or use "
                "a new folder"
            )

    def tile(self, number: int) -> bytes | None:
        """A finished tile's content; None if it is missing or damaged."""
        try:
            content = self._tile(number).read_bytes()
        except FileNotFoundError:
            return None
        kept, content = content[:32], content[32:]
        return content if kept == hashlib.sha256(content).digest() else None

    def keep_tile(self, number: int, content: bytes) -> None:
        _write(self._tile(number), hashlib.sha256(content).digest() + content)

    def _tile(self, number: int) -> Path:
        return self.path / "tiles" / f"{number:08d}"

    @property
    def result(self) -> str | None:
        """The finished result as JSON."""
        try:
            return (self.path / "result.json").read_text()
        except FileNotFoundError:
            return None

    def finish(self, result: str) -> None:
        """Keep the result, destroy the key, and remove the tiles. May be done again."""
        _write(self.path / "result.json", result.encode())
        self.clear()

    def clear(self) -> None:
        """What is left to do once the result is there."""
        keyfile.destroy(self.path / "key")
        self._remove_tiles()
        for part in self.path.glob(_UNFINISHED):
            part.unlink()

    def _remove_tiles(self) -> None:
        tiles = self.path / "tiles"
        if tiles.exists():
            for tile in tiles.iterdir():
                tile.unlink()
            tiles.rmdir()


def _write(path: Path, content: bytes) -> None:
    write(path, lambda file: file.write(content))


def _lock(file: Any, path: Path) -> None:
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(f"another process is at work on {path}; let it finish") from None
