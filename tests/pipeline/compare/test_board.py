from __future__ import annotations

import io

import pytest
from rich.console import Console

from pipeline import progress
from pipeline.compare.board import Board


def plain():
    console = Console(file=io.StringIO(), width=30)
    return Board(console, ["a", "b"]), console.file


def test_a_log_gets_one_line_an_event_whatever_its_length():
    board, out = plain()
    with board.open():
        board.started("a")
        board.progress("a", "CorpusGen", "")
        board.progress("a", "Trainer", "epoch 1 · a text that is longer than the console is wide")
        board.refresh()
        board.ended("a", progress.FAILED, "Trainer: no")
        board.say("Stopping …")
    sign = "●" if Console(file=io.StringIO()).encoding.startswith("utf") else "*"
    lines = out.getvalue().splitlines()
    assert lines[:2] == [
        f"{sign} a",
        f"{sign} a Trainer: epoch 1 · a text that is longer than the console is wide",
    ]
    assert lines[2].endswith("a 0.0 s Trainer: no")
    assert lines[3:] == ["Stopping …"]


def test_progress_is_not_repeated_at_once(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("pipeline.compare.board.time.monotonic", lambda: now[0])
    board, out = plain()
    for seconds in (0, 1, 59, 61, 62):
        now[0] = 100.0 + seconds
        board.progress("a", "Trainer", f"second {seconds}")
    texts = [line.partition("second ")[2] for line in out.getvalue().splitlines()]
    assert texts == ["0", "61"]


@pytest.mark.parametrize("live", [True, False])
def test_a_terminal_shows_all_models_at_once(live):
    console = Console(file=io.StringIO(), width=60, force_terminal=live, color_system=None)
    board = Board(console, ["first", "second", "third"])
    with board.open():
        board.started("first")
        board.progress("first", "Trainer", "epoch 2 " + "x" * 80)
        board.ended("second", progress.DONE, "BLEU 30.00")
        board.say("Stopping …")
        board.refresh()
    drawn = Console(file=io.StringIO(), width=60, color_system=None)
    drawn.print(board.draw())
    lines = drawn.file.getvalue().splitlines()
    assert len(lines) == (4 if live else 3)  # a log has its sentences on lines of their own
    assert "first" in lines[0]
    assert lines[0].rstrip().endswith("…")  # cut, so that the board keeps its height
    assert "BLEU 30.00" in lines[1]
    assert "third" in lines[2]
    last = console.file.getvalue().splitlines()[-len(lines) :]
    assert any("BLEU 30.00" in line for line in last)
