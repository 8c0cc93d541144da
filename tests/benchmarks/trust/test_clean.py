"""A schedule that cleans after each run keeps the size of its newest runs."""

import pytest

from benchmarks.trust import clean


@pytest.mark.slow
def test_the_disk_does_not_grow(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(clean.attempts, "start_run", clean.start_run)
    monkeypatch.setattr(clean.daemons, "_SIGNAL_POLL_SECONDS", 0.0)
    figures = clean.keep_schedule(tmp_path, 8, ", keep: 2, keep_versions: 2")
    assert figures["bytes"][-1] < 1.1 * figures["bytes"][1]
    assert len(figures["check"]) == 8
