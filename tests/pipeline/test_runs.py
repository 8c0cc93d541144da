from __future__ import annotations

import re

import pytest

from components.errors import UserError
from pipeline import lock, runs
from pipeline.workspace import Workspace


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


def test_new_run_has_a_folder_named_by_time_and_a_record(workspace):
    run = runs.create(workspace.pipeline("quickstart"), runner="local")
    assert re.fullmatch(r"\d{8}-\d{6}", run.id)
    record = run.record()
    assert record["name"] == "quickstart"
    assert record["status"] == runs.RUNNING
    assert record["runner"] == "local"


def test_runs_of_the_same_second_are_different(workspace):
    paths = workspace.pipeline("quickstart")
    assert len({runs.create(paths).id for _ in range(3)}) == 3


def test_update_keeps_the_other_fields(workspace):
    run = runs.create(workspace.pipeline("quickstart"))
    run.update(status=runs.SUCCEEDED, pushed_version="2")
    assert run.record()["name"] == "quickstart"
    assert run.record()["pushed_version"] == "2"


def test_listing_is_newest_first_over_all_pipelines(workspace):
    for name, started in (("a", 1.0), ("b", 3.0), ("a", 2.0)):
        runs.create(workspace.pipeline(name)).update(started=started, status=runs.SUCCEEDED)
    assert [r["name"] for r in runs.listing(workspace)] == ["b", "a", "a"]
    assert [r["started"] for r in runs.listing(workspace, "a")] == [2.0, 1.0]


def test_running_means_that_the_lock_is_held(workspace):
    paths = workspace.pipeline("quickstart")
    with lock.acquire(paths.lock) as held:
        run = runs.create(paths)
        held.describe(run.id)
        assert runs.listing(workspace)[0]["status"] == runs.RUNNING
    assert runs.listing(workspace)[0]["status"] == runs.KILLED


def test_broken_record_does_not_break_the_listing(workspace):
    run = runs.create(workspace.pipeline("quickstart"))
    run.record_path.write_text("{")
    assert runs.listing(workspace)[0]["id"] == run.id


def test_place_that_cannot_be_written_is_a_user_error(workspace, tmp_path):
    (tmp_path / "pipelines").touch()
    with pytest.raises(UserError, match="cannot be recorded"):
        runs.create(workspace.pipeline("quickstart"))


def test_empty_workspace_has_no_runs(workspace):
    assert runs.listing(workspace) == []
