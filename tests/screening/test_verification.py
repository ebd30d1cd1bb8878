"""`verify`: what was released passes, and any one field that is changed later does not."""

import json
import shutil

import pytest
from small import BOUNDS, screened

from dpmic_jax import Budget, LedgerFile
from dpmic_jax.data.schema import schema_of
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.runs.data_set import create_ledger
from dpmic_jax.screening import Above, Against, TopK, default_screen_statistic, verify


def outcomes(checks):
    return {check.what.split(",")[0]: check.agrees for check in checks}


def differing(checks):
    return [check.what for check in checks if check.agrees is False]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A folder of a run with its CSV file, and its ledger."""
    folder = tmp_path_factory.mktemp("released")
    ledger = create_ledger(
        folder / "ledger", Budget(60.0, 1e-6), name="trial", schema=schema_of(BOUNDS)
    )
    for seed, run in enumerate(("other", "run")):
        found = screened(seed=seed, ask=Against("a"), ledger=ledger, out=folder / run)
        found.to_csv(folder / run / "result.csv")
    return folder


def test_a_released_run_agrees_with_its_event_its_files_and_its_ledger(released):
    checks = verify(released / "run", ledger=released / "ledger")
    assert {check.agrees for check in checks} == {True}, checks
    assert outcomes(verify(released / "run"))["charge in the ledger"] is None
    alone = outcomes(verify(shutil.copy(released / "run" / "result.json", released / "alone.json")))
    assert alone.pop("result.json" if "result.json" in alone else "alone.json")
    assert [name for name, agrees in alone.items() if agrees is None] == [
        *("run.json", "result.csv", "result.privacy.json", "charge in the ledger"),
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"ask": TopK(3)},
        {"ask": TopK(3), "delta": 1e-3, "epsilon": 10.0, "force": True},
        {"ask": Above(0.3, 2), "relative": ("a",)},
        {"ask": Above(0.3, 2), "delta": 1e-3, "force": True},
        {"delta": 1e-3, "epsilon": 5.0, "force": True},
        {"statistic": default_screen_statistic, "epsilon": 3.0, "force": True},
    ],
)
def test_every_kind_of_screen_is_recomputed(tmp_path, settings):
    screened(out=tmp_path / "run", **settings)
    checks = verify(tmp_path / "run")
    assert not differing(checks)
    recomputed = "statement"
    assert outcomes(checks)[recomputed] is True, checks


def changed(content, path, value):
    """Change one field of nested JSON; a function gives the new value from the old one."""
    *places, last = path
    for place in places:
        content = content[place]
    content[last] = value(content[last]) if callable(value) else value


def event_with(old, new):
    return lambda text: text.replace(old, new)


IN_RESULT = {
    "epsilon": (("privacy", "epsilon"), 10.0),
    "delta": (("privacy", "delta"), 1e-9),
    "n": (("privacy", "n"), 601),
    "records a person": (("privacy", "relation", "records"), 2),
    "mechanism": (("privacy", "mechanism"), lambda text: text.replace("cube", "Gaussian")),
    "guarantee": (("privacy", "guarantee"), "DP"),
    "sensitivity": (("privacy", "sensitivity"), 1e-4),
    "settings of MICr": (("privacy", "micr", "c"), 4.0),
    "sensitivity of MICr": (("privacy", "micr", "sensitivity"), 1e-4),
    "key": (("privacy", "key"), "secret"),
    "version of the statement": (("privacy", "statement_version"), 2),
    "run": (("privacy", "run"), "seeded-0"),
    "ledger": (("privacy", "ledger"), None),
    "entry of the ledger": (("privacy", "ledger"), lambda entry: entry.replace("#2", "#1")),
    "no entry of the ledger": (("privacy", "ledger"), lambda entry: entry.replace("#2", "#9")),
    "epsilon of the event": (("privacy", "event"), event_with("0x1.4", "0x1.5")),
    "n of the event": (("privacy", "event"), event_with('"n":600', '"n":601')),
    "label of the event": (("privacy", "event"), event_with("bounds ", "bounds 0")),
    "settings of the event": (("privacy", "event"), event_with('"24"', '"25"')),
    "query": (("ask",), "all pairs"),
    "number of candidates": (("candidates",), 7),
    "threshold": (("dependence_threshold",), lambda level: level / 1.01),
    "noise": (("noise_sd",), 0.001),
    "noise on distances": (("distance_noise_sd",), 0.001),
    "names": (("names",), lambda names: [*names[:-1], "other"]),
    "columns of a pair": (("pairs", 0, "y"), "c"),
    "a pair that was not asked for": (("pairs", 0, "x"), "b"),
    "a value": (("pairs", 0, "mic"), 0.5),
    "a limit": (("pairs", 0, "lower"), 0.5),
    "a distance": (("pairs", 0, "distance"), lambda value: value - 2**-10),
    "a decision": (("pairs", 0, "dependent"), False),
    "the number of pairs": (("pairs",), lambda pairs: pairs[:-1]),
}


@pytest.mark.parametrize("field", IN_RESULT)
def test_a_changed_field_of_the_result_is_found(released, tmp_path, field):
    path, value = IN_RESULT[field]
    run = shutil.copytree(released / "run", tmp_path / "run")
    content = json.loads((run / "result.json").read_text())
    before = json.dumps(content)
    changed(content, path, value)
    assert json.dumps(content) != before
    (run / "result.json").write_text(json.dumps(content))
    checks = verify(run, ledger=released / "ledger")
    assert differing(checks)
    # The JSON alone, without its copies, shows all but what only its copies and the charge know.
    copies = {"run.json", "result.csv", "result.privacy.json", "charge in the ledger"}
    by_itself = {what.split(",")[0] for what in differing(checks)} - copies
    alone = {"key", "run", "ledger", "entry of the ledger", "no entry of the ledger"}
    assert bool(by_itself) is (field not in {*alone, "label of the event", "a distance"})


@pytest.mark.parametrize("field", ["event", "run", "columns", "bounds", "ledger"])
def test_a_changed_field_of_the_description_is_found(released, tmp_path, field):
    run = shutil.copytree(released / "run", tmp_path / "run")
    content = json.loads((run / "run.json").read_text())
    content[field] = content[field][1:]
    (run / "run.json").write_text(json.dumps(content))
    assert differing(verify(run, ledger=released / "ledger")) == [
        "run.json, written before the charge"
    ]


@pytest.mark.parametrize("name", ["result.csv", "result.privacy.json"])
def test_a_changed_copy_is_found(released, tmp_path, name):
    run = shutil.copytree(released / "run", tmp_path / "run")
    text = (run / name).read_text()
    (run / name).write_text(text.replace("0.", "0.0", 1))
    assert differing(verify(run, ledger=released / "ledger")) == [name]


def test_another_ledger_or_a_missing_charge_is_found(released, tmp_path):
    run = shutil.copytree(released / "run", tmp_path / "run")
    other = create_ledger(
        tmp_path / "ledger", Budget(60.0, 1e-6), name="trial", schema=schema_of(BOUNDS)
    )
    assert "names another ledger" in verify(run, ledger=other.path)[-1].detail
    content = json.loads((run / "result.json").read_text())
    content["privacy"]["ledger"] = f"{other.identity}#1"
    (run / "result.json").write_text(json.dumps(content))
    assert verify(run, ledger=other.path)[-1][1:] == (False, "entry 1 is no charge")
    other.charge(Event.from_json(content["privacy"]["event"]))
    assert verify(run, ledger=other.path)[-1].agrees is True


def test_a_damaged_ledger_is_found(released, tmp_path):
    damaged = tmp_path / "ledger"
    content = (released / "ledger").read_bytes()
    label = b"run " + LedgerFile.open(released / "ledger").events[0].label[4:12].encode()
    assert label in content
    damaged.write_bytes(content.replace(label, b"run 00000000", 1))
    assert differing(verify(released / "run", ledger=damaged)) == ["charge in the ledger"]


def test_other_files_are_refused(tmp_path):
    (tmp_path / "result.json").write_text('{"privacy": {}}')
    with pytest.raises(ValueError, match="not the result of a screen"):
        verify(tmp_path)
    with pytest.raises(FileNotFoundError, match="no result"):
        verify(tmp_path / "none")
