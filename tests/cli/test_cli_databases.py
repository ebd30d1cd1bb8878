"""`--db` and `--sql` in place of a table: which commands take them, and what is refused."""

import pytest
from commands import dpmic

COMMANDS = {
    "screen": ("--epsilon", 1),
    "independence": ("--pairs", "a,b", "--epsilon", 1),
    "causal": ("--epsilon", 1),
    "test": ("result.json",),
    "bounds learn": ("--within", "w.toml", "--epsilon", 1),
    "bounds template": (),
    "data check": ("--bounds", "b.toml"),
}
DB = ("--db", "duckdb:")
SQL = ("--sql", "SELECT 1 AS a")


@pytest.fixture(autouse=True)
def result_file(tmp_path, monkeypatch):
    """`dpmic test` asks for a file that is there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "result.json").touch()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_a_table_or_a_query(command):
    for words, said in (
        ((), "Missing argument 'TABLE', or --db and --sql"),
        (("table.csv", *DB, *SQL), "--db and --sql exclude TABLE"),
        (DB, "--db and --sql belong together"),
        (("table.csv", *SQL), "--db and --sql belong together"),
    ):
        done = dpmic(*command.split(), *COMMANDS[command], *words)
        assert done.exit_code == 2
        assert f"Error: {said}.\n" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_password_is_refused_in_one_line_that_does_not_show_it(command):
    secret = ("--db", "postgresql://ann:tulip-7@host/clinic", *SQL)
    done = dpmic(*command.split(), *COMMANDS[command], *secret)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: db has a password in it")
    assert len(done.stderr.splitlines()) == 1
    assert "tulip-7" not in done.output


def test_histograms_of_a_report_take_a_query_in_place_of_data():
    done = dpmic("report", "run", "--data", "table.csv", *DB, *SQL)
    assert done.exit_code == 2
    assert "Error: --db and --sql exclude --data.\n" in done.stderr


def test_without_bounds_a_query_is_refused_with_the_remedy():
    done = dpmic("screen", *COMMANDS["screen"], *DB, *SQL)
    assert done.exit_code == 2
    assert "`dpmic bounds template` writes a template" in done.stderr
