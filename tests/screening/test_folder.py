"""A run's folder: whose it is, what is in it, what damage does, and what is refused."""

import json
import os
import shutil
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from small import BOUNDS, columns, same_bits, screened

from dpmic_jax import Budget, LedgerFile, secret_key, seeded_key
from dpmic_jax.data.schema import schema_of
from dpmic_jax.dp.rng import key_file
from dpmic_jax.dp.rng.errors import KeyLostError
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.screening import Above, Against, AllPairs, Resources, TopK, create_ledger

ASKS = [AllPairs(), TopK(4, selection_fraction=0.7), Above(0.3, 3, selection_fraction=0.7)]


@lru_cache
def whole(ask=ASKS[0]):
    """The result of a run that nothing interrupts."""
    return screened(ask=ask)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def ledger(tmp_path):
    budget = Budget(1000.0)
    return create_ledger(tmp_path / "ledger", budget, name="small", schema=schema_of(BOUNDS))


@pytest.fixture
def file(tmp_path):
    """The small table in a CSV file."""
    pyarrow.csv.write_csv(pa.table(columns()), tmp_path / "table.csv")
    return tmp_path / "table.csv"


@pytest.fixture
def stops(monkeypatch):
    """Make runs stop, as if interrupted, once so many tiles are stored."""

    def after(tiles):
        keep, stored = Folder.keep_tile, []

        def counted(self, number, content):
            if len(stored) == tiles:
                raise KeyboardInterrupt
            keep(self, number, content)
            stored.append(number)

        monkeypatch.setattr(Folder, "keep_tile", counted)

    yield after
    monkeypatch.undo()


def begun(out, stops, monkeypatch, tiles=2, **settings):
    """A run that was interrupted after some of its three tiles."""
    stops(tiles)
    with pytest.raises(KeyboardInterrupt):
        screened(out=out, **settings)
    monkeypatch.undo()
    assert sorted(entry.name for entry in out.iterdir()) == ["key", "lock", "run.json", "tiles"]
    assert len(list((out / "tiles").iterdir())) == tiles


def tile_files(out):
    return sorted((out / "tiles").iterdir())


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("tiles", [0, 2])
def test_an_interrupted_run_resumes_bit_for_bit_and_is_charged_once(
    ask, tiles, out, ledger, stops, monkeypatch
):
    begun(out, stops, monkeypatch, tiles, ask=ask, ledger=ledger)
    assert len(ledger.events) == 1
    found = screened(ask=ask, out=out, ledger=ledger)
    assert len(ledger.events) == 1
    assert found.statement.ledger == f"{ledger.identity}#1"
    np.testing.assert_array_equal(found.mic, whole(ask).mic)
    np.testing.assert_array_equal(found.pairs, whole(ask).pairs)
    assert sorted(entry.name for entry in out.iterdir()) == ["lock", "result.json", "run.json"]


def of_version_0_1_0(out):
    """Its description did not say how tiles are written, nor the bounds but in the event."""
    content = json.loads((out / "run.json").read_text())
    for later in ("format", "bounds", "data", "entries"):
        del content[later]
    (out / "run.json").write_text(json.dumps(content))


def test_an_unfinished_run_of_version_0_1_0_is_refused_and_left_as_it_is(
    out, ledger, stops, monkeypatch
):
    """Its tiles are hidden by another cipher."""
    begun(out, stops, monkeypatch, ask=TopK(4, selection_fraction=0.7), ledger=ledger)
    of_version_0_1_0(out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"finish it with 0\.1\.0"):
        screened(ask=TopK(4, selection_fraction=0.7), out=out, ledger=ledger)
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert len(ledger.events) == 1


def test_a_finished_run_of_version_0_1_0_is_refused_with_what_decides_now(out):
    screened(out=out)
    of_version_0_1_0(out)
    content = json.loads((out / "result.json").read_text())
    content["independence"] = content.pop("dependence_threshold")
    (out / "result.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r'earlier version .* "dependence_threshold" decides'):
        screened(out=out)
    wider = {name: (low - 1, high) for name, (low, high) in BOUNDS.items()}
    with pytest.raises(ValueError, match="other settings"):
        screened(out=out, bounds=wider)


def test_stored_tiles_are_not_computed_again(out, stops, monkeypatch):
    begun(out, stops, monkeypatch, tiles=2)
    asked, real = [], Folder.keep_tile

    def noted(self, number, content):
        asked.append(number)
        real(self, number, content)

    monkeypatch.setattr(Folder, "keep_tile", noted)
    assert same_bits(screened(out=out), whole())
    assert asked == [2]


def test_a_run_resumes_with_other_resources(out, stops, monkeypatch):
    begun(out, stops, monkeypatch)
    assert same_bits(screened(out=out, resources=Resources(tile=64, rows=100)), whole())


# Tiles with noise, and those that are encrypted.
@pytest.mark.parametrize("ask", ASKS[:2])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
        lambda content: bytes([content[0] ^ 128]) + content[1:],
    ],
)
def test_a_damaged_tile_is_computed_again(ask, damage, out, stops, monkeypatch):
    begun(out, stops, monkeypatch, ask=ask)
    first = tile_files(out)[0]
    first.write_bytes(damage(first.read_bytes()))
    assert same_bits(screened(ask=ask, out=out), whole(ask))


def test_an_encrypted_tile_under_another_number_is_computed_again(out, stops, monkeypatch):
    ask = TopK(4, selection_fraction=0.7)
    begun(out, stops, monkeypatch, ask=ask)
    first, second = tile_files(out)
    first.write_bytes(second.read_bytes())
    assert same_bits(screened(ask=ask, out=out), whole(ask))


def test_other_files_among_the_tiles_are_ignored_and_kept(out, stops, monkeypatch):
    begun(out, stops, monkeypatch)
    shutil.copy(tile_files(out)[0], out / "tiles" / "00000099")
    (out / "tiles" / "00notes").write_text("mine")
    (out / "tiles" / ".00000002.0123456789abcdef.new").write_bytes(b"half of a ti")
    assert same_bits(screened(out=out), whole())
    assert [entry.name for entry in (out / "tiles").iterdir()] == ["00notes"]
    assert (out / "tiles" / "00notes").read_text() == "mine"


def test_tiles_without_a_description_are_not_used_by_another_run(out, stops, monkeypatch):
    """They would have the noise of a key that is gone, and of another event."""
    begun(out, stops, monkeypatch, seed=5)
    (out / "run.json").unlink()
    assert same_bits(screened(out=out), whole())


def test_a_finished_run_gives_its_result_again_and_reads_nothing(out, file, ledger, monkeypatch):
    first = screened(file, out=out, ledger=ledger)

    def unread(*_):
        raise AssertionError("read")

    monkeypatch.setattr("dpmic_jax.data.source.files.CSVSource._read", unread)
    assert same_bits(screened(file, out=out, ledger=ledger), first)
    assert len(ledger.events) == 1
    with pytest.raises(AssertionError, match="read"):
        screened(file)


def test_a_finished_run_of_a_secret_key_stays(out):
    first = screened(out=out, key=secret_key())
    assert first.statement.key_is_secret
    assert same_bits(screened(out=out, key=secret_key()), first)


def test_files_left_by_a_kill_after_the_result_are_removed(out, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "clear", lambda self: None)
        first = screened(out=out)
    (out / ".result.json.0123456789abcdef.new").write_bytes(b"half")
    assert (out / "key").exists()
    assert tile_files(out)
    assert same_bits(screened(out=out), first)
    assert sorted(entry.name for entry in out.iterdir()) == ["lock", "result.json", "run.json"]


def test_other_files_beside_a_run_do_not_stop_it(out, stops, monkeypatch):
    begun(out, stops, monkeypatch)
    (out / "notes.txt").write_text("of the user")
    first = screened(out=out)
    assert same_bits(screened(out=out), first)
    assert (out / "notes.txt").exists()


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ask": Against("a")}, "other settings"),
        ({"ask": TopK(4, selection_fraction=0.7)}, "other settings"),
        ({"epsilon": 19.0}, "other settings"),
        ({"records_per_person": 2}, "other settings"),
        ({"bounds": {**BOUNDS, "a": (0.0, 2.0)}}, "other settings"),
        ({"table": columns(599)}, "other settings"),
        ({"table": dict(reversed(columns().items()))}, "another order"),
        ({"seed": 2}, "another key"),
        ({"key": "secret"}, "another key"),
    ],
)
def test_the_folder_of_another_run_is_refused_and_left_as_it_is(
    changes, said, finished, out, stops, monkeypatch
):
    if finished:
        screened(out=out)
    else:
        begun(out, stops, monkeypatch)
    before = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    if changes.get("key"):
        changes = {"key": secret_key()}
    with pytest.raises(ValueError, match=said):
        screened(out=out, **changes)
    assert before == {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_a_resumed_run_cannot_change_its_selection_fraction(out, stops, monkeypatch):
    """Scores at 0.9 of epsilon and values at 0.9 of it would cost 1.8 of what was charged."""
    begun(out, stops, monkeypatch, ask=TopK(4, selection_fraction=0.9))
    with pytest.raises(ValueError, match="other settings"):
        screened(out=out, ask=TopK(4, selection_fraction=0.1))


@pytest.mark.parametrize("finished", [True, False])
def test_a_file_that_has_changed_is_refused(finished, out, file, stops, monkeypatch):
    if finished:
        screened(file, out=out)
    else:
        begun(out, stops, monkeypatch, table=file)
    os.utime(file, ns=(1, 1))
    with pytest.raises(ValueError, match="its file has changed since"):
        screened(file, out=out)


def changed(value, record=5):
    """The small table with one cell of one record changed."""
    table = {name: values.copy() for name, values in columns().items()}
    table["b"][record] = value
    return table


def test_a_run_is_not_resumed_with_one_other_record(out, ledger, stops, monkeypatch):
    """The noise of two tables from one key would cancel in a difference."""
    begun(out, stops, monkeypatch, key=secret_key(), ledger=ledger)
    before = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for value in (columns()["b"][5] + 1e-9, np.nan, np.inf):
        with pytest.raises(ValueError, match="other records than these"):
            screened(changed(value), out=out, key=secret_key(), ledger=ledger)
    assert before == {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    screened(out=out, key=secret_key(), ledger=ledger)


def test_a_copied_folder_gives_the_same_release_and_never_that_of_other_records(
    out, ledger, stops, monkeypatch
):
    begun(out, stops, monkeypatch, key=secret_key(), ledger=ledger)
    copy = out.with_name("copy")
    shutil.copytree(out, copy)
    with pytest.raises(ValueError, match="other records than these"):
        screened(changed(0.0), out=copy, key=secret_key(), ledger=ledger)
    one, other = (screened(out=each, key=secret_key(), ledger=ledger) for each in (out, copy))
    assert same_bits(one, other)
    assert len(ledger.events) == 1


def test_without_the_digest_a_copy_would_tell_the_difference_of_two_tables(out, stops, monkeypatch):
    """The control: what the refusal is for."""
    begun(out, stops, monkeypatch, tiles=0, key=secret_key())
    copy = out.with_name("copy")
    shutil.copytree(out, copy)
    monkeypatch.setattr("dpmic_jax.runs.charged._check_same_records", lambda *_: None)
    one = screened(out=out, key=secret_key())
    same = {**columns(), "b": columns()["a"]}  # far enough to be seen whatever the noise is
    other = screened(same, out=copy, key=secret_key())
    first, second = (
        dict(zip(map(tuple, found.pairs.tolist()), found.mic.tolist(), strict=True))
        for found in (one, other)
    )
    apart = [pair for pair in first if first[pair] != second[pair]]
    assert apart
    assert all(1 in pair for pair in apart)  # the rest has the same noise


def test_the_order_of_records_and_of_batches_does_not_matter_to_a_resumed_run(
    out, stops, monkeypatch
):
    begun(out, stops, monkeypatch, key=secret_key(), resources=Resources(tile=7, rows=17))
    order = np.random.default_rng(1).permutation(len(columns()["a"]))
    shuffled = {name: values[order] for name, values in columns().items()}
    screened(shuffled, out=out, key=secret_key(), resources=Resources(rows=100))


def test_the_same_numbers_of_another_type_are_other_records(out, stops, monkeypatch):
    """Cuts are rounded to the type of a column, so their codes may differ."""
    short = {name: values.astype(np.float32) for name, values in columns().items()}
    begun(out, stops, monkeypatch, table=short, key=secret_key())
    wide = {name: values.astype(np.float64) for name, values in short.items()}
    with pytest.raises(ValueError, match="other records than these"):
        screened(wide, out=out, key=secret_key())


def test_a_seeded_run_that_was_not_charged_does_not_take_anothers_charge(
    tmp_path, ledger, monkeypatch
):
    """Their events are equal: they have one seed, and tables of the same shape."""
    screened(out=tmp_path / "one", ledger=ledger)

    def killed(self, event):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LedgerFile, "charge", killed)
        with pytest.raises(KeyboardInterrupt):
            screened(columns(seed=8), out=tmp_path / "other", ledger=ledger)
    assert len(ledger.events) == 1
    found = screened(columns(seed=8), out=tmp_path / "other", ledger=ledger)
    one, other = ledger.events
    assert one == other
    assert found.statement.ledger == f"{ledger.identity}#2"
    screened(columns(seed=8), out=tmp_path / "other", ledger=ledger)
    assert len(ledger.events) == 2


def test_a_users_folder_of_tiles_named_by_dates_is_left(out):
    screened(out=out)
    for name in ("run.json", "result.json"):
        (out / name).unlink()
    (out / "tiles").mkdir()
    (out / "tiles" / "20240101").write_text("slate")
    with pytest.raises(ValueError, match="holds '20240101', which is no tile"):
        screened(out=out)
    assert (out / "tiles" / "20240101").read_text() == "slate"


@pytest.mark.parametrize("name", ["run.json", "key", "lock", "result.json"])
def test_a_special_file_in_the_folder_is_refused_without_waiting(name, out):
    screened(out=out)
    (out / name).unlink(missing_ok=True)
    os.mkfifo(out / name)
    with pytest.raises(ValueError, match="is not a file of a run"):
        screened(out=out)


def test_another_ledger_is_refused(tmp_path, out, ledger, stops, monkeypatch):
    begun(out, stops, monkeypatch, ledger=ledger)
    other = create_ledger(tmp_path / "b", Budget(99.0), name="small", schema=schema_of(BOUNDS))
    for wrong in (other, None):
        with pytest.raises(ValueError, match="another ledger"):
            screened(out=out, ledger=wrong)
    assert other.events == ()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"{}", b'{"run": "x"}', b"\xff\xfe", b"3"]
)
def test_a_damaged_description_is_refused(content, out):
    out.mkdir()
    (out / "run.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.json is damaged; use a new folder"):
        screened(out=out)


def test_a_result_without_its_description_is_refused(out):
    screened(out=out)
    (out / "run.json").unlink()
    with pytest.raises(ValueError, match=r"but no run\.json; use a new folder"):
        screened(out=out)


@pytest.mark.parametrize("name", ["notes.txt", "data.csv", ".hidden"])
def test_a_folder_of_something_else_is_refused(name, out):
    out.mkdir()
    (out / name).write_text("mine")
    with pytest.raises(ValueError, match="which belongs to no run; use a new folder"):
        screened(out=out)
    assert [entry.name for entry in out.iterdir()] == [name]


def test_a_folder_with_a_key_and_tiles_of_the_user_is_refused_and_left_as_it_is(out):
    (out / "tiles").mkdir(parents=True)
    (out / "tiles" / "roof.txt").write_text("slate")
    (out / "key").write_text("of my house")
    with pytest.raises(ValueError, match="which belongs to no run; use a new folder"):
        screened(out=out)
    assert (out / "key").read_text() == "of my house"
    assert (out / "tiles" / "roof.txt").read_text() == "slate"


def test_without_these_checks_the_users_files_would_be_gone(out, monkeypatch):
    """The control: a folder taken for a run's by its names, and any file for a key."""
    monkeypatch.setattr(Folder, "_check_ours", lambda self: None)
    monkeypatch.setattr(Folder, "_check_leftovers", lambda self: None)
    monkeypatch.setattr(key_file, "is_key", lambda path: path.exists())
    monkeypatch.setattr("dpmic_jax.runs.checkpoint._is_tile", lambda path: True)
    (out / "tiles").mkdir(parents=True)
    (out / "tiles" / "00000001").write_text("slate")
    (out / "key").write_text("of my house")
    screened(out=out)
    assert not (out / "key").exists()
    assert not (out / "tiles").exists()


@pytest.mark.parametrize("name", ["key", "lock", "run.json", "result.json", "tiles"])
@pytest.mark.parametrize("begins", [True, False])
def test_nothing_is_written_through_a_link(name, begins, out, tmp_path, stops, monkeypatch):
    """Neither in a folder that a killed start left, nor in that of a run that goes on."""
    target = tmp_path / "of the user"
    target.mkdir() if name == "tiles" else target.write_text("mine")
    begun(out, stops, monkeypatch)
    if begins:
        (out / "run.json").unlink()
    if (out / name).is_dir():
        shutil.rmtree(out / name)
    (out / name).unlink(missing_ok=True)
    (out / name).symlink_to(target)
    with pytest.raises(ValueError, match="is a link, which no run creates"):
        screened(out=out)
    assert list(target.iterdir()) == [] if name == "tiles" else target.read_text() == "mine"


def test_a_run_does_not_begin_beside_a_key_that_no_run_wrote(out):
    """Beside the lock of a start that was killed before it wrote a key."""
    screened(out=out)
    for name in ("run.json", "result.json"):
        (out / name).unlink()
    (out / "key").write_text("of my house")
    with pytest.raises(ValueError, match="is not the key of a run"):
        screened(out=out)
    assert (out / "key").read_text() == "of my house"


def test_all_but_the_result_is_for_the_owner_only(out, stops, monkeypatch):
    before = os.umask(0)
    try:
        begun(out, stops, monkeypatch)
    finally:
        os.umask(before)
    for path in out.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path.name


def test_a_file_is_no_folder(out):
    out.write_text("mine")
    with pytest.raises(ValueError, match="expected out to be a folder"):
        screened(out=out)
    assert out.read_text() == "mine"


def test_one_process_at_a_time(out):
    with Folder(out).locked(), pytest.raises(ValueError, match="another process is using"):
        screened(out=out)
    screened(out=out)


def test_the_key_is_for_its_owner_only_and_goes_with_the_run(out, stops, monkeypatch):
    begun(out, stops, monkeypatch)
    assert (out / "key").stat().st_mode & 0o777 == 0o600
    assert key_file.same(key_file.load(out / "key"), seeded_key(1))
    screened(out=out)
    assert not (out / "key").exists()


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize(
    ("lose", "said"),
    [
        (lambda key: key.unlink(), "there is no key"),
        (lambda key: key.write_bytes(b""), "is damaged"),
        (lambda key: key.write_bytes(bytes(key.stat().st_size)), "is damaged"),
        (lambda key: key.chmod(0o644), "may be read by others"),
    ],
)
def test_a_run_with_a_lost_key_says_that_a_new_run_is_charged(
    lose, said, seeded, out, ledger, stops, monkeypatch
):
    settings = {"ledger": ledger, **({} if seeded else {"key": secret_key()})}
    begun(out, stops, monkeypatch, **settings)
    lose(out / "key")
    with pytest.raises(KeyLostError, match=rf"{said}(.|\n)*is charged again"):
        screened(out=out, **settings)
    assert len(ledger.events) == 1
    assert len(tile_files(out)) == 2


def test_a_resumed_secret_run_has_the_noise_of_the_key_that_was_kept(out, stops, monkeypatch):
    """Two runs from one key file: one goes on in its folder, one from a copy of it."""
    begun(out, stops, monkeypatch, key=secret_key())
    copy = out.with_name("copy")
    shutil.copytree(out, copy)
    for tile in tile_files(copy):
        tile.unlink()
    assert same_bits(screened(out=out, key=secret_key()), screened(out=copy, key=secret_key()))


def test_a_folder_tells_nothing_but_what_is_public(out, file, ledger, stops, monkeypatch):
    begun(out, stops, monkeypatch, table=file, ledger=ledger)
    content = json.loads((out / "run.json").read_text())
    public = {"run", "event", "columns", "bounds", "ledger", "table", "tile", "data", "entries"}
    public |= {"format"}
    assert content.keys() == public
    assert len(bytes.fromhex(content["data"])) == 32
    assert content["ledger"] == ledger.identity
    assert content["event"] == ledger.events[0].to_json()
    assert content["columns"] == list(BOUNDS)
    # Not its size, which depends on the values.
    assert content["table"] == [str(file.resolve()), file.stat().st_mtime_ns]
