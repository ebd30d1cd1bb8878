"""A table in which every person counts with exactly r records, by a column of ids.

A person is all records with one id (`data.source.ids`); a record without an id is a person of its
own. Of a person with c > r records, r are drawn without replacement. If c <= r, the record that is
i-th in a random order, i = 0, ..., c - 1, counts ceil((r - i) / c) times, which is r in all. So n
is r times the number of persons, whatever records they have.

The order of a person's records is that of their priorities, under a key K of 256 bits:

    priority = AES_K(tag XOR occurrence),   tag = CBC-MAC_K(id, record),

where occurrence counts the identical records of one person, 0, 1, ... A record is its coded
values, in the order of the names of columns, nominal codes in that of sorted categories. The
CBC-MAC of inputs of one length is a pseudo-random function (Bellare, Kilian and Rogaway 2000). Up
to its advantage, at most (q l)^2 / 2^128 for q records of l blocks, all priorities are different,
and in a uniformly random order.

**Privacy.** For every K, the records with which a person counts are a function of K and of this
person's own records: no other record, no row number and no batch takes part in it. So if one
person's records are replaced by any others, at least one, at most r of the n records change: group
privacy for r records. The noise is drawn from other keys, so that this holds for every K, and hence
for a random one.

**Sampling.** Given its records a person's draw is uniform, and independent of the other draws. It
is the same for any order of the table, any batches and any process.

Both are proven on the page on several records of a person (docs/howto_persons.md), with its limits.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from secrets import token_bytes
from typing import Any, NamedTuple, Self, cast

import numpy as np
from jaxtyping import Bool, Float64, Int, UInt64

from dpmic_jax.data.limits import Column
from dpmic_jax.data.schema import Categories, Rule, Schema
from dpmic_jax.data.source.base import Batch, Source
from dpmic_jax.data.source.draws import (
    NO_BLOCKS,
    BlockCipher,
    Blocks,
    Kept,
    chosen,
    distinct,
    joined,
    places,
)
from dpmic_jax.data.source.ids import NO_ID, Ids, PersonId
from dpmic_jax.data.table import FEWEST_RECORDS

# Records whose owners and tags are in memory at a time while records are drawn, 32 bytes each.
HELD = 2**22
# Records that are sorted at a time.
SORTED = 2**18
# Records that are repeated at a time.
PIECE = 2**16

_END = 2**64  # of the first words of owners
_PERSON = cast("Rule", PersonId())


class _Records(NamedTuple):
    """A piece of the table.

    Attributes:
      columns: the coded values.
      owners: the MAC of their ids, which distinguishes persons.
      tags: the MAC of id and values.
      alone: whether a record has no id.
    """

    columns: Batch
    owners: Blocks
    tags: Blocks
    alone: Bool[np.ndarray, " n"]


class PersonSource(Source):
    """A table of any kind in which every person counts with `records_per_person` records.

    Its batches need the key by which records are drawn: `keyed`.
    """

    def __init__(self, schema: Schema, opened: Callable[[Schema], Source]):
        """Open the table; `opened` makes its source from a schema without persons."""
        if schema.person is None or schema.records_per_person is None:
            raise ValueError("expected a schema with person and records_per_person")
        alone = replace(schema, person=None, records_per_person=None)
        person, columns = (schema.person, _PERSON), schema.columns
        self._table = opened(replace(alone, columns=(*columns, person)))
        # Its schema has names in place of patterns.
        others = tuple(name for name in self._table.present if name != schema.person)
        self._ids = opened(replace(alone, columns=(person,), ignored=others, patterns=()))
        super().__init__(schema, self._table.present, self._table._where)
        self.path = self._table.path
        self._each = schema.records_per_person
        self._key: bytes | None = None
        self._kept: Kept | None = None
        self._last: Self | None = None

    def keyed(self, key: bytes) -> Self:
        """The same table with a key of 32 bytes, by which records are drawn when it is read."""
        if self._last is None or self._last._key != key:
            self._last = copy(self)
            self._last._key, self._last._kept = key, None
        self._last._records = self._records
        return self._last

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: never with a key, nor with what was drawn by it."""
        if self._key is not None:
            raise TypeError("a table is not pickled with the key by which records are drawn")
        return {**self.__dict__, "_last": None}

    def identity(self) -> list[str | int]:
        """That of the table."""
        return self._table.identity()

    def validate(self) -> int:
        """Check the structure of the table, and return r times the number of its persons."""
        persons = self._persons()
        if persons < FEWEST_RECORDS:
            raise ValueError(
                f"expected {self._where} to have records of at least {FEWEST_RECORDS} persons, got "
                f"{persons}"
            )
        self._records = persons * self._each
        return self._records

    def _count(self) -> int:
        return self._persons() * self._each

    def _persons(self) -> int:
        """The number of persons, which is public; the number of their records is not."""
        self._table._count()  # refuses what cannot be read, in any column
        cipher, held, alone = BlockCipher(token_bytes(32)), NO_BLOCKS, 0
        waiting: list[Blocks] = []
        for (ids,) in self._ids._pieces():
            waiting.append(cipher.mac(_words(ids[ids != NO_ID])))
            alone += int(np.count_nonzero(ids == NO_ID))
            # Merged when they are many, so that it is done a few times.
            if sum(map(len, waiting)) > max(2**20, len(held)):
                held, waiting = distinct([held, *waiting]), []
        return len(distinct([held, *waiting])) + alone

    def _pieces(self) -> Iterator[Batch]:
        if self._key is None:
            raise RuntimeError(
                "a key draws the records with which persons count: read drawn(source, key)"
            )
        kept = self._kept = self._kept or self._drawn()
        unseen = np.ones(len(kept.times), bool)
        for piece in self._tagged():
            times = np.where(piece.alone, self._each, 0)
            place = places(kept, piece.tags)
            rows = np.flatnonzero(place >= 0)
            # Records with one tag are identical: the first one counts for all of them.
            rows = rows[np.unique(place[rows], return_index=True)[1]]
            rows = rows[unseen[place[rows]]]
            unseen[place[rows]] = False
            times[rows] = kept.times[place[rows]]
            yield from _repeated(piece.columns, times)

    def _tagged(self) -> Iterator[_Records]:
        """All records with their tags, in pieces."""
        assert self._key is not None
        assert self.schema.person is not None
        cipher, place = BlockCipher(self._key), self._table.names.index(self.schema.person)
        # Neither the order of columns nor that of nominal categories has a meaning.
        by_name = sorted(range(len(self.names)), key=self.names.__getitem__)
        for piece in self._table._pieces():
            ids, columns = piece[place], (*piece[:place], *piece[place + 1 :])
            values = [_in_any_order(columns[column], self.rules[column]) for column in by_name]
            values += [np.zeros(len(ids))] * (len(values) % 2)  # to fill the last block
            owners = cipher.mac(_words(ids))
            tags = cipher.mac(np.stack(values, axis=1).view("<u8"), owners)
            yield _Records(columns, owners, tags, ids == NO_ID)

    def _drawn(self) -> Kept:
        """The records that count, drawn for the persons of one range after the other."""
        assert self._key is not None
        cipher, found, start = BlockCipher(self._key), [], 0
        while start < _END:
            owners, tags, end = self._owned_from(start)
            parts = max(1, -(-sum(map(len, owners)) // SORTED))
            step = -(-(end - start) // parts)
            for low in range(start, end, step):
                rows = [_within(part, low, min(low + step, end)) for part in owners]
                some = np.concatenate(_selected(owners, rows))
                of_some = np.concatenate(_selected(tags, rows))
                found.append(chosen(cipher, some, of_some, self._each))
            start = end
        return joined(found)

    def _owned_from(self, start: int) -> tuple[list[Blocks], list[Blocks], int]:
        """Owners and tags of the records in a range of owners from `start` on, and its end.

        While it has more than `HELD` records of more than one owner, it ends at the middle of them.
        """
        end, count = _END, 0
        owners, tags = [NO_BLOCKS], [NO_BLOCKS]
        for piece in self._tagged():
            inside = ~piece.alone & _within(piece.owners, start, end)
            owners.append(piece.owners[inside])
            tags.append(piece.tags[inside])
            count += len(owners[-1])
            while count > HELD and end - start > 1:
                # At a record's owner: halves of the range would close in on one with many records
                # in 64 passes over the table.
                first = np.concatenate([part[:, 0] for part in owners])
                end = max(int(np.partition(first, count // 2)[count // 2]), start + 1)
                rows = [_within(part, start, end) for part in owners]
                owners, tags = _selected(owners, rows), _selected(tags, rows)
                count = sum(map(len, owners))
        return owners, tags, end


def _in_any_order(column: Column, rule: Rule) -> Float64[np.ndarray, " n"]:
    """The values of a column, which float64 holds exactly; nominal codes as if they were sorted."""
    if isinstance(rule, Categories) and rule.nominal:
        ordered = sorted(rule.values)
        column = np.array([*map(ordered.index, rule.values), -1])[column]  # -1 is the last place
    return np.asarray(column, "<f8") + 0.0  # which turns -0.0 into 0.0


def _within(owners: Blocks, start: int, end: int) -> Bool[np.ndarray, " n"]:
    return (owners[:, 0] >= start) & (owners[:, 0] <= end - 1)


def _selected(parts: Sequence[Blocks], rows: Sequence[Bool[np.ndarray, " n"]]) -> list[Blocks]:
    return [part[some] for part, some in zip(parts, rows, strict=True)]


def _repeated(columns: Batch, times: Int[np.ndarray, " n"]) -> Iterator[Batch]:
    """Every record as often as it counts, in batches of at most `PIECE`."""
    ends = np.cumsum(times)
    total = int(times.sum())
    for start in range(0, total, PIECE):
        rows = np.searchsorted(ends, np.arange(start, min(start + PIECE, total)), side="right")
        yield tuple(column[rows] for column in columns)


def _words(ids: Ids) -> UInt64[np.ndarray, "n 4"]:
    return ids.view("<u8").reshape(len(ids), -1)
