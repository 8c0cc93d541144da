import errno
import os
from types import SimpleNamespace

import pytest

from regard.core.errors import DataError, EnvironmentFault, UserError
from regard.pipeline.runners import failures
from regard.pipeline.runners.failures import as_user_error, explain, is_transient


def _raised_from(outer: Exception, inner: Exception) -> Exception:
    try:
        try:
            raise inner
        except Exception as error:
            raise outer from error
    except Exception as error:
        return error


def test_user_error_among_the_causes():
    facts = {"where": "a.tsv:3", "remedy": "Add some."}
    error = _raised_from(RuntimeError("library"), UserError("too few", **facts))
    expected = {"node": "CorpusGen", "error": "too few", **facts, "user": True}
    assert explain(error, "CorpusGen").to_dict() == expected


def test_a_failure_has_the_code_of_the_error():
    assert explain(_raised_from(RuntimeError("library"), DataError("too few"))).code == "data"
    text = "RuntimeError: regard.core.errors.DataError: a.tsv:3: too few\nAdd some.\n\nmore"
    failure = explain(RuntimeError(text))
    assert (failure.error, failure.code) == ("a.tsv:3: too few", "data")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/disk")
    assert (explain(full).code, as_user_error(full).code) == ("environment", "environment")
    assert explain(RuntimeError("a bug")).code is None


def test_is_transient():
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/disk")
    assert is_transient(explain(full))
    assert is_transient(explain(RuntimeError("a bug")))
    assert is_transient(explain(EnvironmentFault("The connection between the workers is lost.")))
    assert not is_transient(explain(UserError("too few", remedy="Add some.")))
    assert not is_transient(explain(DataError("too few", remedy="Add some.")))


def test_user_error_in_the_text_of_a_beam_error():
    text = (
        "Error received from SDK harness: Traceback (most recent call last):\n"
        '  File "x.py", line 3, in f\n'
        "regard.core.errors.UserError: a.tsv:3: too few [while running 'Read/Map']\n"
        "Add some.\n\n"
        "more of Beam"
    )
    failure = explain(RuntimeError(text))
    assert (failure.error, failure.remedy) == ("a.tsv:3: too few", "Add some.")
    assert failure.user


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EROFS, "with REGARD_HOME"),
        (errno.ENAMETOOLONG, "shorter"),
        (errno.ELOOP, "link"),
    ],
)
def test_errors_of_the_file_system_are_user_errors(number, remedy):
    failure = explain(_raised_from(RuntimeError("x"), OSError(number, "No", "/d/f")))
    assert (failure.user, failure.where) == (True, "/d/f")
    assert remedy in failure.remedy


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Error when executing query: database or disk is full query: COMMIT;", errno.ENOSPC),
        ("sqlite: No space left on device (28)", errno.ENOSPC),
        ("FAILED_PRECONDITION: /w/x; Disk quota exceeded", errno.EDQUOT),
        ("attempt to write a readonly database", errno.EROFS),
    ],
)
def test_disk_errors_in_messages_of_libraries(tmp_path, monkeypatch, text, error):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    monkeypatch.setattr(failures.tempfile, "gettempdir", lambda: str(tmp_path))
    failure = explain(RuntimeError(text))
    assert (failure.error, failure.where) == (os.strerror(error), str(tmp_path))
    assert failure.user


def test_the_fullest_disk_is_named(tmp_path, monkeypatch):
    (tmp_path / "t").mkdir()
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    monkeypatch.setattr(failures.tempfile, "gettempdir", lambda: str(tmp_path / "t"))
    for fullest in (tmp_path, tmp_path / "t"):
        free = {tmp_path: 5, tmp_path / "t": 5, fullest: 0}
        usage = {path: SimpleNamespace(free=space) for path, space in free.items()}
        monkeypatch.setattr(failures.shutil, "disk_usage", usage.get)
        assert explain(OSError(errno.ENOSPC, "No space")).where == str(fullest)


TRACE = "Traceback (most recent call last):\n  File\nValueError: bad [while running 'A/B']"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("shapes differ\nshape a\nshape b"), "ValueError: shapes differ"),
        (KeyError(), "KeyError: no message"),
        (RuntimeError(TRACE), "RuntimeError: ValueError: bad"),
    ],
)
def test_other_errors_are_one_sentence(error, text):
    assert explain(error).to_dict() == {"error": text, "user": False}


def test_long_message_is_cut():
    assert len(explain(ValueError("x" * 5000)).error) < 400


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (
            "Pipeline job_1 failed in state FAILED: org.apache.flink.runtime.jobmanager.scheduler."
            "NoResourceAvailableException: Could not acquire the minimum required resources.",
            "too few free slots: lower beam.workers",
        ),
        (
            "Pipeline job_1 failed in state FAILED: java.io.IOException: Insufficient number of "
            "network buffers: required 512, but only 389 available.",
            "sort-shuffle.min-buffers as in docs/flink.yaml",
        ),
        (
            "java.util.concurrent.TimeoutException: The heartbeat of TaskManager with id t timed "
            "out.",
            "spare slots for Flink (docs/flink.yaml)",
        ),
        (
            "org.apache.spark.SparkException: Job aborted: ExecutorLostFailure (executor 1 exited)",
            "lost a host and did not restart the job",
        ),
        (
            "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = "
            "StatusCode.UNAVAILABLE\n\tdetails = 'failed to connect to ipv4:127.0.0.1:8099'",
            "that the job service runs",
        ),
    ],
)
def test_failures_of_a_cluster(text, remedy):
    """They name the section, end with status 2, and a schedule tries again."""
    failure = explain(RuntimeError(text), "CorpusGen")
    assert failure.error.startswith("RuntimeError: " + text[:20])
    assert (failure.where, failure.user) == ("beam", True)
    assert remedy in failure.remedy
    assert is_transient(failure)


def test_a_lost_database_is_a_failure_for_the_next_attempt():
    text = "Failed to establish connection with error: mysql_real_connect failed: errno: "
    failure = explain(RuntimeError(text))
    assert (failure.where, failure.user) == ("metadata.mysql", True)
    assert "metadata.mysql.host" in failure.remedy
    assert is_transient(failure)


def test_user_error_on_a_cluster_is_not_hidden_by_the_lost_host():
    text = "regard.core.errors.UserError: a.tsv:3: too few\nAdd some.\n\nNoRestart"
    assert explain(RuntimeError(text + "BackoffTimeStrategy")).error == "a.tsv:3: too few"
