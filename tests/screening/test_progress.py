"""Progress is for terminals, and says nothing of the data."""

import io
import re

import pytest
from small import columns, screened

from dpmic_jax.screening import AllPairs, Resources, TopK


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


def shown(monkeypatch, terminal, **settings):
    screen = Screen(terminal)
    monkeypatch.setattr("sys.stderr", screen)
    result = screened(**settings)
    monkeypatch.undo()
    return screen.getvalue(), result


@pytest.mark.parametrize("ask", [AllPairs(), TopK(4, selection_fraction=0.7)])
def test_a_terminal_sees_pairs_rate_and_time_left_and_no_value(ask, monkeypatch):
    text, result = shown(monkeypatch, True, ask=ask, resources=Resources(tile=7))
    assert "21/21" in text
    assert "pairs/s" in text
    assert "<" in text
    values = [*columns()["a"], *result.mic]
    numbers = set(re.findall(r"0\.\d{3,}", text))
    assert not any(f"{value:.6f}".startswith(number) for value in values for number in numbers)


def test_the_progress_of_a_resumed_run_counts_stored_tiles(tmp_path, monkeypatch):
    from dpmic_jax.runs.checkpoint import Folder

    keep, stored = Folder.keep_tile, []

    def stop(self, number, content):
        if len(stored) == 2:
            raise KeyboardInterrupt
        stored.append(keep(self, number, content))

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "keep_tile", stop)
        with pytest.raises(KeyboardInterrupt):
            screened(out=tmp_path / "run")
    text, _ = shown(monkeypatch, True, out=tmp_path / "run")
    assert "14/21" in text
    assert "21/21" in text


def test_anything_else_sees_nothing(monkeypatch):
    assert shown(monkeypatch, False)[0] == ""
