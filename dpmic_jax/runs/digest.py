"""A keyed digest of a table's records: whether a run goes on with the data it began with.

Let F be a keyed hash (BLAKE2b under a key of its own, derived from the run's). The digest is F of
the types of the columns, by which values are rounded, and of the sum of F(record) over all records,
modulo 2^256. A sum does not depend on the order of records, nor on how they come in batches. Who
does not have the run's key learns nothing from it, since F is a pseudo-random function, and finds
no other table with the same digest: sums of a pseudo-random function collide with probability
2^-256 for each table that is tried.
"""

import hashlib
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np

from dpmic_jax.dp.rng.keys import AnyKey, fold, noise_key

_PURPOSE = np.frombuffer(hashlib.sha256(b"dpmic_jax digest of records").digest(), "<u4")
_BYTES = 32


def records_digest(batches: Iterable[tuple[np.ndarray, ...]], key: AnyKey) -> str:
    """The digest of all records, each a row of coded values, under a run's key."""
    own = fold(noise_key(key), jnp.asarray(_PURPOSE.astype(np.uint32)))
    words = np.asarray(jax.random.bits(own, (8,), jnp.uint32)).astype("<u4").tobytes()
    keyed = hashlib.blake2b(key=words, digest_size=_BYTES)
    total, count, types = 0, 0, set()
    for columns in batches:
        types.add(" ".join(column.dtype.str for column in columns))
        # Codes and values alike as floats, which hold them; 0.0 is added, for -0.0 equals 0.0.
        rows = np.stack([np.asarray(column, "<f8") + 0.0 for column in columns], axis=1)
        content, width = rows.tobytes(), rows.itemsize * rows.shape[1]
        for start in range(0, len(content), width):
            record = keyed.copy()
            record.update(content[start : start + width])
            total += int.from_bytes(record.digest(), "big")
        count += len(rows)
    sums = (total % 2 ** (8 * _BYTES)).to_bytes(_BYTES, "big")
    keyed.update(b"sum" + sums + b"%d of %s" % (count, " or ".join(sorted(types)).encode()))
    return keyed.hexdigest()
