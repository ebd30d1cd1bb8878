"""Stored answers of a private search, from which an interrupted search resumes.

The answers are part of what the mechanism releases. They are encrypted under the run's key all the
same: whoever interrupts a search on purpose should learn nothing before it ends.
"""

import json
from collections.abc import Callable
from typing import Any

from dpmic_jax.runs.charged import ChargedRun
from dpmic_jax.runs.encryption import DecryptionError, decrypt, encrypt

# (number of the answer, function that computes it) -> the answer, as JSON can hold it
AnswerStore = Callable[[int, Callable[[], Any]], Any]


def always_computed(number: int, compute: Callable[[], Any]) -> Any:
    """Compute every answer and store none."""
    return compute()


def stored_in(run: ChargedRun) -> AnswerStore:
    """Take answers from the folder of `run`; compute and store those that it lacks."""
    folder = run.folder
    if folder is None:
        return always_computed

    def answer(number: int, compute: Callable[[], Any]) -> Any:
        # Every purpose has its own key, so the files of two answers cannot be swapped.
        purpose = f"{run.event.label} answer {number}"
        content = folder.tile(number)
        if content is not None:
            try:
                return json.loads(decrypt(content, key=run.key, purpose=purpose))
            except DecryptionError:
                pass  # A damaged answer is computed again, from the same key: the same answer.
        found = compute()
        folder.keep_tile(number, encrypt(json.dumps(found).encode(), key=run.key, purpose=purpose))
        return found

    return answer
