"""Private feature selection: what is charged, when, and what is kept and told."""

import pickle
import sys
from datetime import date, timedelta
from functools import partial

import numpy as np
import oracles
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from dpmic_jax import (
    Budget,
    BudgetExceeded,
    Categories,
    LedgerFile,
    MICr,
    MissingBin,
    Number,
    Schema,
    secret_key,
    seeded_key,
)
from dpmic_jax.data.source.memory import MemorySource
from dpmic_jax.screening import Against, TopK, create_ledger, screen
from dpmic_jax.sklearn import MICSelector, PrivateMICSelector, mic_score

N, NAMES = 60, ("a", "b", "c", "d")
STATISTIC = MICr(B=4, c=1)  # small, as every shape is compiled
MARK = 0.123454321  # a value that no message may show


def data():
    """b is the target, d mirrors it, a and c have nothing to do with it."""
    rng = np.random.default_rng(5)
    X = rng.random((N, 4))
    X[:, 3] = 1 - X[:, 1] + rng.normal(size=N) / 50
    return X, X[:, 1].copy()


def selector(**changes):
    settings = {
        "epsilon": 100.0,
        "bounds": (0.0, 1.0),
        "target_bounds": (0.0, 1.0),
        "statistic": STATISTIC,
        "key": 1,
        **changes,
    }
    if not {"k_features", "threshold"} & settings.keys():
        settings["k_features"] = 2
    return PrivateMICSelector(**settings)


def new_ledger(folder, epsilon, **settings):
    return LedgerFile.create(folder / "ledger", Budget(epsilon, **settings), data_set="x")


def micr(X, y, statistic=STATISTIC):
    bounds = ((0, 1), (0, 1))
    return np.array([oracles.micr(x, y, bounds, statistic.B, statistic.c) for x in X.T])


@pytest.mark.parametrize(
    ("settings", "kept", "released"),
    [
        ({"k_features": 2}, "bd", "bd"),
        ({"k_features": 4}, "abcd", "abcd"),
        ({"threshold": 0.6}, "bd", "abcd"),
        ({"threshold": 0.6, "delta": 1e-6}, "bd", "abcd"),
    ],
)
def test_the_dependent_features_are_kept_and_scores_are_what_was_released(settings, kept, released):
    X, y = data()
    found = selector(**settings).fit(X, y)
    assert "".join(np.array(NAMES)[found.get_support()]) == kept
    told = ~np.isnan(found.scores_)
    assert "".join(np.array(NAMES)[told]) == released
    np.testing.assert_allclose(found.scores_[told], micr(X, y)[told], atol=0.1)
    np.testing.assert_array_equal(found.transform(X), X[:, found.support_])
    assert sorted(found.scores_[told]) == sorted(found.result_.mic)


def test_above_releases_at_most_the_allowed_number_of_pairs():
    X, y = data()
    found = selector(threshold=0.6, at_most=1).fit(X, y)
    (place,) = found.get_support(indices=True)
    assert place in (1, 3)
    assert np.isnan(np.delete(found.scores_, place)).all()


def test_a_fit_is_the_screen_of_the_target_against_the_features():
    X, y = data()
    found = selector().fit(X, y)
    table = {**dict(zip(("x0", "x1", "x2", "x3"), X.T, strict=True)), "target": y}
    expected = screen(
        table,
        bounds=dict.fromkeys(table, (0.0, 1.0)),
        epsilon=100.0,
        ask=TopK(2, candidates=Against("target")),
        key=seeded_key(1),
        statistic=STATISTIC,
    )
    assert found.result_ == expected
    assert found.privacy_ == expected.statement


@pytest.mark.parametrize(
    "settings",
    [
        {"k_features": 2},
        {"threshold": 0.6},
        {"threshold": 0.6, "delta": 1e-6},
        {"threshold": 0.6, "at_most": 1},
    ],
)
def test_every_fit_is_charged_what_event_says(tmp_path, settings):
    X, y = data()
    ledger = new_ledger(tmp_path, 500.0, delta=1e-4)
    one = selector(ledger=ledger.path, **settings)
    for times in (1, 2, 3):
        one.fit(X, y)
        assert len(ledger.events) == times
    assert one.privacy_.ledger == f"{ledger.identity}#3"
    said = one.event(n_samples=N, n_features=4)
    for event in ledger.events:
        assert (event.guarantee, event.count, event.n) == (said.guarantee, said.count, N)
        assert event.settings == said.settings or "Against" in event.mechanism
    if not settings.get("delta"):
        assert ledger.spent.epsilon == pytest.approx(300.0)
    ledger.reserve(said, times=1)
    one.fit(X, y)
    assert ledger.reservations == {}


@pytest.mark.parametrize(
    "settings",
    [
        {"k_features": 2, "epsilon": 1.0},
        {"threshold": 0.6, "epsilon": 1.0, "delta": 1e-6},
        {"threshold": 0.6, "at_most": 2, "epsilon": 1.0, "delta": 1e-6},
    ],
)
def test_fits_of_any_number_of_records_draw_from_one_reservation(tmp_path, settings):
    ledger = new_ledger(tmp_path, 3.0, delta=1e-4)
    one = selector(**settings)
    ledger.reserve(one.event(n_samples=1000, n_features=30), times=3)
    for n in (799, 800, 1000):
        ledger.charge(one.event(n_samples=n, n_features=30))
    assert ledger.reservations == {}


def test_a_fit_that_would_overspend_uses_no_value_and_leaves_the_estimator_as_it_was(
    tmp_path, monkeypatch
):
    X, y = data()
    ledger = new_ledger(tmp_path, 140.0)
    one = selector(ledger=ledger.path).fit(pd.DataFrame(X, columns=NAMES), y)
    before = dict(vars(one))

    def used(self, rows):
        raise AssertionError("a value was used")

    monkeypatch.setattr(MemorySource, "batches", used)
    with pytest.raises(BudgetExceeded, match="epsilon=100 asked, 100 spent, 40 of 140 is left"):
        one.fit(X[:, :3], y)
    assert vars(one) == before
    assert len(ledger.events) == 1
    with pytest.raises(AssertionError, match="a value was used"):
        one.set_params(epsilon=40.0).fit(X[:, :3], y)
    assert len(ledger.events) == 2


def cross_validated(one, folds=5, **settings):
    X, y = data()
    pipeline = make_pipeline(one, DummyRegressor())
    settings = {"error_score": "raise", **settings}
    scores = cross_val_score(pipeline, X, y, cv=KFold(folds), scoring="r2", **settings)
    pipeline.fit(X, y)
    return scores


def test_k_folds_and_a_final_fit_are_k_plus_one_charges(tmp_path):
    ledger = new_ledger(tmp_path, 600.0)
    cross_validated(selector(ledger=str(ledger.path)))
    assert [event.n for event in ledger.events] == [48] * 5 + [60]
    assert ledger.spent.epsilon == 600.0


def test_a_reservation_refuses_a_cross_validation_beyond_the_budget(tmp_path):
    ledger = new_ledger(tmp_path, 590.0)
    one = selector(ledger=ledger.path)
    with pytest.raises(
        BudgetExceeded,
        match=r"none of 6 charges was reserved: .* epsilon=600 asked, 0 spent, 590 of 590 is left$",
    ):
        ledger.reserve(one.event(n_samples=N, n_features=4), times=6)
    assert ledger.events == ()


def test_a_reserved_cross_validation_is_covered_whatever_others_charge(tmp_path):
    ledger = new_ledger(tmp_path, 650.0)
    one = selector(ledger=ledger.path)
    ledger.reserve(one.event(n_samples=N, n_features=4), times=6)
    with pytest.raises(BudgetExceeded, match="entries 1 reserve"):
        clone(one).set_params(epsilon=60.0).fit(*data())
    cross_validated(one)
    assert len(ledger.events) == 6
    assert ledger.reservations == {}
    with pytest.raises(BudgetExceeded):
        one.fit(*data())


def test_without_a_reservation_the_fold_that_would_overspend_raises(tmp_path):
    ledger = new_ledger(tmp_path, 350.0)
    with pytest.raises(BudgetExceeded, match="50 of 350 is left"):
        cross_validated(selector(ledger=ledger.path))
    assert len(ledger.events) == 3


def test_folds_in_threads_are_each_charged(tmp_path):
    ledger = new_ledger(tmp_path, 600.0)
    with parallel_config(backend="threading"):
        cross_validated(selector(ledger=ledger.path), n_jobs=3)
    assert len(ledger.events) == 6


def test_a_grid_search_is_charged_for_every_candidate_in_every_fold(tmp_path):
    ledger = new_ledger(tmp_path, 2000.0)
    pipeline = make_pipeline(selector(ledger=ledger.path), DummyRegressor())
    grid = {"dummyregressor__strategy": ["mean", "median"]}
    X, y = data()
    GridSearchCV(pipeline, grid, cv=KFold(5)).fit(X, y)
    assert len(ledger.events) == 2 * 5 + 1


def test_a_secret_key_is_drawn_at_every_fit_and_kept_nowhere():
    X, y = data()
    one = selector(threshold=0.6, key="secret")
    first, second = (one.fit(X, y).scores_ for _ in range(2))
    assert one.privacy_.key_is_secret
    assert one.privacy_.key == "secret"
    assert not np.array_equal(first, second)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.scores_, second)
    assert again.result_ == one.result_


def test_a_given_secret_key_draws_other_noise_at_every_fit_and_is_not_shown():
    X, y = data()
    one = selector(threshold=0.6, key=secret_key())
    first, second = (clone(one).fit(X, y) for _ in range(2))
    assert first.privacy_.key_is_secret
    assert not np.array_equal(first.scores_, second.scores_)
    assert "key=SecretKey(hidden)" in repr(one)


def test_a_seed_repeats_a_fit_and_stamps_it():
    X, y = data()
    one, other, third = (
        selector(threshold=0.6, key=seed).fit(X, y) for seed in (7, np.int64(7), 8)
    )
    np.testing.assert_array_equal(one.scores_, other.scores_)
    assert not np.array_equal(one.scores_, third.scores_)
    assert one.privacy_.key == "seeded: not for release"
    assert "seeded: not for release" in repr(one.result_)


@pytest.mark.parametrize("key", [None, True, "", "7", 1.5, seeded_key(7)])
def test_an_invalid_key_is_refused_before_the_charge(tmp_path, key):
    ledger = new_ledger(tmp_path, 1000.0)
    with pytest.raises(TypeError, match='expected key="secret"'):
        selector(ledger=ledger.path, key=key).fit(*data())
    assert ledger.events == ()


def test_clones_charge_the_same_ledger_and_a_ledger_object_is_refused(tmp_path):
    ledger = new_ledger(tmp_path, 1000.0)
    one = selector(ledger=ledger.path)
    for each in (one, clone(one)):
        each.fit(*data())
    assert len(ledger.events) == 2
    with pytest.raises(TypeError, match="ledger as the path"):
        selector(ledger=ledger).fit(*data())


BOUNDS = dict.fromkeys(NAMES, (0.0, 1.0))
TOML = "".join(f"[columns.{name}]\nlow = 0\nhigh = 1\n" for name in (*NAMES, "outcome"))


def test_bounds_in_all_forms_are_the_same_bounds(tmp_path):
    X, y = data()
    frame = pd.DataFrame(X, columns=NAMES)
    path = tmp_path / "bounds.toml"
    path.write_text(TOML + "[columns.id]\nignore = true\n")
    whole = Schema(tuple((name, Number(0, 1)) for name in (*NAMES, "outcome")))
    separate = {"target_bounds": Number(0, 1)}
    fits = [
        selector(target="outcome", **{"target_bounds": None, **given}).fit(frame, y)
        for given in (
            {"bounds": (0, 1), **separate},
            {"bounds": Number(0.0, 1.0), **separate},
            {"bounds": [(0, 1)] * 4, **separate},
            {"bounds": np.array([[0.0, 1.0]] * 4), **separate},
            {"bounds": BOUNDS, **separate},
            {"bounds": {**BOUNDS, "outcome": (0, 1)}},
            {"bounds": whole},
            {"bounds": path},
            {"bounds": str(path)},
        )
    ]
    assert len({fit.privacy_ for fit in fits}) == 1
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.scores_, fits[0].scores_)


def test_the_ledger_of_a_bounds_file_knows_the_table_of_features_and_target(tmp_path):
    X, y = data()
    whole = Schema(tuple((name, Number(0, 1)) for name in (*NAMES, "outcome")))
    create_ledger(tmp_path / "ledger", Budget(1000.0), name="clinic", schema=whole)
    settings = {"bounds": whole, "target_bounds": None, "ledger": tmp_path / "ledger"}
    selector(target="outcome", **settings).fit(pd.DataFrame(X, columns=NAMES), y)
    with pytest.raises(ValueError, match="another data set, 'clinic'"):
        selector(ledger=tmp_path / "ledger").fit(X, y)


def test_an_ignored_feature_is_never_kept():
    X, y = data()
    frame = pd.DataFrame({"copy": y, **dict(zip(NAMES, X.T, strict=True))})
    rules = tuple((name, Number(0, 1)) for name in NAMES)
    found = selector(bounds=Schema(rules, ignored=("copy",))).fit(frame, y)
    assert found.get_feature_names_out().tolist() == ["b", "d"]
    assert np.isnan(found.scores_[0])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"k_features": None}, "expected either k_features or threshold"),
        ({"k_features": 2, "threshold": 0.5}, "expected either k_features or threshold"),
        ({"k_features": 5}, "expected k_features <= n_features = 4, got 5"),
        ({"k_features": 0}, "k_features >= 1"),
        ({"k_features": 2, "at_most": 1}, "at_most goes with threshold"),
        ({"threshold": 1.5}, "threshold"),
        ({"threshold": 0.0, "at_most": 1}, "threshold"),
        ({"bounds": None}, "expected bounds as a"),
        ({"bounds": [(0, 1)] * 3}, "got 3 for 4 features"),
        ({"bounds": (1, 0)}, "low < high"),
        ({"target_bounds": None}, "target's bounds once"),
        ({"bounds": {**dict.fromkeys(("x0", "x1", "x2", "x3", "target"), (0, 1))}}, "once"),
        ({"target": "x1"}, "X has a column 'x1', the name of the target"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"ledger": "nowhere"}, "no ledger at"),
    ],
)
def test_invalid_settings_are_refused_by_name_at_fit(settings, said):
    with pytest.raises((ValueError, TypeError, OSError), match=said):
        selector(**settings).fit(*data())


def bad_data():
    X, y = data()
    marked = np.where(np.arange(N) == 3, MARK, y)
    yield "complex", (X + MARK * 1j, y), ValueError, "Complex data not supported"
    yield "one dimension", (marked, y), ValueError, "Reshape your data"
    yield "ragged", ([[MARK], *X[1:].tolist()], y), ValueError, "records of one length"
    yield "no records", ([MARK] * N, y), ValueError, "Reshape your data"
    yield "sparse", (csr_array(X), y), TypeError, "sparse"
    yield "few records", (X[:3], y[:3]), ValueError, "3 sample"
    yield "no y", (X, None), ValueError, "requires y"
    yield "two targets", (X, np.stack([y, marked], 1)), ValueError, "y should be a 1d array"
    yield "a list of targets", (X, y[:, None].tolist()), ValueError, "y should be a 1d array"
    yield "arrays as targets", (X, list(y[:, None])), ValueError, "y should be a 1d array"
    yield "complex y", (X, y + MARK * 1j), TypeError, "numbers in column 'target'"
    yield "other length", (X, y[1:]), ValueError, "same number of records"


@pytest.mark.parametrize(
    ("given", "error", "said"), [pytest.param(*rest, id=name) for name, *rest in bad_data()]
)
def test_bad_data_is_refused_before_it_is_charged_and_not_quoted(tmp_path, given, error, said):
    ledger = new_ledger(tmp_path, 1000.0)
    with pytest.raises(error, match=said) as caught:
        selector(k_features=1, ledger=ledger.path).fit(*given)
    text = str(caught.value)
    assert "SECRET" not in text
    assert "0.12345" not in text
    assert "0." not in text
    assert ledger.events == ()


ANYTHING = [np.nan, np.inf, None, "SECRET", {"SECRET": MARK}, [MARK], 10**400, 1j, b"1", "0.5"]


@pytest.mark.parametrize("value", ANYTHING, ids=lambda value: type(value).__name__)
def test_no_value_of_a_feature_is_refused(value):
    """Cells count by themselves: what is no number is in the middle of the bounds."""
    X, y = data()
    cells = X.astype(object)
    cells[3, 1] = value
    known = isinstance(value, float | int | str) and value == value and value != "SECRET"
    X[3, 1] = float("inf") if value == 10**400 else float(value) if known else 0.5
    expected = selector(key=5).fit(X, y).scores_
    for given in (cells, [list(row) for row in cells], [tuple(row) for row in cells]):
        found = selector(key=5).fit(given, y)
        np.testing.assert_array_equal(found.scores_, expected)


def test_no_value_of_the_target_is_refused():
    X, y = data()
    for value in ANYTHING:
        target = [value, *y[1:].tolist()]
        assert selector(key=5).fit(X, target).scores_.shape == (4,)
    assert np.nanmax(selector(key=5).fit(X, ["SECRET"] * N).scores_) < 0.5


def test_masked_values_are_missing():
    X, y = data()
    hidden = np.arange(X.size).reshape(X.shape) % 7 == 0
    shown = np.where(hidden, np.nan, X), np.where(hidden[:, 0], np.nan, y)
    masked = np.ma.array(X, mask=hidden), np.ma.array(y, mask=hidden[:, 0])
    expected = selector(key=5).fit(*shown).scores_
    np.testing.assert_array_equal(selector(key=5).fit(*masked).scores_, expected)
    assert (expected != selector(key=5).fit(X, y).scores_).any()


def test_the_private_selector_says_that_it_takes_missing_values():
    tags = selector().__sklearn_tags__().input_tags
    assert tags.allow_nan
    assert tags.string
    assert not MICSelector(k_features=1).__sklearn_tags__().input_tags.allow_nan


def test_transform_quotes_no_value_either():
    X, y = data()
    one = selector().fit(X, y)
    for method in (one.transform, one.inverse_transform):
        for bad in (np.full(4, MARK), X * 1j, csr_array(X)):
            with pytest.raises((ValueError, TypeError)) as caught:
                method(bad)
            assert "0." not in str(caught.value)
    kept = one.inverse_transform(one.transform(X))
    np.testing.assert_array_equal(kept, np.where(one.support_, X, 0))


def test_missing_values_that_bounds_allow_are_taken_by_fit_and_transform():
    X, y = data()
    X[::2, 0] = np.nan
    one = selector(bounds=Number(0, 1, missing=MissingBin())).fit(X, y)
    assert one.transform(X).shape == (N, 2)
    assert one.__sklearn_tags__().input_tags.allow_nan


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_keep_their_names_and_come_back_as_frames(library):
    X, y = data()
    frame = library.DataFrame(dict(zip(NAMES, X.T, strict=True)))
    one = selector(bounds=BOUNDS).fit(frame, library.Series(y))
    assert one.feature_names_in_.tolist() == list(NAMES)
    assert one.get_feature_names_out().tolist() == ["b", "d"]
    assert {name for pair in one.result_.ranked() for name in pair[:2]} == {"b", "d", "target"}
    assert isinstance(one.result_.to_frame(), library.DataFrame)
    kept = one.set_output(transform=library.__name__).transform(frame)
    assert isinstance(kept, library.DataFrame)
    assert list(kept.columns) == ["b", "d"]
    np.testing.assert_array_equal(kept.to_numpy(), X[:, [1, 3]])


def test_column_names_that_scikit_learn_does_not_see_raise(tmp_path, monkeypatch):
    # As scikit-learn 1.6 to 1.8 do with frames of polars 2.
    monkeypatch.setattr("sklearn.utils.validation._get_feature_names", lambda X: None)
    X, y = data()
    ledger = new_ledger(tmp_path, 1000.0)
    one = selector(bounds=BOUNDS, ledger=ledger.path)
    with pytest.raises(TypeError, match=r"column names of this frame; use scikit-learn 1\.9"):
        one.fit(pl.DataFrame(dict(zip(NAMES, X.T, strict=True))), y)
    assert ledger.events == ()


def test_a_later_fit_without_names_forgets_them():
    X, y = data()
    one = selector().fit(pd.DataFrame(X, columns=NAMES), y).fit(X, y)
    assert not hasattr(one, "feature_names_in_")
    assert one.get_feature_names_out().tolist() == ["x1", "x3"]


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_and_targets_of_declared_categories_are_taken(library):
    X, y = data()
    low = y < 0.5
    columns = {"a": X[:, 0], "site": np.where(low, "n", "s"), "c": X[:, 2], "d": X[:, 0]}
    frame = library.DataFrame(columns)
    bounds = {**dict.fromkeys("acd", (0, 1)), "site": Categories(["s", "n"])}
    classes = np.where(low, "ill", "well")
    settings = {"bounds": bounds, "k_features": 2}
    one = selector(target_bounds=Categories(["ill", "well"]), **settings)
    for target in (classes, classes.tolist(), library.Series(classes.tolist())):
        assert "site" in one.fit(frame, target).get_feature_names_out()
        assert one.scores_[1] == pytest.approx(1, abs=0.1)
    # What is not declared counts as missing.
    one = selector(target_bounds=Categories(["ill", "cured"]), **settings)
    with_none = [name if name == "ill" else None for name in classes.tolist()]
    found = [one.fit(frame, target).scores_ for target in (classes, with_none)]
    np.testing.assert_array_equal(*found)


def test_features_of_dates_and_nominal_targets_are_taken():
    days = np.datetime64("2020-01-01") + np.arange(N)
    frame = pd.DataFrame({"a": np.arange(N) % 7 / 7, "day": days, "c": np.arange(N) % 5 / 5})
    classes = np.array(["w", "x", "y"])[np.arange(N) * 3 // N]
    bounds = {"day": (date(2020, 1, 1), date(2020, 1, 1) + timedelta(N)), "a": (0, 1), "c": (0, 1)}
    settings = {"bounds": bounds, "k_features": 1, "statistic": MICr(B=8, c=1)}
    for values in (["w", "x", "y"], ["y", "w", "x"]):
        one = selector(target_bounds=Categories(values), **settings).fit(frame, classes)
        assert one.get_feature_names_out().tolist() == ["day"]


def test_an_unfitted_selector_says_so():
    with pytest.raises(AttributeError, match="not fitted yet"):
        selector().get_support()


def mice(X, y, B=4, c=2):
    return np.array([oracles.mice(x, y, B, c) for x in X.T])


def test_mic_score_is_mice_by_definition_and_ranks_for_select_k_best():
    X, y = data()
    score = partial(mic_score, B=4, c=2)
    np.testing.assert_allclose(score(X, y), mice(X, y), atol=2e-6)
    kept = SelectKBest(score, k=2).fit(X, y)
    assert kept.get_support(indices=True).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [({"k_features": 1}, [1]), ({"k_features": 2}, [1, 3]), ({"threshold": 0.6}, [1, 3])],
)
def test_the_exact_selector_keeps_the_strongest(settings, kept):
    X, y = data()
    one = MICSelector(B=4, c=2, **settings).fit(X, y)
    np.testing.assert_allclose(one.scores_, mice(X, y), atol=2e-6)
    assert one.get_support(indices=True).tolist() == kept


def test_classes_that_are_texts_are_taken_in_alphabetical_order():
    X, y = data()
    classes = np.where(y < 0.5, "ill", "well")
    score = partial(mic_score, B=4, c=2)
    expected = score(X, (y >= 0.5).astype(int))
    for given in (classes, classes.tolist(), pd.Series(classes), classes.astype(object)):
        np.testing.assert_array_equal(score(X, given), expected)
        exact = MICSelector(k_features=1, B=4, c=2).fit(X, given)
        np.testing.assert_array_equal(exact.scores_, expected)
    with pytest.warns(UserWarning, match="alphabetical"):
        score(X, np.where(y < 0.2, "cured", classes))
    with pytest.raises(TypeError, match="numbers, or texts"):
        score(X, [None, *classes[1:]])


def test_a_missing_scikit_learn_names_the_extra(monkeypatch):
    for name in [one for one in sys.modules if one.split(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [one for one in sys.modules if one.startswith("dpmic_jax.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"dpmic_jax\[sklearn\]"):
        import dpmic_jax.sklearn  # noqa: F401 - the import is what is tested


def test_the_event_of_a_selector_protects_the_persons_of_its_bounds():
    """As a fit does; a reservation would otherwise be of another relation."""
    columns = tuple((name, Number(0, 1)) for name in ("x0", "x1", "target"))
    bounds = Schema(columns, person="who", records_per_person=3)
    one = PrivateMICSelector(epsilon=1.0, bounds=bounds, k_features=1)
    assert one.event(n_samples=300, n_features=2).relation.records == 3
