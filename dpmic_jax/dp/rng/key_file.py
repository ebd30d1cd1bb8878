"""The file of a run's key: readable by its owner only, and destroyed when the run is finished.

A key is destroyed by overwriting and unlinking its file. A file system that keeps old blocks
(journals, snapshots, flash memory) may hold the key longer: keep runs where that is no danger.
Links are never followed, and a file that is not a key file is never overwritten.
"""

import hashlib
import os
import stat
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from dpmic_jax.dp import files
from dpmic_jax.dp.rng.errors import KeyLostError
from dpmic_jax.dp.rng.keys import AnyKey, SecretKey, is_secret, noise_key, wrap

_WORDS = (8, 2)  # words of a ChaCha20 key, and of a seeded (threefry2x32) key
# Bytes of the SHA-256 checksum after the words. A damaged key, such as one of zeros, could be
# guessed, so its noise would protect nobody.
_SUM = 32


def save(path: Path, key: AnyKey) -> None:
    """Write a key to a new file that only its owner may read, and sync it to disk.

    The file is written under a temporary name and then linked, so `path` is never half written.
    A file that exists at `path` is not replaced (FileExistsError).
    """
    words = np.asarray(jax.random.key_data(noise_key(key)))
    content = words.astype("<u4").tobytes()
    content += hashlib.sha256(content).digest()
    files.create(path, lambda file: file.write(content), mode=files.PRIVATE)


def load(path: Path) -> AnyKey:
    """Read the key that `save` wrote.

    Raises:
      KeyLostError: the file is missing, damaged, a link, or readable by others.
    """
    if path.is_symlink():
        raise KeyLostError(f"{path} is a link, which no run makes")
    try:
        content, mode = path.read_bytes(), path.stat().st_mode
    except FileNotFoundError:
        raise KeyLostError(f"there is no key at {path}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise KeyLostError(f"{path} may be read by others, so its noise may be known")
    if not _whole(content):
        raise KeyLostError(f"{path} is damaged")
    words = np.frombuffer(content[:-_SUM], "<u4").astype(np.uint32)
    key = wrap(jnp.asarray(words))
    return SecretKey(key) if is_secret(key) else key


def same(one: AnyKey, other: AnyKey) -> bool:
    """Whether two keys have the same words."""
    first, second = (np.asarray(jax.random.key_data(noise_key(key))) for key in (one, other))
    return np.array_equal(first, second)


def is_key(path: Path) -> bool:
    """Whether `path` is a regular file that `save` wrote, or that `destroy` has overwritten."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        content = path.read_bytes()
    except FileNotFoundError:
        return False
    # All zeros: a `destroy` that was interrupted between overwriting and unlinking.
    return _whole(content) or content in [bytes(4 * count + _SUM) for count in _WORDS]


def destroy(path: Path) -> None:
    """Overwrite and unlink a key file; a file that is not a key file is left as it is."""
    if not is_key(path):
        return
    file = os.open(path, os.O_WRONLY | files.NO_LINKS)
    try:
        os.write(file, bytes(os.fstat(file).st_size))
        os.fsync(file)
    finally:
        os.close(file)
    path.unlink()


def _whole(content: bytes) -> bool:
    words, checksum = content[:-_SUM], content[-_SUM:]
    fits = len(words) in [4 * count for count in _WORDS]
    return fits and checksum == hashlib.sha256(words).digest()
