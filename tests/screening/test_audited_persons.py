"""Exact audits of what one person can change: all their records, by any number of any others.

Tables of four persons on the real path, from `open_source` to the integers of a screen. One person
has every choice of one to three records of four kinds in turn, in every context of the others.
"""

import itertools
from fractions import Fraction
from functools import cache

import jax
import numpy as np
import pytest

from dpmic_jax import Number
from dpmic_jax.data.schema import Schema
from dpmic_jax.data.source import draws, open_source, persons
from dpmic_jax.dp.audit import exact_loss
from dpmic_jax.mic import distance
from dpmic_jax.mic.batch import score_pairs
from dpmic_jax.mic.statistics import MICrAndDistance

RECORDS = list(itertools.product((0, 1), repeat=2))
OWN = [
    chosen
    for size in (1, 2, 3)
    for chosen in itertools.combinations_with_replacement(RECORDS, size)
]
# Of the three other persons. Draws of those with many records may go either way.
OTHERS = [
    ([(0, 0)], [(1, 1)], [(0, 1)]),
    ([(0, 0), (1, 1), (0, 1)], [(1, 0), (0, 0)], [(1, 1), (0, 0), (1, 0), (0, 1)]),
    ([(1, 1), (1, 1), (0, 0)], [(1, 0)], [(0, 0), (0, 0), (1, 1), (1, 1), (1, 1)]),
]
KEYS = [bytes([number]) * 32 for number in range(2)]
EPSILON = Fraction(1)
RULES = (("x", Number(0, 1)), ("y", Number(0, 1)))


def table(own, others, alone):
    """The table with the person's records first and between those of others, or without an id."""
    rows = [(None if alone else "p", record) for record in own]
    for number, records in enumerate(others):
        rows += [(f"other {number}", record) for record in records]
    rows = rows[::2] + rows[1::2]
    ids, records = zip(*rows, strict=True)
    x, y = zip(*records, strict=True)
    return {"id": list(ids), "x": list(x), "y": list(y)}


def read(data, each, key):
    """The records that count."""
    source = open_source(data, Schema(RULES, person="id", records_per_person=each))
    n = source.validate()
    (batch,) = source.keyed(key).batches(2 * n)
    return batch


def groups(each, key):
    """Tables of which any two are neighbours: (own records, context, r, key), by context."""
    for context in range(len(OTHERS)):
        # Of one record, the person may also have no id.
        alone = [(own, True, context, each, key) for own in OWN if len(own) == 1]
        yield [(own, False, context, each, key) for own in OWN] + alone


def ones(own, alone, context, each, key):
    x, y = read(table(own, OTHERS[context], alone), each, key)
    return int(np.sum(x * y))


def noisy_count(sensitivity):
    """A count of records with x = y = 1, with noise on integers of this sensitivity."""
    # Hardly above e^-(epsilon / sensitivity), so that the loss is hardly below epsilon.
    ratio = Fraction(np.exp(-float(EPSILON) / sensitivity)) + Fraction(1, 2**50)

    @cache
    def distribution(count):
        reach = 24
        inside = {
            out: (1 - ratio) / (1 + ratio) * ratio ** abs(out - count)
            for out in range(1 - reach, reach)
        }
        ends = {out: ratio ** abs(out - count) / (1 + ratio) for out in (-reach, reach)}
        return inside | ends

    return distribution


def counts(each):
    """Of neighbouring tables the counts, each group once: what is released depends on no more."""
    every = itertools.chain.from_iterable(groups(each, key) for key in KEYS)
    return {tuple(sorted({ones(*data) for data in group})) for group in every}


def loss(each, sensitivity):
    return exact_loss(noisy_count(sensitivity), counts(each))


@pytest.mark.parametrize("each", [1, 2, 3])
def test_the_exact_loss_of_a_count_is_epsilon_at_the_sensitivity_of_r_records(each):
    groups_of_counts = counts(each)
    found = exact_loss(noisy_count(each), groups_of_counts)
    assert found.at_most(EPSILON)
    # All of r records are needed: the guarantee is tight.
    assert found.epsilon == pytest.approx(1, abs=1e-6)
    assert not exact_loss(noisy_count(each * 2 / 3), groups_of_counts).at_most(EPSILON)


def replaced_tags(monkeypatch, of_rows):
    """Draw by tags that `of_rows` makes of those of the rows in their order."""

    def drawn(cipher, owners, tags, each):
        own = of_rows(tags.copy(), np.arange(len(tags), dtype=np.uint64))
        kept = draws.chosen(cipher, owners, own, each)
        rows = [np.flatnonzero((own == tag).all(axis=1))[0] for tag in zip(*kept[:2], strict=True)]
        found, place = np.unique(tags[rows], axis=0, return_inverse=True)
        times = np.bincount(place.ravel(), kept.times, len(found)).astype(int)
        return draws.Kept(found[:, 0].copy(), found[:, 1].copy(), times)

    monkeypatch.setattr(persons, "chosen", drawn)


def by_row(tags, rows):
    tags[:] = 0
    tags[:, 0] = rows
    return tags


def by_batch(tags, rows):
    tags[:, 1] ^= rows // 3
    return tags


@pytest.mark.parametrize(("wrong", "each"), [(by_row, 1), (by_batch, 2)])
def test_draws_by_row_number_or_by_batch_are_found_out(monkeypatch, wrong, each):
    replaced_tags(monkeypatch, wrong)
    assert not loss(each, each).at_most(EPSILON)


def test_the_wrapper_of_the_controls_changes_nothing_by_itself(monkeypatch):
    replaced_tags(monkeypatch, lambda tags, _: tags)
    assert loss(2, 2).at_most(EPSILON)


def test_persons_that_count_with_all_records_are_found_out(monkeypatch):
    """Three records of a person at the sensitivity of one."""

    def every(cipher, owners, tags, each):
        found, times = np.unique(tags, axis=0, return_counts=True)
        return draws.Kept(found[:, 0].copy(), found[:, 1].copy(), times)

    monkeypatch.setattr(persons, "chosen", every)
    monkeypatch.setattr(persons.PersonSource, "_counted", lambda _, batches: batches)
    monkeypatch.setattr(persons.PersonSource, "validate", lambda _: 99)
    assert loss(1, 1).epsilon == pytest.approx(3, abs=1e-6)


def distances(each, key):
    """Of every context the distances from independence of all its tables, in integer steps."""
    tables = [data for group in groups(each, key) for data in group]
    read_tables = [read(table(own, OTHERS[at], alone), each, key) for own, alone, at, *_ in tables]
    n = 4 * each
    columns = [batch[0] for batch in read_tables] + [batch[1] for batch in read_tables]
    cut = MICrAndDistance(micr=None).cut(columns, [(0.0, 1.0)] * len(columns))
    pairs = np.arange(len(columns)).reshape(2, -1).T
    found = np.concatenate(list(score_pairs(cut, pairs, None, devices=jax.devices()[:1])), axis=2)
    assert found.shape[2] == len(tables)
    return found[-1].max(axis=0).reshape(len(OTHERS), -1), 2 * distance.steps_of(n)


def largest_move(each):
    """The largest move by one person of every key, in moves of one record."""
    found = [distances(each, key) for key in KEYS]
    return max(np.ptp(points, axis=1).max() / record for points, record in found)


def test_a_person_moves_the_distance_of_a_screen_by_r_records_at_most():
    assert largest_move(1) <= 1
    # One record would not do.
    assert 1 < largest_move(2) <= 2


def test_a_distance_of_records_drawn_by_their_row_is_found_out(monkeypatch):
    replaced_tags(monkeypatch, by_row)
    assert largest_move(1) > 1
