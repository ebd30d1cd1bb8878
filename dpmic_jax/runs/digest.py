"""A keyed digest of a table's records, to check that a resumed run reads the same data.

Let F be a keyed hash (BLAKE2b under a key derived from the run's key). The digest is F of the types
of the columns, by which values are rounded, and of the sum of F(record) over all records, modulo
2^256. The sum does not depend on the order of the records or on how they are split into batches.
F is a pseudo-random function. So without the run's key the digest reveals nothing, and another
table has the same digest with probability 2^-256.
"""

import hashlib
from collections.abc import Iterable

import numpy as np

from dpmic_jax.dp.rng.keys import AnyKey, purpose_bytes

_BYTES = 32


def records_digest(batches: Iterable[tuple[np.ndarray, ...]], key: AnyKey) -> str:
    """The digest of all records, each a row of coded values, under the key of a run."""
    words = purpose_bytes(key, "dpmic_jax digest of records")
    keyed = hashlib.blake2b(key=words, digest_size=_BYTES)
    total, count, types = 0, 0, set()
    for columns in batches:
        types.add(" ".join(column.dtype.str for column in columns))
        # float64 holds codes and values exactly. Adding 0.0 turns -0.0 into 0.0, which it equals.
        rows = np.stack([np.asarray(column, "<f8") + 0.0 for column in columns], axis=1)
        content, width = rows.tobytes(), rows.itemsize * rows.shape[1]
        for start in range(0, len(content), width):
            record = keyed.copy()
            record.update(content[start : start + width])
            total += int.from_bytes(record.digest(), "big")
        count += len(rows)
    # The count and the types are hashed with the sum, so tables that differ in them differ.
    sums = (total % 2 ** (8 * _BYTES)).to_bytes(_BYTES, "big")
    keyed.update(b"sum" + sums + b"%d of %s" % (count, " or ".join(sorted(types)).encode()))
    return keyed.hexdigest()
