"""All data sets of few records, and what each becomes with one record more."""

import itertools

import numpy as np


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
    shape = after.shape[2:]
    found = score(after.reshape(-1, *shape)).reshape(after.shape[:2])
    first = score(before)[:, None]
    return float((found.max(axis=1) - found.min(axis=1)).max()), float(np.abs(found - first).max())
