import pytest

from regard.core import events


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(path))
    return path


def texts(file, offset=0):
    return [event["text"] for event, _ in events.read(file, offset)]


def test_events_from_an_offset(file):
    for text in ("a", "b\u2028ü", "c"):
        events.emit("note", text=text)
    recorded = list(events.read(file))
    assert [event["text"] for event, _ in recorded] == ["a", "b\u2028ü", "c"]
    assert texts(file, recorded[0][1]) == ["b\u2028ü", "c"]
    assert recorded[-1][1] == file.stat().st_size


def test_notes_and_warnings_are_logged_without_a_file(monkeypatch, caplog):
    monkeypatch.delenv(events.VARIABLE, raising=False)
    events.emit("warning", node="CorpusGen", text="3 lines skipped")
    events.emit("note", text="span 4 is incomplete")
    events.emit("progress", node="Trainer", text="epoch 1", fraction=0.5)
    assert [record.getMessage() for record in caplog.records] == [
        "CorpusGen: warning: 3 lines skipped",
        "regard: note: span 4 is incomplete",
    ]


def test_incomplete_last_line_is_not_read(file):
    events.emit("note", text="a")
    with open(file, "ab") as half:
        half.write(b'{"time": 1, "kind": "no')
    assert texts(file) == ["a"]


def test_incomplete_line_hides_no_other(file):
    events.emit("note", text="a")
    with open(file, "ab") as half:
        half.write(b'{"time": 1, "kind": "note", "te')  # the disk was full here
    events.emit("note", text='b {"time": ')
    with open(file, "ab") as half:
        half.write(b"no event\n[1]\n")
    events.emit("note", text="c")
    assert texts(file) == ["a", 'b {"time": ', "c"]


def test_missing_file_has_no_events(tmp_path, monkeypatch):
    monkeypatch.delenv(events.VARIABLE, raising=False)
    events.emit("note", text="a")
    assert list(events.read(tmp_path / "none")) == []


def test_a_full_disk_is_logged_where_an_error_is_reported(monkeypatch, caplog):
    monkeypatch.setenv(events.VARIABLE, "/dev/full")
    with pytest.raises(OSError, match="No space left"):
        events.emit("run", state="failed")
    events.emit_if_possible("run", state="failed", error="the actual one")
    assert "the actual one" in caplog.text
