import csv
import html
import io
import itertools
import json
import os
import re
from importlib import resources

import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import NAMES, estimated_of, event_of, result_of, statement_of

from dpmic_jax.dp.files import replace
from dpmic_jax.results import SEEDED, MICrSettings, ScreenResult, Statement

finite = st.floats(0, 1)


@given(
    mic=st.lists(finite, min_size=6, max_size=6),
    noise=finite,
    names=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=4, unique=True),
    secret=st.booleans(),
)
def test_json_and_parquet_give_back_the_same_result(tmp_path_factory, mic, noise, names, secret):
    pairs = np.array(list(itertools.combinations(range(4), 2)))
    found = result_of(
        tuple(names),
        pairs=pairs,
        mic=np.array(mic),
        noise_sd=noise,
        candidates=7,
        key_is_secret=secret,
    )
    assert ScreenResult.from_json(found.to_json()) == found
    path = tmp_path_factory.mktemp("results") / "found"
    found.to_json(path)
    assert ScreenResult.from_json(path) == found
    found.to_parquet(path)
    assert ScreenResult.from_parquet(path) == found
    assert hash(ScreenResult.from_parquet(path)) == hash(found)


def test_json_has_the_agreed_form():
    found = result_of()
    content = json.loads(found.to_json())
    assert set(content) == {
        *("pairs", "privacy", "names", "ask", "candidates", "decided_by", "dependence_threshold"),
        *("distance_noise_sd", "noise_sd", "limits", "own", "own_half_width"),
    }
    assert content["decided_by"] == "distance"
    assert content["privacy"] == found.statement.to_dict()
    assert list(content["pairs"][0]) == list(found.to_frame().columns)
    assert content["limits"].startswith("95 %, noise only")
    # An object with more in it, such as the command's, can be read too.
    assert ScreenResult.from_json(json.dumps({**content, "seconds": 1})) == found


def test_changed_json_is_refused():
    content = json.loads(result_of().to_json())
    for name, value in (("dependent", False), ("distance", 0.0), ("decided_by", "mic")):
        first = {**content["pairs"][0], name: value}
        with pytest.raises(ValueError, match="disagree"):
            ScreenResult.from_json(json.dumps({**content, "pairs": [first, *content["pairs"][1:]]}))
    with pytest.raises(ValueError, match="disagree"):
        ScreenResult.from_json(json.dumps({**content, "pairs": content["pairs"][::-1]}))
    content["pairs"][0]["upper"] = 0.0
    with pytest.raises(ValueError, match="lower <= mic <= upper"):
        ScreenResult.from_json(json.dumps(content))
    content["privacy"]["epsilon"] = -1.0
    with pytest.raises(ValueError, match="epsilon"):
        ScreenResult.from_json(json.dumps(content))
    for text in ("found.json", "[]", "{}", '{"pairs": 3}'):
        with pytest.raises(ValueError, match=r"pathlib.Path"):
            ScreenResult.from_json(text)


def of_earlier_version(content):
    """A header as it was when MIC decided."""
    later = ("decided_by", "dependence_threshold", "distance_noise_sd")
    kept = {name: value for name, value in content.items() if name not in later}
    privacy = {name: value for name, value in content["privacy"].items() if name != "micr"}
    privacy |= {"B": 151, "c": 5.5, "sizes": "ladder(1.25)"}
    return {**kept, "privacy": privacy, "independence": 0.3, "half_width": 0.04}


def test_a_result_of_an_earlier_version_is_refused_with_what_decided_then_and_decides_now(tmp_path):
    found = result_of()
    decides = 'earlier version .* "independence" decided; now "distance" above "dependence_thresh'
    content = of_earlier_version(found.to_dict())
    for row in content["pairs"]:
        del row["distance"], row["decided_by"]
        row["noise_sd"] = 0.02
    with pytest.raises(ValueError, match=decides):
        ScreenResult.from_json(json.dumps(content))
    path = tmp_path / "found.parquet"
    found.to_parquet(path)
    frame = pq.read_table(path).drop_columns(["distance", "decided_by"])
    header = of_earlier_version(json.loads(frame.schema.metadata[b"dpmic_jax"]))
    pq.write_table(frame.replace_schema_metadata({"dpmic_jax": json.dumps(header)}), path)
    with pytest.raises(ValueError, match=decides):
        ScreenResult.from_parquet(path)


def test_an_estimate_survives_every_file_and_is_called_one_in_each(tmp_path):
    found = estimated_of()
    assert ScreenResult.from_json(found.to_json()) == found
    for text in exports(found, tmp_path).values():
        assert "the error of the estimate" in text
        assert not re.search(r'"noise_sd": \d|noise only|ladder', text)
    back = ScreenResult.from_parquet(tmp_path / "parquet")
    assert back == found
    assert back.noise_sd is None
    assert back.statement.micr is None
    beside = json.loads((tmp_path / "csv.privacy.json").read_text())
    assert beside.pop("statement") == found.statement.text()
    assert beside == {k: v for k, v in found.to_dict().items() if k != "pairs"}
    assert back != result_of()


def test_csv_is_read_back_by_everyone(tmp_path):
    found = result_of()
    path = tmp_path / "found.csv"
    found.to_csv(path)
    expected = found.to_frame().assign(privacy="epsilon = 1.25, delta = 3e-07")
    pd.testing.assert_frame_equal(pd.read_csv(path), expected)
    assert pl.read_csv(path).to_dict(as_series=False) == expected.to_dict("list")
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"), newline="")))
    assert [(row["x"], row["y"], float(row["mic"])) for row in rows] == found.ranked()
    assert json.loads((tmp_path / "found.privacy.json").read_text())["names"] == list(NAMES)


def test_parquet_keeps_the_header_in_its_schema(tmp_path):
    found = result_of()
    path = tmp_path / "found.parquet"
    found.to_parquet(path)
    pd.testing.assert_frame_equal(pd.read_parquet(path), found.to_frame(), check_dtype=False)
    content = json.loads(pq.read_schema(path).metadata[b"dpmic_jax"])
    assert content["privacy"] == found.statement.to_dict()
    pq.write_table(pa.table({"x": ["a"]}), path)
    with pytest.raises(ValueError, match="to_parquet wrote"):
        ScreenResult.from_parquet(path)


def exports(found, folder):
    """Every rendering that leaves the library, as text."""
    found.to_csv(folder / "csv")
    found.to_json(folder / "json")
    found.to_parquet(folder / "parquet")
    return {
        "json": found.to_json(),
        "json file": (folder / "json").read_text(),
        "beside csv": (folder / "csv.privacy.json").read_text(),
        "parquet": pq.read_schema(folder / "parquet").metadata[b"dpmic_jax"].decode(),
        "html": html.unescape(found._repr_html_()),
        "text": found.statement.text(),
    }


FACTS = {
    "epsilon": r"epsilon\W+1\.25\b",
    "delta": r"delta\W+3e-07\b",
    "relation": r'"records": 3\b|at most 3 records of one person',
    "mechanism": "MICr-Lap, all pairs",
    "guarantee": "10 releases of 0.125-DP each",
    "sensitivity": r"0\.000976562512345|at most 0\.0009766\b",
    "n": r"\bn\W+54321\b",
    "sensitivity of MICr": r"0\.000876562512345|at most 0\.0008766\b",
    "B": r"\bB\W+151\b",
    "c": r"\bc\W+5\.5\b",
    "sizes": r"ladder\(1\.25\)",
    "key kind": r'secret key|"key": "secret"',
    "library version": r"0\.9\.7",
    "ledger": "0f3a9c#41",
    "run": "run-7c1f",
    "limits": "noise only",
}


def test_every_export_carries_the_whole_statement(tmp_path):
    found = result_of(statement=statement_of(n=54_321, records=3))
    for kind, text in exports(found, tmp_path).items():
        for fact, pattern in FACTS.items():
            if (kind, fact) != ("text", "limits"):
                assert re.search(pattern, text), f"{kind} lacks {fact}"
        assert SEEDED not in text
    assert "epsilon = 1.25, delta = 3e-07" in str(found)
    assert "at most 3 records, n = 54321: MICr-Lap, all pairs" in str(found)


def test_every_export_of_a_seeded_run_is_stamped(tmp_path):
    found = result_of(key_is_secret=False)
    rows = (tmp_path / "csv").read_text
    for kind, text in {**exports(found, tmp_path), "repr": repr(found), "csv": rows()}.items():
        assert SEEDED in text, kind
        assert "secret" not in text, kind
    assert str(found).splitlines()[-1].startswith("seeded: not for release. ")
    assert found.statement.text().startswith("seeded: not for release. ")
    shown = found._repr_html_()
    assert shown.index(SEEDED) < shown.index("<table")


def test_a_run_without_a_ledger_says_so(tmp_path):
    found = result_of(statement=statement_of(ledger=None))
    for kind, text in exports(found, tmp_path).items():
        assert re.search('not charged to a ledger|"ledger": null', text), kind


def test_html_shows_names_and_runs_none():
    shown = result_of()._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    hostile = statement_of(mechanism="<script>", ledger="<b>")
    shown = result_of(statement=hostile, ask="<i>x")._repr_html_()
    assert not re.search("<script|<b>|<i>", shown)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "found.json"
    path.write_text("old")

    def fail(file):
        file.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        replace(path, fail)
    assert path.read_text() == "old"

    def crash(*_):
        raise OSError("no power")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        with pytest.raises(OSError, match="no power"):
            replace(path, lambda file: file.write(b"new"))
    assert path.read_text() == "old"
    result_of().to_json(path)
    assert ScreenResult.from_json(path) == result_of()
    assert os.listdir(tmp_path) == ["found.json"]


def test_statement_comes_back_from_its_dictionary():
    seeded = statement_of(key_is_secret=False, ledger=None, delta=0.0)
    for statement in (statement_of(), seeded, statement_of(micr=None)):
        content = json.loads(json.dumps(statement.to_dict()))
        assert Statement.from_dict(content) == statement
        for name in content:
            with pytest.raises(ValueError, match="all the fields"):
                Statement.from_dict({key: v for key, v in content.items() if key != name})
        with pytest.raises(ValueError, match="and no more"):
            Statement.from_dict({**content, "more": 1})
        with pytest.raises(ValueError, match="all the fields"):
            Statement.from_dict({**content, "key": "none"})


def test_the_json_of_a_statement_has_its_published_schema():
    file = resources.files("dpmic_jax.results").joinpath("statement.schema.json")
    schema = json.loads(file.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    checker = jsonschema.Draft202012Validator(schema)
    for statement in (
        statement_of(),
        statement_of(n=20_001, records=3, persons=6667),
        statement_of(micr=None, ledger=None, key_is_secret=False, delta=0.0),
    ):
        content = json.loads(json.dumps(statement.to_dict()))
        checker.validate(content)
        assert set(content) <= set(schema["properties"])
        for name in schema["required"]:
            assert not checker.is_valid({k: v for k, v in content.items() if k != name}), name
            assert not checker.is_valid({**content, name: [1]}), name
        assert not checker.is_valid({**content, "more": 1})


def micr_of(**changes):
    given = {"B": 151, "c": 5.5, "sizes": "ladder(1.25)", "sensitivity": 0.001}
    return MICrSettings(**{**given, **changes})


@given(st.floats(1e-12, 1))
def test_the_sensitivity_that_is_said_is_never_too_small(sensitivity):
    micr = micr_of(sensitivity=2 * sensitivity)
    text = statement_of(sensitivity=sensitivity, micr=micr).text()
    distance, mic = map(float, re.findall(r"by at most (\S+)\.(?= )", text))
    assert sensitivity <= distance <= sensitivity * 1.0011
    assert 2 * sensitivity <= mic <= 2 * sensitivity * 1.0011


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": float("inf")}, ValueError, "epsilon"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"delta": -1e-9}, ValueError, "delta"),
        ({"sensitivity": 0.0}, ValueError, "sensitivity"),
        ({"micr": {"B": 151}}, TypeError, "micr=MICrSettings"),
        ({"key_is_secret": "yes"}, TypeError, "key_is_secret"),
        ({"mechanism": "two\nlines"}, ValueError, "mechanism"),
        ({"ledger": "two\nlines"}, ValueError, "ledger"),
        ({"run": 7}, TypeError, "run"),
        ({"event": "{}"}, ValueError, "event"),
        ({"event": event_of(n=19_999).to_json()}, ValueError, "statement's n"),
        ({"event": event_of(records=2).to_json()}, ValueError, "statement's relation"),
    ],
)
def test_bad_statements_are_refused(change, error, text):
    with pytest.raises(error, match=text):
        statement_of(**change)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"c": float("nan")}, ValueError, "0 < c < inf"),
        ({"B": 150.5}, TypeError, "B to be a whole number"),
        ({"sensitivity": 0.0}, ValueError, "0 < sensitivity"),
        ({"sizes": "two\nlines"}, ValueError, "sizes"),
    ],
)
def test_bad_settings_of_micr_are_refused(change, error, text):
    with pytest.raises(error, match=text):
        micr_of(**change)
