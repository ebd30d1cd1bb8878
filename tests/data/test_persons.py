"""Persons with many records, few or none of an id: which records count, and how often."""

import itertools
import pickle
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.data.schema import Categories, Number, Schema, TextFormat
from dpmic_jax.data.source import Query, draws, open_source, persons

KEY = bytes(range(32))
RULES = (("who", Number(0, 1000)), ("value", Number(0, 1)))
SIZES = [1, 2, 3, 4, 7, 30, 1000]  # records of one person each


def schema(each):
    return Schema(RULES, ignored=("note",), person="id", records_per_person=each)


def table(rng, sizes=SIZES):
    """Persons of these sizes, mixed; `who` says whose a record is, and `value` which one."""
    who = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return pd.DataFrame({"id": who + 100, "note": "n", "who": who, "value": rng.random(len(who))})


def counted(data, each, key=KEY, rows=64):
    """How often each record counts."""
    source = open_source(data, schema(each))
    n = source.validate()
    records = [row for batch in source.keyed(key).batches(rows) for row in zip(*batch, strict=True)]
    assert len(records) == n
    return Counter((float(who), float(value)) for who, value in records)


@pytest.mark.parametrize("each", [1, 2, 5, 40])
def test_every_person_counts_with_exactly_r_of_its_own_records(rng, each):
    data = table(rng)
    held = Counter(zip(data["who"], data["value"], strict=True))
    found = counted(data, each)
    assert found.keys() <= held.keys()
    times = defaultdict(list)
    for (who, _), count in found.items():
        times[who].append(count)
    assert {who: sum(counts) for who, counts in times.items()} == dict.fromkeys(
        range(len(SIZES)), each
    )
    for who, size in enumerate(SIZES):
        # Without replacement, and in turn: as equally often as possible.
        assert len(times[who]) == min(size, each)
        assert max(times[who]) - min(times[who]) <= 1


def forms(data, folder):
    """One table in every kind of source."""
    nullable = data.convert_dtypes()
    texts = data.assign(id=data["id"].map(lambda i: f" 0{i:.0f} " if i == i else None))
    arrow = pa.Table.from_pandas(nullable, preserve_index=False)
    pyarrow.csv.write_csv(arrow, folder / "table.csv")
    data.to_csv(folder / "floats.csv", index=False)
    pyarrow.parquet.write_table(arrow, folder / "table.parquet", row_group_size=100)
    with duckdb.connect(folder / "table.duckdb") as connection:
        connection.register("given", arrow)
        connection.execute("CREATE TABLE records AS SELECT * FROM given")
    return {
        "pandas, floats for a hole": data,
        "pandas, nullable": nullable,
        "pandas, texts": texts,
        "polars": pl.from_arrow(arrow),
        "arrow": arrow,
        "objects": {name: list(nullable[name]) for name in nullable},
        "decimals": arrow.set_column(0, "id", arrow["id"].cast(pa.decimal128(25, 2))),
        "dictionary": arrow.set_column(0, "id", arrow["id"].cast(pa.string()).dictionary_encode()),
        "csv": folder / "table.csv",
        "csv of floats": folder / "floats.csv",
        "parquet": folder / "table.parquet",
        "duckdb": Query(f"duckdb:{folder / 'table.duckdb'}", "SELECT * FROM records"),
    }


def test_all_sources_orders_and_batches_draw_the_same_records(rng, tmp_path, monkeypatch):
    data = table(rng)
    data.loc[rng.choice(len(data), 20, replace=False), "id"] = np.nan
    expected = counted(data, 3)
    assert sum(expected.values()) == 3 * (len(SIZES) + 20)
    for name, form in forms(data, tmp_path).items():
        assert counted(form, 3) == expected, name
    shuffled = data.sample(frac=1, random_state=1)
    assert counted(shuffled, 3, rows=7) == expected
    # Drawn in many ranges of persons, from pieces and into batches of a few records.
    monkeypatch.setattr(persons, "HELD", 10)
    monkeypatch.setattr(persons, "SORTED", 4)
    monkeypatch.setattr(persons, "PIECE", 5)
    monkeypatch.setattr("dpmic_jax.data.source.memory.PIECE", 11)
    assert counted(shuffled, 3) == expected
    assert counted(data, 3, key=bytes(32)) != expected


def test_a_draw_depends_on_the_records_of_that_person_alone(rng):
    data = table(rng)
    found = counted(data, 2)
    others = table(rng, [4, 1, 1, 9, 2, 2])
    others["id"] += 1000
    others["who"] += 500
    kept = data[data["who"].isin([3, 5])]
    apart = counted(pd.concat([others, kept, others.assign(id=others["id"] + 9)]), 2)
    for who in (3, 5):
        assert {r: c for r, c in found.items() if r[0] == who} == {
            r: c for r, c in apart.items() if r[0] == who
        }


def test_the_order_of_a_person_s_records_depends_on_all_bits_of_their_priorities():
    """Bits that are lost to the numbers of persons would let how many there are decide."""
    person, priority = np.array([0, 0, 0, 1]), np.array([7, 5, 6, 9], np.uint64)
    assert draws._ranks(person, priority).tolist() == [2, 0, 1, 0]
    # Those of one person, beside any number of others.
    many = np.append(person, np.arange(2, 40))
    ranks = draws._ranks(many, np.append(priority, np.zeros(38, np.uint64)))
    assert ranks[:3].tolist() == [2, 0, 1]


def test_the_order_of_columns_and_of_nominal_categories_changes_no_draw(rng):
    data = table(rng).drop(columns="note")
    data["group"] = rng.choice(["a", "b", "c", "?"], len(data))

    def drawn(groups, names):
        columns = (*RULES, ("group", Categories(groups)))
        bounds = Schema(columns, person="id", records_per_person=2)
        source = open_source(data[names], bounds).keyed(KEY)
        value = source.names.index("value")
        return Counter(v for batch in source.batches(64) for v in batch[value].tolist())

    names = list(data.columns)
    expected = drawn(("a", "b", "c"), names)
    assert drawn(("c", "a", "b"), names) == expected
    assert drawn(("a", "b", "c"), names[::-1]) == expected
    assert expected != Counter(data["value"])


def drawn_by_many_keys(values, each, keys=1000):
    """How often each multiset of records is drawn of a person with these records."""
    fillers = [(f"f{k}", 0.0, 0.0) for k in range(3)]
    rows = [("p", 1.0, value) for value in values]
    ids, who, value = zip(*fillers, *rows, strict=True)
    source = open_source(
        {"id": list(ids), "note": [0] * len(ids), "who": list(who), "value": list(value)},
        schema(each),
    )
    found = Counter()
    for key in range(keys):
        (batch,) = source.keyed(key.to_bytes(32, "little")).batches(100)
        found[tuple(sorted(v for w, v in zip(*batch, strict=True) if w == 1.0))] += 1
    return found


def uniform(values, each):
    """The distribution of a draw, from its definition."""
    if each <= len(values):
        every = list(itertools.combinations(range(len(values)), each))
        drawn = [tuple(sorted(values[i] for i in chosen)) for chosen in every]
    else:
        every = list(itertools.combinations(range(len(values)), each % len(values)))
        turns = each // len(values)
        drawn = [
            tuple(sorted([*(list(values) * turns), *(values[i] for i in chosen)]))
            for chosen in every
        ]
    return {multiset: count / len(every) for multiset, count in Counter(drawn).items()}


def chi_square(found, expected):
    total = sum(found.values())
    assert found.keys() <= expected.keys()
    return sum((found[k] - total * p) ** 2 / (total * p) for k, p in expected.items())


@pytest.mark.parametrize(
    ("values", "each"),
    [
        ((0.1, 0.2, 0.3, 0.4), 2),
        ((0.1, 0.1, 0.1, 0.2), 1),
        ((0.1, 0.1, 0.2), 2),
        ((0.1, 0.2, 0.3), 4),
    ],
)
def test_draws_are_uniform_also_of_identical_records(values, each):
    expected = uniform(values, each)
    found = drawn_by_many_keys(values, each)
    # Of at most 5 degrees of freedom, above 30 with probability 1.5e-5.
    assert chi_square(found, expected) < 30


def test_identical_records_that_count_as_one_are_found_out(monkeypatch):
    """The control: one priority for all occurrences of a record, 1/2 in place of 3/4."""

    def once(cipher, owners, tags, each):
        rows = np.unique(tags, axis=0, return_index=True)[1]
        return draws.chosen(cipher, owners[rows], tags[rows], each)

    monkeypatch.setattr(persons, "chosen", once)
    values = (0.1, 0.1, 0.1, 0.2)
    assert chi_square(drawn_by_many_keys(values, 1, keys=400), uniform(values, 1)) > 30


def ids_of(*cells):
    """Which of these cells are one person, as numbers; None for none."""
    data = {"id": list(cells), "note": [0] * len(cells), "who": [0] * len(cells)}
    source = open_source({**data, "value": [0] * len(cells)}, schema(1))
    (found,) = source._ids._pieces()
    seen = list(dict.fromkeys(bytes(cell) for cell in found[0].tolist() if cell))
    return [seen.index(bytes(cell)) if cell else None for cell in found[0].tolist()]


def test_a_whole_number_is_one_id_however_it_is_written():
    same = (
        7,
        7.0,
        "7",
        "007",
        " 7 ",
        "7.0",
        "+7",
        np.int8(7),
        np.float32(7),
        Decimal("7.00"),
        b"7",
    )
    assert set(ids_of(*same)) == {0}
    large = (2**64, "18446744073709551616", float(2**64), Decimal(2**64))
    assert set(ids_of(*large)) == {0}
    assert set(ids_of(2**63 - 1, str(2**63 - 1))) == {0}


def test_other_texts_are_ids_of_their_own():
    texts = ("a", "A", "7a", "7e0", "0x7", "7.5", "1_0", "\u0667", "a b", "P-1", "inf")
    different = (*texts, 7, 8, 0, -7)
    assert ids_of(*different) == list(range(len(different)))
    one = UUID(int=5)
    assert ids_of(one, str(one), UUID(int=6)) == [0, 0, 1]
    assert ids_of(2**63 - 1, -(2**63), 2**63, 2**64 - 1) == [0, 1, 2, 3]


@pytest.mark.parametrize("other", ["5", "A"])
def test_an_id_that_is_declared_missing_is_so_whatever_the_ids_of_others_are(tmp_path, other):
    """Or the id of one person would decide whether these records are of one person or of three."""
    path, ids = tmp_path / "table.csv", ["1", "2", "3", "-9", "-9", "-9", other]
    path.write_text("id,note,who,value\n" + "".join(f"{each},n,0,0\n" for each in ids))
    for missing, n in (("-9",), 7), ((), 5):
        bounds = replace(schema(1), text=TextFormat(missing=missing))
        assert open_source(path, bounds).validate() == n


class Odd:
    def __str__(self):
        raise ValueError("private")


def test_what_is_no_id_is_missing_and_never_an_error():
    cells = (
        None,
        "",
        "  ",
        "NA",
        float("nan"),
        pd.NA,
        pd.NaT,
        np.ma.masked,
        Decimal("sNaN"),
        Odd(),
    )
    assert ids_of(*cells) == [None] * len(cells)


@given(st.lists(st.integers(0, 5) | st.none(), min_size=8, max_size=30))
def test_n_is_r_times_the_ids_and_the_records_without_one(ids):
    data = {"id": ids, "note": ids, "who": [0] * len(ids), "value": [0] * len(ids)}
    expected = len(set(ids) - {None}) + ids.count(None)
    source = open_source(data, schema(3))
    if expected < 4:
        # The number of persons is public, the number of records is not.
        with pytest.raises(ValueError, match=f"at least 4 persons, got {expected}$"):
            source.validate()
    else:
        assert source.validate() == 3 * expected


def test_a_table_is_not_read_without_a_key_and_not_pickled_with_one(rng):
    source = open_source(table(rng), schema(1))
    source.validate()
    with pytest.raises(RuntimeError, match="a key draws"):
        list(source.batches(10))
    keyed = source.keyed(KEY)
    first = [column for batch in keyed.batches(10) for column in batch]
    with pytest.raises(TypeError, match="not pickled with the key"):
        pickle.dumps(keyed)
    content = pickle.dumps(source)
    assert KEY not in content
    again = [column for batch in pickle.loads(content).keyed(KEY).batches(10) for column in batch]
    assert all(map(np.array_equal, first, again))
    assert source.keyed(KEY) is keyed


def test_a_file_that_changed_since_is_refused(rng, tmp_path):
    data, path = table(rng), tmp_path / "table.csv"
    data.to_csv(path, index=False)
    source = open_source(path, schema(2))
    source.validate()
    keyed = source.keyed(KEY)
    assert sum(len(batch[0]) for batch in keyed.batches(100)) == 2 * len(SIZES)
    data.drop(data.index[data["who"] == 0]).to_csv(path, index=False)
    for again in (keyed, source.keyed(bytes(32))):
        with pytest.raises(ValueError, match="has changed since it was checked: it had 14 records"):
            list(again.batches(100))


@pytest.mark.parametrize("kind", ["date32", "bool list", "struct"])
def test_columns_that_hold_no_ids_are_refused_by_their_type(kind, tmp_path):
    cells = {"date32": pa.array([1] * 4, pa.date32()), "bool list": pa.array([[True]] * 4)}
    column = cells.get(kind, pa.array([{"a": 1}] * 4))
    data = pa.table({"id": column, "note": [0] * 4, "who": [0] * 4, "value": [0] * 4})
    pyarrow.parquet.write_table(data, tmp_path / "table.parquet")
    for form in (data, tmp_path / "table.parquet"):
        with pytest.raises(TypeError, match="expected ids of persons in column 'id'"):
            open_source(form, schema(1))


def test_tags_of_one_first_word_are_told_apart():
    words = np.array([[1, 5], [3, 1], [3, 2], [3, 9]], np.uint64)
    kept = draws.Kept(words[:, 0], words[:, 1], np.ones(4, int))
    asked = np.array([[3, 9], [3, 3], [1, 5], [0, 5], [9, 9], [3, 1]], np.uint64)
    assert draws.places(kept, asked).tolist() == [3, -1, 0, -1, -1, 1]
