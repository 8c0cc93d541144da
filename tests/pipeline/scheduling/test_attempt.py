"""What came of an attempt, as its run recorded it."""

from __future__ import annotations

import pytest

from pipeline import runs
from pipeline.scheduling import attempt, state
from tests.pipeline.scheduling import fake_run
from tests.pipeline.scheduling.desk import NIGHTLY, Desk


@pytest.fixture
def desk(tmp_path, monkeypatch):
    made = Desk(tmp_path, monkeypatch)
    made.configure(NIGHTLY)
    return made


def test_an_attempt_whose_process_was_never_known_is_found_by_its_time(desk):
    started = attempt.now()
    assert fake_run.main(desk.folder / "tiny.yaml") == 0
    tried = {"started": started, "pid": None}
    assert attempt.ending(desk.paths, tried).status == state.PUSHED
    later = {"started": attempt.now() + 1, "pid": None}
    assert attempt.ending(desk.paths, later).status == runs.KILLED
