from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest

from regard.components.common.errors import UserError
from regard.pipeline.runners import failures
from regard.pipeline.runners.failures import explain, is_transient


def _raised_from(outer: Exception, inner: Exception) -> Exception:
    try:
        try:
            raise inner
        except Exception as error:
            raise outer from error
    except Exception as error:
        return error


def test_user_error_among_the_causes():
    cause = UserError("too few", where="a.tsv:3", remedy="Add some.")
    failure = explain(_raised_from(RuntimeError("library"), cause), "CorpusGen")
    assert failure == {
        "node": "CorpusGen",
        "error": "too few",
        "where": "a.tsv:3",
        "remedy": "Add some.",
        "user": True,
    }


def test_is_transient():
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/disk")
    assert is_transient(explain(full))
    assert is_transient(explain(RuntimeError("a bug")))
    assert not is_transient(explain(UserError("too few", remedy="Add some.")))


def test_user_error_in_the_text_of_a_beam_error():
    text = (
        "Error received from SDK harness: Traceback (most recent call last):\n"
        '  File "x.py", line 3, in f\n'
        "regard.components.common.errors.UserError: a.tsv:3: too few [while running 'Read/Map']\n"
        "Add some.\n\n"
        "more of Beam"
    )
    failure = explain(RuntimeError(text))
    assert (failure["error"], failure["remedy"]) == ("a.tsv:3: too few", "Add some.")
    assert failure["user"]


def test_full_disk_and_read_only_folder_are_user_errors():
    full = explain(_raised_from(RuntimeError("x"), OSError(errno.ENOSPC, "No space", "/d/f")))
    assert full["user"]
    assert full["where"] == "/d/f"
    assert "space" in full["remedy"]
    read_only = explain(OSError(errno.EROFS, "Read-only file system", "/d"))
    assert read_only["user"]
    assert "the option or key for this folder" in read_only["remedy"]
    assert explain(RuntimeError("sqlite: No space left on device (28)"))["user"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Error when executing query: database or disk is full query: COMMIT;", errno.ENOSPC),
        ("FAILED_PRECONDITION: /w/x; Disk quota exceeded", errno.EDQUOT),
        ("attempt to write a readonly database", errno.EROFS),
    ],
)
def test_disk_errors_in_messages_of_libraries(tmp_path, monkeypatch, text, error):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    monkeypatch.setattr(failures.tempfile, "gettempdir", lambda: str(tmp_path))
    failure = explain(RuntimeError(text), "Trainer")
    assert failure["user"]
    assert failure["error"] == os.strerror(error)
    assert failure["where"] == str(tmp_path)
    assert failure["remedy"]


def test_the_fullest_disk_is_named(tmp_path, monkeypatch):
    (tmp_path / "t").mkdir()
    usage = {tmp_path: 0, tmp_path / "t": 5}
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    monkeypatch.setattr(failures.tempfile, "gettempdir", lambda: str(tmp_path / "t"))
    monkeypatch.setattr(
        failures.shutil, "disk_usage", lambda path: SimpleNamespace(free=usage[path])
    )
    assert explain(OSError(errno.ENOSPC, "No space"))["where"] == str(tmp_path)
    usage[tmp_path] = 9
    assert explain(OSError(errno.ENOSPC, "No space"))["where"] == str(tmp_path / "t")


def test_other_errors_are_one_sentence():
    failure = explain(ValueError("shapes differ\nshape a\nshape b"))
    assert failure["error"] == "ValueError: shapes differ"
    assert not failure["user"]
    assert explain(KeyError())["error"] == "KeyError: no message"
    trace = "Traceback (most recent call last):\n  File\nValueError: bad [while running 'A/B']"
    assert explain(RuntimeError(trace))["error"] == "RuntimeError: ValueError: bad"


def test_long_message_is_cut():
    assert len(explain(ValueError("x" * 5000))["error"]) < 400
