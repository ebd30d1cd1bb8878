"""Answers of a private search, kept so that a search that was interrupted goes on with them.

What is kept is part of what the mechanism releases. It is sealed under the run's key all the same,
for whoever stops a search on purpose is to see no more than its end.
"""

import json
from collections.abc import Callable
from typing import Any

from dpmic_jax.runs.charged import ChargedRun
from dpmic_jax.runs.encryption import DecryptionError, decrypt, encrypt

# number of an answer, how to find it -> the answer, in plain values
Answers = Callable[[int, Callable[[], Any]], Any]


def computed(number: int, find: Callable[[], Any]) -> Any:
    """Every answer anew."""
    return find()


def kept_in(run: ChargedRun) -> Answers:
    """Answers that are in the folder of a run, and new ones put there."""
    folder = run.folder
    if folder is None:
        return computed

    def answer(number: int, find: Callable[[], Any]) -> Any:
        purpose = f"{run.event.label} answer {number}"
        content = folder.tile(number)
        if content is not None:
            try:
                return json.loads(decrypt(content, key=run.key, purpose=purpose))
            except DecryptionError:
                pass  # damaged, so it is found again: the same, for its noise is
        found = find()
        folder.keep_tile(number, encrypt(json.dumps(found).encode(), key=run.key, purpose=purpose))
        return found

    return answer
