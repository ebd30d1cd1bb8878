"""Releases of tables with several records a person: what they cost, their bits, what they say."""

import signal
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from faults import die_at
from processes import ended, started
from small import BOUNDS, NAMES, STATISTIC, columns, same_bits, screened

from dpmic_jax import AllPairs, Budget, ReplaceOne, ScreenResult, secret_key, seeded_key
from dpmic_jax.causal import EMPC, CausalResult, Kendall, discover, read_coded
from dpmic_jax.causal.reading import TableCodes
from dpmic_jax.data.schema import schema_of
from dpmic_jax.data.source import open_source
from dpmic_jax.data.source.persons import PersonSource
from dpmic_jax.inference import (
    IndependenceResult,
    Permutation,
    PrivateDecisions,
    PrivatePValues,
    independence_test,
    post_selection,
)
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.persons import drawn
from dpmic_jax.screening import (
    Resources,
    TopK,
    create_ledger,
    learn_bounds,
    preview,
    release_histograms,
)

PERSONS = 150


def of_persons(each=2):
    return replace(schema_of(BOUNDS), person="id", records_per_person=each)


def table():
    """600 records of 150 persons; some have one, some a dozen."""
    rng, data = np.random.default_rng(3), columns()
    ids = np.concatenate([np.arange(PERSONS), rng.geometric(0.02, 600 - PERSONS) % PERSONS])
    return {**data, "id": rng.permutation(ids)}


def shuffled():
    order = np.random.default_rng(5).permutation(600)
    return {name: values[order] for name, values in table().items()}


@pytest.fixture
def ledger(tmp_path):
    budget = Budget(1000.0, relation=ReplaceOne(2))
    return create_ledger(tmp_path / "ledger", budget, name="t", schema=of_persons())


def screen_of(data=None, each=2, **changes):
    return screened(table() if data is None else data, bounds=of_persons(each), **changes)


def test_the_result_protects_a_group_of_r_records_of_r_times_the_persons():
    result = screen_of(each=3)
    statement = result.statement
    assert statement.relation == ReplaceOne(3)
    assert (statement.n, statement.persons) == (3 * PERSONS, PERSONS)
    assert statement.sensitivity == pytest.approx(3 / (3 * PERSONS))
    assert result.names == NAMES
    for text in (f"same number of persons, {PERSONS}, which", "counts with 3 records, n = 450 in"):
        assert text in statement.text()
    assert "for one person's records, n = 450, 150 persons:" in statement.line
    again = ScreenResult.from_json(result.to_json())
    assert again == result
    assert again.statement.persons == PERSONS


def test_other_persons_than_n_are_refused_in_a_statement():
    statement = screen_of().statement
    with pytest.raises(ValueError, match="expected n to be the persons times the records of each"):
        replace(statement, persons=PERSONS + 1)


def test_records_a_person_are_those_of_the_bounds():
    one = screen_of()
    assert same_bits(one, screen_of(records_per_person=2))
    with pytest.raises(ValueError, match="as in the bounds, 2, got 3: leave it out"):
        screen_of(records_per_person=3)


def test_previews_are_of_the_records_that_the_bounds_say():
    from_bounds, said = (
        preview(columns=columns, n=300, epsilon=1.0, ask=AllPairs(), records_per_person=each)
        for columns, each in ((of_persons(2), 1), (NAMES, 2))
    )
    assert from_bounds.plan.event == said.plan.event


def test_orders_batches_and_files_give_the_same_bits(tmp_path):
    expected = screen_of(ask=TopK(4))
    order = shuffled()
    texts = order["id"].astype(str).astype(object)
    frame = pa.table({**order, "id": texts})
    pyarrow.csv.write_csv(frame, tmp_path / "table.csv")
    pyarrow.parquet.write_table(frame, tmp_path / "table.parquet", row_group_size=50)
    assert same_bits(screen_of(order, ask=TopK(4), resources=Resources(rows=9, tile=7)), expected)
    for name in ("table.csv", "table.parquet"):
        assert same_bits(replace(screen_of(tmp_path / name, ask=TopK(4)), backend=None), expected)
    assert not same_bits(screen_of(ask=TopK(4), seed=2), expected)


def work(path, out, ledger, point):
    if point is not None:
        die_at(*point)
    screen_of(path, ask=TopK(4), out=out, ledger=ledger, resources=Resources(tile=1))


def test_a_killed_run_is_resumed_with_the_same_bits(tmp_path, ledger):
    path, out = tmp_path / "table.parquet", tmp_path / "run"
    pyarrow.parquet.write_table(pa.table(shuffled()), path)
    died = ended(started(work, path, out, ledger.path, (r"open \.0000", 9)))
    assert died == -signal.SIGKILL
    found = screen_of(path, ask=TopK(4), out=out, ledger=ledger, resources=Resources(tile=1))
    whole = screen_of(ask=TopK(4))
    np.testing.assert_array_equal(found.pairs, whole.pairs)
    np.testing.assert_array_equal(found.distance, whole.distance)
    assert len(ledger.events) == 1


def test_a_run_with_a_secret_key_is_resumed_with_the_records_it_drew(tmp_path, monkeypatch, ledger):
    read, keys = [], []
    with monkeypatch.context() as patched:

        def stop(*_):
            raise KeyboardInterrupt

        patched.setattr(Folder, "keep_tile", stop)
        with pytest.raises(KeyboardInterrupt):
            screen_of(key=secret_key(), out=tmp_path / "run", ledger=ledger)
        keys.append(Folder(tmp_path / "run").key)
    keys.append(seeded_key(1))
    for key in keys:
        source = open_source(table(), of_persons())
        read.append(np.concatenate([batch[0] for batch in drawn(source, key).batches(99)]))
    assert len(read[0]) == len(read[1]) == 2 * PERSONS
    assert not np.array_equal(read[0], read[1])
    seen = []

    def noted(self, rows, real=PersonSource.batches):
        for batch in real(self, rows):
            seen.append(batch[0])
            yield batch

    monkeypatch.setattr(PersonSource, "batches", noted)
    screen_of(key=secret_key(), out=tmp_path / "run", ledger=ledger)
    # For the digest, and for the scores.
    np.testing.assert_array_equal(np.concatenate(seen), np.tile(read[0], 2))
    assert len(ledger.events) == 1


def test_a_run_is_refused_if_one_record_is_another(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "keep_tile", stop)
        with pytest.raises(KeyboardInterrupt):
            screen_of(out=tmp_path / "run", each=20)
    changed = table()
    changed["a"] = np.where(np.arange(600) == 7, 0.123, changed["a"])
    with pytest.raises(ValueError, match="holds a run on other records"):
        screen_of(changed, out=tmp_path / "run", each=20)
    screen_of(shuffled(), out=tmp_path / "run", each=20)


def test_a_ledger_of_more_records_a_person_refuses_the_charge(ledger):
    screen_of(each=5, ledger=ledger)
    with pytest.raises(ValueError, match="the budget protects people with 2 records"):
        screen_of(each=1, ledger=ledger)


def test_a_ledger_of_persons_refuses_releases_that_protect_records(tmp_path):
    of_one = {"budget": Budget(1000.0), "name": "t"}
    persons = create_ledger(tmp_path / "one", **of_one, schema=of_persons(1))
    records = replace(schema_of(BOUNDS), ignored=("id",))
    other = replace(of_persons(1), person="who", ignored=("id",))
    for bounds, data in ((records, table()), (other, {**table(), "who": table()["id"]})):
        with pytest.raises(ValueError, match="another column of ids"):
            screened(data, bounds=bounds, ledger=persons)
    assert not persons.events
    # Persons may be protected where records are.
    promised = create_ledger(tmp_path / "promised", **of_one, schema=records)
    screen_of(each=1, ledger=promised)
    assert len(promised.events) == 1


def test_every_release_reads_the_drawn_records_of_persons(ledger, tmp_path):
    result = screen_of()
    shared = {"key": secret_key(), "ledger": ledger}
    learned = learn_bounds(table(), within=of_persons(), epsilon=50.0, **shared)
    assert (learned.event.relation, learned.event.n) == (ReplaceOne(2), 2 * PERSONS)
    assert learned.schema.person == "id"
    bought = release_histograms(
        result, table(), pairs=[("a", "g")], bounds=of_persons(), epsilon=50.0, **shared
    )
    assert bought.release.event.relation == ReplaceOne(2)
    assert np.asarray(bought.release.counts).sum() == pytest.approx(2 * PERSONS, abs=60)
    alone = replace(of_persons(), person=None, records_per_person=None, ignored=("id",))
    for other in (of_persons(3), alone):
        with pytest.raises(ValueError, match="with the person of the screen"):
            release_histograms(
                result, table(), pairs=[("a", "g")], bounds=other, epsilon=50.0, **shared
            )
    tested = independence_test(
        table(),
        bounds=of_persons(),
        pairs=[("a", "g"), ("a", "e")],
        epsilon=50.0,
        method=PrivatePValues(),
        **shared,
    )
    assert tested.dependent == (True, False)
    assert f"the same number of persons, {PERSONS}" in tested.statement.text()
    assert IndependenceResult.from_json(tested.to_json()) == tested
    codes = TableCodes(open_source(table(), of_persons()), 2)
    found = discover(codes, Kendall, EMPC(epsilon=500.0, threshold=2.0, max_order=0), **shared)
    assert found.privacy.event.relation == ReplaceOne(2)
    assert found.privacy.event.n == 2 * PERSONS
    assert f"one person's records, n = 300, {PERSONS} persons" in found.privacy.line
    assert CausalResult.from_json(found.to_json()).privacy == found.privacy
    assert [event.relation for event in ledger.events] == [ReplaceOne(2)] * 4


def test_tests_that_shuffle_records_take_one_a_person():
    settings = {"pairs": [("a", "g")], "epsilon": 90.0, "key": seeded_key(1)}
    decisions = PrivateDecisions(draws=39)
    for each, message in ((2, "records of one person are not"), (1, "")):
        bounds, result = of_persons(each), screen_of(each=each)
        tests = (
            lambda bounds=bounds: independence_test(
                table(), bounds=bounds, method=decisions, **settings
            ),
            lambda bounds=bounds, result=result: post_selection(
                result.top(1),
                table(),
                bounds=bounds,
                test=Permutation(statistic=STATISTIC, draws=99),
                key=seeded_key(3),
                force=True,
            ),
        )
        for test in tests:
            if message:
                with pytest.raises(ValueError, match=message):
                    test()
            else:
                test()


def test_codes_of_persons_need_a_key():
    codes = read_coded(table(), bounds=of_persons(), bins=2, key=seeded_key(1))
    assert codes.data.n == 2 * PERSONS
    with pytest.raises(RuntimeError, match="a key draws"):
        read_coded(table(), bounds=of_persons(), bins=2)
