"""Which records of persons count: tags of records, the draw, and the look-up of what was drawn.

The theorem and its proof are in `data.source.persons`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from jaxtyping import Int, UInt64

Blocks = UInt64[np.ndarray, "n 2"]  # of 128 bits
NO_BLOCKS = np.zeros((0, 2), np.uint64)


class Kept(NamedTuple):
    """The records that count, by their tags: without repeats, and in order of the first words.

    Attributes:
      first, second: the words of the tags.
      times: how often the records with a tag count, all of them together.
    """

    first: UInt64[np.ndarray, " kept"]
    second: UInt64[np.ndarray, " kept"]
    times: Int[np.ndarray, " kept"]


class BlockCipher:
    """A block cipher under one key, on many blocks at once."""

    def __init__(self, key: bytes):
        # The mode means that every block is by itself.
        self._blocks = Cipher(algorithms.AES(key), modes.ECB())

    def __call__(self, blocks: Blocks) -> Blocks:
        """Every block encrypted."""
        found = self._blocks.encryptor().update(blocks.astype("<u8").tobytes())
        return np.frombuffer(found, "<u8").reshape(-1, 2)

    def mac(self, words: UInt64[np.ndarray, "n words"], state: Blocks | None = None) -> Blocks:
        """The CBC-MAC of an even number of words in each row, continued from a state."""
        for place in range(0, words.shape[1], 2):
            block = words[:, place : place + 2]
            state = self(block if state is None else state ^ block)
        assert state is not None
        return state


def chosen(cipher: BlockCipher, owners: Blocks, tags: Blocks, each: int) -> Kept:
    """The records with which some persons count: those of the lowest priorities.

    Args:
      cipher: of the key of the draw.
      owners: of each record its person; all records of these persons are there.
      tags: of each record its tag, equal for identical records of one person.
      each: with how many records a person counts.
    """
    order = _together(owners)
    person, tags = _groups(owners[order])[0], tags[order]
    order = _together(tags)
    person, tags = person[order], tags[order]
    _, occurrence = _groups(tags)
    blocks = tags.copy()
    blocks[:, 0] ^= occurrence.astype(np.uint64)
    rank = _ranks(person, cipher(blocks)[:, 0])
    count = np.bincount(person)[person]
    times = -((rank - each) // count)
    starts = np.flatnonzero(occurrence == 0)
    together = np.add.reduceat(times, starts) if len(times) else times
    counts = starts[together > 0]
    return Kept(tags[counts, 0], tags[counts, 1], together[together > 0])


def _ranks(
    person: Int[np.ndarray, " n"], priority: UInt64[np.ndarray, " n"]
) -> Int[np.ndarray, " n"]:
    """The position of every record among those of its person, by its priority."""
    used = np.uint64(int(person.max(initial=1)).bit_length())
    # One number to sort by. How many of the lowest bits of priorities are lost depends on how many
    # persons there are. So where two numbers are equal, all bits count, and then the tags, in whose
    # order the records are: the order of a person's records depends on nothing else.
    merged = (person.astype(np.uint64) << (np.uint64(64) - used)) | (priority >> used)
    order, counts = np.argsort(merged, kind="stable"), np.bincount(person)
    if np.any(np.diff(merged[order]) == 0):
        order = np.lexsort((priority, person))
    found = np.empty(len(person), np.int64)
    found[order] = np.arange(len(person)) - np.repeat(np.cumsum(counts) - counts, counts)
    return found


def _together(rows: Blocks) -> Int[np.ndarray, " n"]:
    """An order by first words in which equal rows are next to each other."""
    order = np.argsort(rows[:, 0])
    first, second = rows[order].T
    if np.any((first[1:] == first[:-1]) & (second[1:] != second[:-1])):  # for one pair in 2^64
        return np.lexsort((rows[:, 1], rows[:, 0]))
    return order


def _groups(rows: Blocks) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """The group of each of these rows, of which equal ones are together, and its position there."""
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    group = np.cumsum(new) - 1
    return group, np.arange(len(rows)) - np.flatnonzero(new)[group]


def joined(parts: Sequence[Kept]) -> Kept:
    """The records that count of different persons."""
    first, second, times = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(first)
    return Kept(first[order], second[order], times[order])


def places(kept: Kept, tags: Blocks) -> Int[np.ndarray, " n"]:
    """The positions of tags among those that are kept, -1 for others."""
    place, at = np.full(len(tags), -1), np.searchsorted(kept.first, tags[:, 0])
    some = np.arange(len(tags) if len(kept.times) else 0)
    while some.size:  # more than once only if two tags have the same first word
        some = some[at[some] < len(kept.times)]
        some = some[kept.first[at[some]] == tags[some, 0]]
        same = kept.second[at[some]] == tags[some, 1]
        place[some[same]] = at[some[same]]
        some = some[~same]
        at[some] += 1
    return place


def distinct(parts: Sequence[Blocks]) -> Blocks:
    """The different blocks."""
    rows = np.concatenate(parts)
    rows = rows[_together(rows)]
    return rows[_groups(rows)[1] == 0]
