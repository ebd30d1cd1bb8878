"""The registry's entry: facts are those of the release, and what is not known is asked for."""

import json

import pytest
from made_results import result_of

from dpmic_jax import Budget, LedgerFile
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.results.power_curve import CurvePoint, PowerCurve
from dpmic_jax.results.registry_texts import ASKED, HAZARDS


def test_an_entry_has_the_facts_of_the_release_and_asks_for_the_rest(tmp_path):
    found = result_of()
    event = Event.from_json(found.statement.event)
    ledger = LedgerFile.create(tmp_path / "ledger", Budget(3.0), data_set="clinic")
    ledger.charge(event)
    curve = PowerCurve("all pairs", 20_000, 0.0, 1.0, (CurvePoint(1.0, 0.02, 0.1),))
    answers = {"deployment": {"title": "Screen"}, "parameters": {"why_epsilon": "policy"}}
    entry = found.to_registry(answers, ledger=tmp_path / "ledger", curve=curve)
    assert json.loads(json.dumps(entry, allow_nan=False)) == entry
    sections = ("deployment", "data", "guarantee", "mechanisms", "accounting", "implementation")
    assert {*sections, "parameters", "hazards"} <= set(entry)
    assert entry["deployment"]["title"] == "Screen"
    guarantee = entry["guarantee"]
    assert (guarantee["epsilon"], guarantee["delta"]) == (1.25, 3e-07)
    assert guarantee["definition"] == "epsilon-DP"
    assert guarantee["unit_of_privacy"]["records_per_person"] == 1
    assert entry["mechanisms"]["statistics"][0]["sensitivity"] == "1/1024"
    accounting = entry["accounting"]
    assert accounting["event_digest"] == event.digest.hex()
    assert accounting["total"]["spent"]["epsilon"] == event.epsilon
    assert accounting["total"]["charges"] == 1
    assert entry["parameters"]["utility"]["planned"]["smallest_mic"] == 0.1
    assert entry["parameters"]["utility"]["dependent_pairs"] == found.dependent.sum()
    assert entry["statement"] == found.statement.to_dict()
    assert set(entry["hazards"]) == set(HAZARDS)
    asked = {f"{section}.{name}" for section, names in ASKED.items() for name in names}
    assert set(entry["unanswered"]) == asked - {"deployment.title", "parameters.why_epsilon"}
    seeded = result_of(key_is_secret=False).to_registry()
    assert "not for release" in seeded["implementation"]["key"]


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ({"other": {}}, "answers by section"),
        ({"deployment": {"colour": "red"}}, "answers in deployment"),
        ({"guarantee": {"epsilon": 0.1}}, "known from the release"),
    ],
)
def test_answers_cannot_change_what_is_known(answers, text):
    with pytest.raises(ValueError, match=text):
        result_of().to_registry(answers)
