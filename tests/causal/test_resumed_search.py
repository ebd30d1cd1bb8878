"""A search for a graph in a folder: interrupted, it goes on to the same graph for one charge."""

import shutil

import numpy as np
import pytest

from dpmic_jax import Budget, BudgetExceeded, LedgerFile, create_ledger, secret_key, seeded_key
from dpmic_jax.causal import EMPC, SVTPC, CausalResult, Kendall, PrivPC, discover, read_coded
from dpmic_jax.causal.preview import preview_search
from dpmic_jax.causal.reading import TableCodes
from dpmic_jax.data.schema import schema_of
from dpmic_jax.data.source import open_source
from dpmic_jax.runs.checkpoint import Folder

N, NAMES = 300, ("a", "b", "c", "d")
BOUNDS = dict.fromkeys(NAMES, (0, 1))
SHARED = {"epsilon": 300.0, "threshold": 2.0, "max_order": 1}
SEARCHES = {
    "svt": SVTPC(rounds=8, **SHARED),
    "em": EMPC(**SHARED),
    "priv": PrivPC(rounds=8, subsample=100, tweak=0.0, **SHARED),
}


def table(seed=7):
    """b follows a, c follows b; d depends on nothing."""
    rng = np.random.default_rng(seed)
    a, d = rng.random((2, N))
    b = np.where(rng.random(N) < 0.1, rng.random(N), a)
    c = np.where(rng.random(N) < 0.1, rng.random(N), b)
    return dict(zip(NAMES, (a, b, c, d), strict=True))


def codes(data=None):
    return TableCodes(open_source(table() if data is None else data, BOUNDS), 2)


def found(search, data=None, key=None, **settings):
    key = seeded_key(3) if key is None else key
    return discover(codes(data), Kendall, search, key=key, **settings)


@pytest.fixture
def ledger(tmp_path):
    return create_ledger(tmp_path / "ledger", Budget(1e4), name="t", schema=schema_of(BOUNDS))


@pytest.fixture
def stops(monkeypatch):
    """Make searches stop once so many answers are kept."""
    real = Folder.keep_tile

    def after(count):
        kept = []

        def counted(self, number, content):
            if len(kept) == count:
                raise KeyboardInterrupt
            kept.append(number)
            real(self, number, content)

        monkeypatch.setattr(Folder, "keep_tile", counted)
        return kept

    yield after
    monkeypatch.undo()


of_each = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


@of_each
@pytest.mark.parametrize("count", [0, 1])
def test_an_interrupted_search_resumes_to_the_same_graph_for_one_charge(
    search, count, ledger, tmp_path, stops
):
    out = tmp_path / "run"
    stops(count)
    with pytest.raises(KeyboardInterrupt):
        found(search, ledger=ledger, out=out)
    assert len(ledger.events) == 1
    kept = stops(99)
    again = found(search, ledger=ledger, out=out)
    assert len(ledger.events) == 1
    assert count not in range(min(kept))  # what was kept is not asked again
    whole = found(search)
    assert again.found == whole.found
    assert again.privacy.event == whole.privacy.event
    assert again.privacy.ledger == f"{ledger.identity}#1"
    assert sorted(entry.name for entry in out.iterdir()) == ["lock", "result.json", "run.json"]


@of_each
def test_a_finished_search_returns_its_graph_again(search, ledger, tmp_path, monkeypatch):
    first = found(search, ledger=ledger, out=tmp_path / "run", key=secret_key())

    def unread(self):
        raise AssertionError("read")

    monkeypatch.setattr(TableCodes, "read", unread)
    again = found(search, ledger=ledger, out=tmp_path / "run", key=secret_key())
    assert again == first
    assert again.to_dict() == first.to_dict()
    assert len(ledger.events) == 1


def test_other_records_are_refused(ledger, tmp_path, stops):
    out, search = tmp_path / "run", SEARCHES["svt"]
    stops(1)
    with pytest.raises(KeyboardInterrupt):
        found(search, key=secret_key(), out=out, ledger=ledger)
    stops(99)
    with pytest.raises(ValueError, match="other records than these"):
        found(search, table(8), key=secret_key(), out=out, ledger=ledger)
    with pytest.raises(ValueError, match="other settings"):
        found(SEARCHES["em"], key=secret_key(), out=out, ledger=ledger)
    found(search, key=secret_key(), out=out, ledger=ledger)


def test_records_in_another_order_are_the_same_and_other_bounds_are_refused(tmp_path, stops):
    """Subsamples are of ordered records, and what is done is of its bounds."""
    out, search, data = tmp_path / "run", SEARCHES["priv"], table()
    stops(1)
    with pytest.raises(KeyboardInterrupt):
        found(search, out=out)
    stops(99)
    turned = {name: values[::-1] for name, values in data.items()}
    resumed = found(search, turned, out=out)
    assert resumed.found == found(search).found
    wider = TableCodes(open_source(data, {**BOUNDS, "a": (0, 2)}), 2)
    with pytest.raises(ValueError, match="other bounds"):
        discover(wider, Kendall, search, key=secret_key(), out=out)


def test_subsamples_are_of_the_same_records_in_any_order_of_the_table():
    turned = {name: values[::-1] for name, values in table().items()}
    one, other = (codes(data).read() for data in (table(), turned))
    places = np.arange(0, N, 3)
    np.testing.assert_array_equal(
        one.in_order().take(places).codes, other.in_order().take(places).codes
    )
    assert not np.array_equal(one.take(places).codes, other.take(places).codes)  # the control
    counted = [np.unique(each.codes, axis=1, return_counts=True) for each in (one, one.in_order())]
    for before, after in zip(*counted, strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_damaged_answer_is_computed_again(tmp_path, stops):
    out, search = tmp_path / "run", SEARCHES["svt"]
    stops(3)
    with pytest.raises(KeyboardInterrupt):
        found(search, out=out)
    stops(99)
    one, other, _ = sorted((out / "tiles").iterdir())
    shutil.copy(other, one)
    assert found(search, out=out).found == found(search).found


def test_the_ledger_of_another_data_set_is_refused_in_python_too(tmp_path):
    others = schema_of({**BOUNDS, "e": (0, 1)})
    wrong = create_ledger(tmp_path / "wrong", Budget(1e4), name="other", schema=others)
    with pytest.raises(ValueError, match="belongs to another data set, 'other'"):
        found(SEARCHES["svt"], ledger=wrong)
    names, coded, _ = read_coded(table(), bounds=BOUNDS, bins=2)
    with pytest.raises(ValueError, match="have no schema"):
        discover(coded, Kendall, SEARCHES["svt"], names=names, key=seeded_key(3), ledger=wrong)
    assert wrong.events == ()
    any_data = LedgerFile.create(tmp_path / "any", Budget(1e4), data_set="mine")
    discover(coded, Kendall, SEARCHES["svt"], names=names, key=seeded_key(3), ledger=any_data)
    assert len(any_data.events) == 1


def test_a_search_over_budget_is_refused_before_the_table_is_read(tmp_path, monkeypatch):
    ledger = create_ledger(tmp_path / "s", Budget(1.0), name="t", schema=schema_of(BOUNDS))

    def unread(self, rows):
        raise AssertionError("read")

    data = codes()
    monkeypatch.setattr(type(data.source), "batches", unread)
    with pytest.raises(BudgetExceeded):
        discover(
            data, Kendall, SEARCHES["svt"], key=secret_key(), ledger=ledger, out=tmp_path / "o"
        )
    assert not (tmp_path / "o").exists()


def test_the_result_survives_json():
    first = found(SEARCHES["priv"], key=secret_key())
    assert CausalResult.from_json(first.to_json()) == first


@of_each
def test_the_preview_shows_the_guarantee_and_the_sensitivity(search):
    told = preview_search(Kendall, search, categories=(2, 2, 2, 2), n=N)
    event = found(search).privacy.event
    assert dict(told.lines())["charged as"] == str(event.guarantee)
    assert told.levels[0].sensitivity == float(event.sensitivity)
    assert [level.queries for level in told.levels] == [6, 12]
    each = search.each(4, search.releases(4))
    # Two candidates of an edge: EM-PC has half of the share for the score of the chosen one.
    times = {"SVT-PC": 4, "EM-PC": 2, "Priv-PC": 1}[search.mechanism]
    assert told.levels[1].noise == pytest.approx(times * told.levels[1].sensitivity / float(each))
