import json
import os
import subprocess
import sys

from commands import dpmic


def test_demo_prints_a_ranked_table():
    result = dpmic("pairwise", "demo", "--top", "9")
    assert result.exit_code == 0
    rows = [line.split() for line in result.output.splitlines()[1:10]]
    scores = [float(row[2]) for row in rows]
    assert rows[0][:2] == ["dose", "response"]
    assert scores == sorted(scores, reverse=True)
    assert "66 pairs of 12 columns, 20000 records" in result.output


def test_json_is_one_object_with_every_pair():
    result = dpmic("pairwise", "demo", "--statistic", "mice", "-B", "40", "-c", "2", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert len(found["pairs"]) == 66
    assert set(found["pairs"][0]) == {"x", "y", "mic", "records"}


def test_bad_settings_exit_with_2():
    result = dpmic("pairwise", "demo", "-B", "3")
    assert result.exit_code == 2
    assert "B >= 4" in result.output


def test_the_real_command_runs(tmp_path):
    """In a process of its own, with nothing replaced."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "XLA_FLAGS": ""}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    words = ["pairwise", "demo", "--statistic", "micr", "-B", "12", "-c", "2", "--top", "1"]
    command = [sys.executable, "-m", "dpmic_jax", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("dose ")


def test_files_are_ranked_tested_drawn_and_reported(tmp_path):
    table, picture, page = tmp_path / "t.csv", tmp_path / "map.png", tmp_path / "r.html"
    ages = range(0, 80, 2)
    rows = [f"{age},{'child' if age < 18 else 'adult'},{age % 7 or 'NA'}" for age in ages]
    table.write_text("\n".join(["age,group,other", *rows]))
    words = ["--p-values", "--draws", "99", "--heatmap", str(picture), "--report", str(page)]
    result = dpmic("pairwise", str(table), *words)
    assert result.exit_code == 0, result.output
    first = result.stdout.splitlines()[1].split()
    assert first[:2] == ["age", "group"]
    assert first[3:5] == ["40", "0.01"]
    assert "34 to 40 complete records" in result.stdout
    assert picture.stat().st_size > 1000
    assert "nominal: 2 categories" in page.read_text()
    found = json.loads(dpmic("pairwise", str(table), "--json").stdout)
    assert {pair["records"] for pair in found["pairs"]} == {34, 40}
    refused = dpmic("pairwise", str(table), "--refuse-missing")
    assert refused.exit_code == 2
    assert "column 'other' of X has missing values" in refused.output


def test_files_of_every_kind_and_queries_give_the_same(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as parquet

    columns = {"a": list(range(12)), "b": [i % 5 / 2 for i in range(12)], "c": list("xyzx" * 3)}
    lines = [
        f"{a};{str(b).replace('.', ',')};{c}" for a, b, c in zip(*columns.values(), strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a;b;c", *lines]))
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in (0, 1):
        table = pa.table(columns).slice(6 * part, 6)
        parquet.write_table(table, folder / f"{part}.parquet")
    sql = f"SELECT * FROM '{folder}/*.parquet'"
    ways = (
        [str(tmp_path / "t.csv"), "--delimiter", ";", "--decimal", ","],
        [str(folder)],
        ["--db", "duckdb:", "--sql", sql],
    )
    found = [dpmic("pairwise", *words, "--json") for words in ways]
    assert [result.exit_code for result in found] == [0, 0, 0], found[-1].output
    assert len({result.stdout for result in found}) == 1
    assert len(json.loads(found[0].stdout)["pairs"]) == 3
