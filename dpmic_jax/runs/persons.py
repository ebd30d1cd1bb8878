"""The records with which persons count in a run."""

from dpmic_jax.data.source import Source
from dpmic_jax.dp.rng.keys import AnyKey, purpose_bytes


def drawn(source: Source, key: AnyKey) -> Source:
    """The table as a run with this key reads it; only of persons, records are drawn.

    The same key draws the same records, in any release. No noise is drawn from an equal key.
    """
    if source.schema.person is None:
        return source
    return source.keyed(purpose_bytes(key, "dpmic_jax draw of records of persons"))
