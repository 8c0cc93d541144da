from __future__ import annotations

import errno

from components.errors import UserError
from pipeline.runners.failures import explain


def _raised_from(outer: Exception, inner: Exception) -> Exception:
    try:
        try:
            raise inner
        except Exception as error:
            raise outer from error
    except Exception as error:
        return error


def test_user_error_is_found_below_what_wrapped_it():
    cause = UserError("too few", where="a.tsv:3", remedy="Add some.")
    failure = explain(_raised_from(RuntimeError("library"), cause), "CorpusGen")
    assert failure.fields() == {
        "node": "CorpusGen",
        "error": "too few",
        "where": "a.tsv:3",
        "remedy": "Add some.",
        "user": True,
    }


def test_user_error_that_beam_gives_only_as_text():
    text = (
        "Error received from SDK harness: Traceback (most recent call last):\n"
        '  File "x.py", line 3, in f\n'
        "components.errors.UserError: a.tsv:3: too few [while running 'Read/Map']\nAdd some.\n\n"
        "more of Beam"
    )
    failure = explain(RuntimeError(text))
    assert (failure.error, failure.remedy) == ("a.tsv:3: too few", "Add some.")
    assert failure.user


def test_full_disk_and_read_only_folder_are_for_the_user():
    full = explain(_raised_from(RuntimeError("x"), OSError(errno.ENOSPC, "No space", "/d/f")))
    assert full.user
    assert full.where == "/d/f"
    assert "space" in (full.remedy or "")
    assert explain(OSError(errno.EROFS, "Read-only file system", "/d")).user
    assert explain(RuntimeError("sqlite: No space left on device (28)")).user


def test_other_errors_are_one_sentence_and_no_users_fault():
    failure = explain(ValueError("shapes differ\nshape a\nshape b"))
    assert failure.error == "ValueError: shapes differ"
    assert not failure.user
    assert explain(KeyError()).error == "KeyError: no message"
    trace = "Traceback (most recent call last):\n  File\nValueError: bad [while running 'A/B']"
    assert explain(RuntimeError(trace)).error == "RuntimeError: ValueError: bad"


def test_long_message_is_cut():
    assert len(explain(ValueError("x" * 5000)).error) < 400
