"""`dpmic verify` and `dpmic registry`: what they print, and how they end."""

import json

from commands import BOUNDS, QUICK, bounds_file, dpmic, table_file


def test_exit_codes_tell_agreement_from_difference_and_bad_input(tmp_path):
    bounds, run, ledger = bounds_file(tmp_path, BOUNDS), tmp_path / "run", tmp_path / "ledger"
    dpmic("ledger", "init", ledger, "--epsilon", 20, "--bounds", bounds, "--name", "trial")
    words = ("--bounds", bounds, "--epsilon", 20, "--ledger", ledger, "--out", run, *QUICK)
    assert dpmic("screen", table_file(tmp_path), *words).exit_code == 0
    done = dpmic("verify", run, "--ledger", ledger)
    assert done.exit_code == 0, done.output
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"ok"}
    assert "not checked" in dpmic("verify", run, "--no-ledger").stdout

    for words in ((run,), (tmp_path, "--no-ledger"), (run, "--ledger", tmp_path / "none")):
        done = dpmic("verify", *words)
        assert (done.exit_code, done.stdout) == (2, ""), words

    content = json.loads((run / "result.json").read_text())
    content["privacy"]["epsilon"] = 1.0
    (run / "result.json").write_text(json.dumps(content))
    done = dpmic("verify", run, "--ledger", ledger)
    assert done.exit_code == 1
    assert "DIFFERS      epsilon and delta of the statement" in done.stdout


def test_a_registry_entry_is_printed_with_what_is_left_to_answer(tmp_path):
    run, answers = tmp_path / "run", tmp_path / "answers.toml"
    words = ("--bounds", bounds_file(tmp_path), "--epsilon", 20, "--out", run, *QUICK)
    assert dpmic("screen", table_file(tmp_path), *words).exit_code == 0
    answers.write_text('[deployment]\ntitle = "Screen"\n')
    done = dpmic("registry", run, "--answers", answers)
    assert done.exit_code == 0, done.output
    entry = json.loads(done.stdout)
    assert entry["deployment"]["title"] == "Screen"
    assert entry["parameters"]["utility"]["planned"]["smallest_mic"] > 0
    assert "Left to answer: deployment.organisation" in done.stderr
    answers.write_text("[deployment")
    assert dpmic("registry", run, "--answers", answers).exit_code == 2
