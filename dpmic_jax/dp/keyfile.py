"""A run's key on disk: readable by its owner only, there until the run is done, then destroyed.

Overwriting and unlinking is what a program can do. A file system that keeps old blocks
(journals, snapshots, flash memory) may hold the key longer: keep runs where that is no danger.
"""

import hashlib
import os
import stat
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from dpmic_jax.dp.keys import AnyKey, SecretKey, is_secret, noise_key, wrap

_WORDS = (8, 2)  # of a ChaCha20 key, and of a seeded one
_SUM = 32  # bytes of SHA-256 after the words: a damaged key may be one that anybody guesses


class KeyLostError(Exception):
    """The key of an unfinished run is gone or not to be trusted."""


def save(path: Path, key: AnyKey) -> None:
    """Write a key to a new file that only its owner may read, and make it durable."""
    words = np.asarray(jax.random.key_data(noise_key(key)))
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        content = words.astype("<u4").tobytes()
        os.write(file, content + hashlib.sha256(content).digest())
        os.fsync(file)
    finally:
        os.close(file)


def load(path: Path) -> AnyKey:
    """The key that `save` wrote.

    Raises:
      KeyLostError: there is none, or others may have read it.
    """
    try:
        content, mode = path.read_bytes(), path.stat().st_mode
    except FileNotFoundError:
        raise KeyLostError(f"there is no key at {path}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise KeyLostError(f"{path} may be read by others, so its noise may be known")
    content, kept = content[:-_SUM], content[-_SUM:]
    whole = len(content) in [4 * words for words in _WORDS]
    if not whole or kept != hashlib.sha256(content).digest():
        raise KeyLostError(f"{path} is damaged")
    key = wrap(jnp.asarray(np.frombuffer(content, "<u4").astype(np.uint32)))
    return SecretKey(key) if is_secret(key) else key


def same(one: AnyKey, other: AnyKey) -> bool:
    """Whether two keys have the same words."""
    first, second = (np.asarray(jax.random.key_data(noise_key(key))) for key in (one, other))
    return np.array_equal(first, second)


def destroy(path: Path) -> None:
    """Overwrite the file and remove it, if it is there."""
    try:
        file = os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        return
    try:
        os.write(file, bytes(os.fstat(file).st_size))
        os.fsync(file)
    finally:
        os.close(file)
    path.unlink()
