"""All data sets of few records, and what each becomes with one record more."""

import itertools

import numpy as np

SETS = 2000  # that are scored at a time, to save memory


def completed(records, rest):
    """Every multiset of `rest` records and every way to add one: counts[set, added, *cell].

    Any two sets of a row differ in one record, and all such neighbours are met. `records` is the
    shape of the table of counts: blocks, rows, columns.
    """
    cells = int(np.prod(records))
    chosen = np.array(list(itertools.combinations_with_replacement(range(cells), rest)))
    before = np.zeros((len(chosen), cells), np.int64)
    for column in chosen.T:
        np.add.at(before, (np.arange(len(chosen)), column), 1)
    return with_one_more(before.reshape(-1, *records))


def with_one_more(before):
    """Those sets, and each with every record added."""
    cells = int(np.prod(before.shape[1:]))
    one = np.eye(cells, dtype=np.int64).reshape(cells, *before.shape[1:])
    return before, before[:, None] + one


def moves(score, before, after):
    """The largest move by a replaced record, and by an inserted one."""
    shape, replaced, inserted = after.shape[2:], 0.0, 0.0
    for start in range(0, len(before), SETS):
        one, more = before[start : start + SETS], after[start : start + SETS]
        found, first = score(more.reshape(-1, *shape)).reshape(more.shape[:2]), score(one)[:, None]
        replaced = max(replaced, float((found.max(axis=1) - found.min(axis=1)).max()))
        inserted = max(inserted, float(np.abs(found - first).max()))
    return replaced, inserted
