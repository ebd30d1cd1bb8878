"""scikit-learn's own checks, on configured instances, with no expected failures."""

import warnings

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

from dpmic_jax import Budget, LedgerFile, MICr
from dpmic_jax.sklearn import MICSelector, PrivateMICSelector

# What check_estimator leaves out: names of features, and frames that come back.
FRAMES = (
    "check_dataframe_column_names_consistency",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_global_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_global_set_output_transform_polars",
)
# Of a non-deterministic estimator these do all but compare; the last needs an environment variable.
SKIPPED = {
    "check_pipeline_consistency",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_array_api_input",
}


def private(**changes):
    # Any finite data are valid: they are clipped. The smallest grids, as every n is compiled anew.
    settings = {
        "epsilon": 50.0,
        "bounds": (-10.0, 10.0),
        "target_bounds": (-5.0, 5.0),
        "statistic": MICr(B=4, c=1),
        **changes,
    }
    return PrivateMICSelector(**settings)


def passes(estimator):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No features were selected")
        done = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in done if one["status"] == "failed"}
    assert failed == {}
    assert not any(one["expected_to_fail"] for one in done)
    assert len(done) > 40
    return {one["check_name"] for one in done if one["status"] == "skipped"}


@pytest.mark.slow
def test_the_exact_selector_passes_every_check():
    assert passes(MICSelector(k_features=1, B=4, c=1)) <= {"check_array_api_input"}


@pytest.mark.parametrize(
    "settings", [{"threshold": 0.1}, pytest.param({"k_features": 1}, marks=pytest.mark.slow)]
)
def test_the_private_selector_passes_every_check_and_is_charged_for_each_fit(
    settings, tmp_path, monkeypatch
):
    path = tmp_path / "ledger"
    ledger = LedgerFile.create(path, Budget(1e6), data_set="all kinds")
    fitted = []
    fit = PrivateMICSelector.fit

    def counted(self, X, y):
        fit(self, X, y)
        fitted.append(self.privacy_.event)
        return self

    monkeypatch.setattr(PrivateMICSelector, "fit", counted)
    assert passes(private(**settings, key=3, ledger=str(path))) <= SKIPPED
    assert len(fitted) > 30
    assert [event.to_json() for event in ledger.events] == fitted


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"k_features": 2},  # secret: of two features both, so that refits agree
        {"k_features": 1, "key": 3, "delta": 1e-6},
        {"threshold": 0.1, "key": 3, "delta": 1e-6},
        {"threshold": 0.1, "at_most": 1, "key": 3},
    ],
)
def test_every_way_to_select_passes_every_check(settings):
    assert passes(private(**settings)) <= SKIPPED


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
@pytest.mark.parametrize(
    "estimator",
    [
        MICSelector(k_features=2, B=4, c=1),
        pytest.param(private(k_features=2, key=3), marks=pytest.mark.slow),
    ],
)
def test_names_and_frames_are_kept_as_scikit_learn_says(estimator):
    for name in FRAMES:
        getattr(estimator_checks, name)(type(estimator).__name__, estimator)


def test_a_private_selector_is_tagged_non_deterministic_and_needs_a_target():
    tags = private(k_features=1).__sklearn_tags__()
    assert tags.non_deterministic
    assert tags.target_tags.required
    assert not tags.input_tags.sparse
