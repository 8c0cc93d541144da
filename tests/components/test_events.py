from __future__ import annotations

import pytest

from components import events


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(path))
    return path


def texts(file, offset=0):
    return [event["text"] for event, _ in events.read(file, offset)]


def test_events_come_back_in_order_and_from_an_offset(file):
    for text in ("a", "b\u2028ü", "c"):
        events.emit("note", text=text)
    found = list(events.read(file))
    assert [event["text"] for event, _ in found] == ["a", "b\u2028ü", "c"]
    assert texts(file, found[0][1]) == ["b\u2028ü", "c"]
    assert found[-1][1] == file.stat().st_size


def test_where_nobody_listens_notes_and_warnings_are_logged(monkeypatch, caplog):
    monkeypatch.delenv(events.VARIABLE, raising=False)
    events.emit("warning", node="CorpusGen", text="3 lines left out")
    events.emit("note", text="span 4 is not whole yet")
    events.emit("progress", node="Trainer", text="epoch 1", fraction=0.5)
    assert [record.getMessage() for record in caplog.records] == [
        "CorpusGen: warning: 3 lines left out",
        "regard: note: span 4 is not whole yet",
    ]


def test_half_a_line_at_the_end_is_waited_for(file):
    events.emit("note", text="a")
    with open(file, "ab") as half:
        half.write(b'{"time": 1, "kind": "no')
    assert texts(file) == ["a"]


def test_half_a_line_in_the_middle_is_passed_over_and_hides_no_other(file):
    events.emit("note", text="a")
    with open(file, "ab") as half:
        half.write(b'{"time": 1, "kind": "note", "te')  # the disk was full here
    events.emit("note", text='b {"time": ')
    with open(file, "ab") as half:
        half.write(b"no event\n[1]\n")
    events.emit("note", text="c")
    assert texts(file) == ["a", 'b {"time": ', "c"]


def test_without_the_variable_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv(events.VARIABLE, raising=False)
    events.emit("note", text="a")
    assert list(events.read(tmp_path / "none")) == []
