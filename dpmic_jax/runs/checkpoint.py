"""The folder of a run: what an interrupted run needs to resume bit for bit, and no exact value.

    lock          marks the folder as one of a run, and locks out other processes
    run.json      the event, the ledger, a keyed digest of the records; written before the charge
    key           the key of the run, readable by its owner only; destroyed when the run finishes
    tiles/        finished tiles: noised values, or scores encrypted under the key
    result.json   the result; once it exists, the run is finished

Every file is written under another name, synced and renamed, so it is complete or absent. All but
the result are readable by their owner only. A folder that is not empty is used only if `lock` or a
valid `run.json` marks it as one of a run. Links are refused, so nothing outside is ever written.
"""

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.files import NO_LINKS, PRIVATE, PUBLIC, replace, unfinished
from dpmic_jax.dp.rng import key_file
from dpmic_jax.dp.rng.errors import KeyLostError
from dpmic_jax.dp.rng.keys import AnyKey, is_secret

_MARK = b"the folder of a dpmic_jax run\n"
_FILES = ("lock", "run.json", "key", "result.json")
_TILE = r"\d{8}"
_NEEDED = {"run", "event", "ledger"}  # keys of run.json
# The format of the tiles of an unfinished run. Version 0.1.0 wrote no format, and another cipher.
_FORMAT = 2


@dataclass(frozen=True)
class Folder:
    """The folder of one run. Use it inside `locked`; only `key` may be read without, by workers."""

    path: Path

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and lock it; the system releases the lock of a killed process."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"expected out to be a folder, but {self.path} is a file")
        self.path.mkdir(parents=True, exist_ok=True)
        self._check_ours()
        # Through a link, O_CREAT would make a file outside of the folder.
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | NO_LINKS, PRIVATE)
        with open(lock, "r+b") as file:
            _lock(file, self.path)
            if not file.read():
                file.write(_MARK)
                file.flush()
            yield

    def _check_ours(self) -> None:
        """Refuse a folder with other contents than a run's, and links in place of its files."""
        for path in (self.path / name for name in (*_FILES, "tiles")):
            if path.is_symlink():
                raise ValueError(f"{path} is a link, which no run creates; use a new folder")
            wanted = path.is_dir() if path.name == "tiles" else _is_file(path)
            if path.exists() and not wanted:
                raise ValueError(f"{path} is not a file of a run; use a new folder")
        lock = self.path / "lock"
        kept = lock.read_bytes() if _is_file(lock) else None
        there = {entry.name for entry in self.path.iterdir()}
        # Older versions left an empty lock; so does a process that starts at this moment.
        if not there or kept == _MARK or (kept == b"" and there == {"lock"}):
            return
        if _is_file(self.path / "run.json"):
            _ = self.begun  # refuses an invalid run.json
            return
        if "result.json" in there:
            raise _without_description(self.path)
        raise ValueError(
            f"out={self.path} holds {min(there)!r}, which belongs to no run; use a new folder"
        )

    @property
    def begun(self) -> dict[str, Any] | None:
        """The content of run.json; None if the run has not begun."""
        try:
            content = json.loads((self.path / "run.json").read_text())
        except FileNotFoundError:
            if self.result is not None:
                raise _without_description(self.path) from None
            return None
        except ValueError:
            content = None
        if not isinstance(content, dict) or not content.keys() >= _NEEDED:
            raise ValueError(f"{self.path / 'run.json'} is damaged; use a new folder")
        if content.get("format") != _FORMAT and self.result is None:
            raise ValueError(
                f"the unfinished run in {self.path} was begun with version 0.1.0 of dpmic_jax; "
                "finish it with 0.1.0, or use a new folder"
            )
        return content

    @property
    def records(self) -> int | None:
        """The number of records of a finished run; None if the run is not finished."""
        if not self.path.is_dir() or self.result is None:
            return None
        begun = self.begun
        return None if begun is None else Event.from_json(begun["event"]).n

    def begin(self, content: dict[str, Any], key: AnyKey) -> None:
        """Store the key and the public description, in place of what a killed start left."""
        self._check_leftovers()
        self.clear()
        # The key comes first: a run.json without a key is taken for a run whose key was lost.
        key_file.save(self.path / "key", key)
        (self.path / "tiles").mkdir(mode=0o700)
        kept = {**content, "format": _FORMAT}
        self._write("run.json", json.dumps(kept, indent=1, sort_keys=True), PRIVATE)

    def _check_leftovers(self) -> None:
        """Refuse to begin beside a `key` or `tiles` that no run wrote."""
        key, tiles = self.path / "key", self.path / "tiles"
        if os.path.lexists(key) and not key_file.is_key(key):
            raise ValueError(f"{key} is not the key of a run; use a new folder")
        strangers = set(tiles.iterdir() if tiles.exists() else ()) - set(self._tiles())
        if strangers:
            raise ValueError(
                f"{tiles} holds {min(strangers).name!r}, which is no tile; use a new folder"
            )

    def abandon(self) -> None:
        """Undo `begin` for a run that was not charged."""
        # First: a run.json without a key is taken for a run whose key was lost after the charge.
        (self.path / "run.json").unlink(missing_ok=True)
        self.clear()
        (self.path / "lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder may have had other files
            self.path.rmdir()

    @property
    def key(self) -> AnyKey:
        """The key of the run. Another key would need another charge."""
        try:
            return key_file.load(self.path / "key")
        except KeyLostError as error:
            raise KeyLostError(
                f"{error}; this run cannot be resumed without its key. Its charge is spent: a new "
                "run in a new folder is charged again"
            ) from None

    def check_key(self, key: AnyKey) -> None:
        """Refuse to resume with another seed. A secret key is ignored: the stored one is used."""
        kept = self.key
        if is_secret(kept) and is_secret(key):
            return
        if not key_file.same(kept, key):
            raise ValueError(
                f"the run in {self.path} has another key; pass the seed with which it began, or "
                "use a new folder"
            )

    def tile(self, number: int) -> bytes | None:
        """The content of a finished tile; None if it is missing or damaged."""
        try:
            return _content(self._tile(number).read_bytes())
        except FileNotFoundError:
            return None

    def keep_tile(self, number: int, content: bytes) -> None:
        """Store a finished tile after its SHA-256 digest."""
        kept = hashlib.sha256(content).digest() + content
        replace(self._tile(number), lambda file: file.write(kept), mode=PRIVATE)

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
        """Store the result, destroy the key, and remove the tiles. May be repeated."""
        self._write("result.json", result, PUBLIC)
        self.clear()

    def clear(self) -> None:
        """Remove the key, the tiles and unfinished writes of this run, and no other files."""
        key_file.destroy(self.path / "key")
        tiles = self.path / "tiles"
        for entry in (*self._tiles(), *unfinished(self.path, r"run\.json|result\.json|key")):
            entry.unlink()
        if tiles.is_dir():
            with contextlib.suppress(OSError):  # others may have put files there
                tiles.rmdir()

    def _tiles(self) -> list[Path]:
        """The files of tiles and of their unfinished writes."""
        tiles = self.path / "tiles"
        if not tiles.is_dir():
            return []
        named = [entry for entry in tiles.iterdir() if re.fullmatch(_TILE, entry.name)]
        return [*filter(_is_tile, named), *unfinished(tiles, _TILE)]

    def _write(self, name: str, content: str, mode: int) -> None:
        replace(self.path / name, lambda file: file.write(content.encode()), mode=mode)


def _is_tile(path: Path) -> bool:
    """Whether a file is a tile by its digest: a name of eight digits may be a user's date."""
    return _is_file(path) and _content(path.read_bytes()) is not None


def _content(kept: bytes) -> bytes | None:
    """The content of a tile's file, if its digest is right."""
    digest, content = kept[:32], kept[32:]
    return content if digest == hashlib.sha256(content).digest() else None


def _is_file(path: Path) -> bool:
    return path.exists() and stat.S_ISREG(path.lstat().st_mode)


def _without_description(path: Path) -> ValueError:
    return ValueError(f"out={path} has a result, but no run.json; use a new folder")


def _lock(file: Any, path: Path) -> None:
    if os.name != "posix":  # no flock: there, two processes are not kept apart
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(f"another process is using {path}; let it finish") from None
