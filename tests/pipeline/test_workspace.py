import os
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.pipeline.workspace import Workspace, lock_pipeline


def test_default_is_a_folder_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Workspace.from_environment({}).home == tmp_path / "workspace"
    assert Workspace.from_environment({"REGARD_HOME": ""}).home == tmp_path / "workspace"
    assert Workspace.from_environment({"REGARD_HOME": "x"}).home == tmp_path / "x"


def test_the_workspace_is_no_uri(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for value in ("gs://bucket/home", "s3:/bucket"):
        with pytest.raises(UserError, match="is a URI") as caught:
            Workspace.from_environment({"REGARD_HOME": value})
        assert caught.value.where == "REGARD_HOME"
    assert [*tmp_path.iterdir()] == []


def test_names_are_the_folders(tmp_path):
    assert Workspace(tmp_path).pipeline_names() == []
    for name in ("b", "a"):
        (tmp_path / "pipelines" / name).mkdir(parents=True)
    (tmp_path / "pipelines" / "file").touch()
    assert Workspace(tmp_path).pipeline_names() == ["a", "b"]


def test_data_root_is_in_the_workspace_or_set_by_the_variable(tmp_path, monkeypatch):
    for value, expected in (("", tmp_path / "data"), ("/shared", Path("/shared"))):
        monkeypatch.setenv("REGARD_DATA", value)
        assert Workspace(tmp_path).data_root() == expected


def test_second_run_is_refused_with_run_and_process(tmp_path):
    path = tmp_path / "quickstart" / "lock"
    with lock_pipeline(path) as lock:
        lock.describe("20261120-101643")
        with pytest.raises(UserError) as refusal:
            lock_pipeline(path)
    assert f"quickstart is in use (run 20261120-101643, process {os.getpid()})" in str(
        refusal.value
    )
    assert "--wait" in refusal.value.remedy


def test_waiting_run_reports_the_holder_and_gets_the_lock(tmp_path):
    holders = []
    first = lock_pipeline(tmp_path / "lock")
    first.describe("20261120-101643")

    def on_wait(holder):
        holders.append(holder["run"])
        first.release()

    lock_pipeline(tmp_path / "lock", wait=True, on_wait=on_wait).release()
    assert holders == ["20261120-101643"]
