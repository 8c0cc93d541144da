from __future__ import annotations

from pathlib import Path

from pipeline.workspace import Workspace


def test_default_is_a_folder_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Workspace.from_environment({}).home == tmp_path / "workspace"
    assert Workspace.from_environment({"REGARD_HOME": ""}).home == tmp_path / "workspace"
    assert Workspace.from_environment({"REGARD_HOME": "x"}).home == tmp_path / "x"


def test_paths():
    workspace = Workspace(Path("/w"))
    paths = workspace.pipeline("quickstart")
    assert workspace.registry == Path("/w/registry")
    assert workspace.data("multi30k") == Path("/w/data/multi30k")
    assert paths.metadata == Path("/w/pipelines/quickstart/metadata.sqlite")
    assert paths.artifacts == Path("/w/pipelines/quickstart/artifacts")
    assert paths.checkpoints == Path("/w/pipelines/quickstart/checkpoints")
    assert paths.runs.parent == paths.lock.parent == paths.root


def test_names_are_the_folders(tmp_path):
    assert Workspace(tmp_path).pipeline_names() == []
    for name in ("b", "a"):
        (tmp_path / "pipelines" / name).mkdir(parents=True)
    (tmp_path / "pipelines" / "file").touch()
    assert Workspace(tmp_path).pipeline_names() == ["a", "b"]


def test_data_lies_in_the_workspace_or_where_the_variable_says(tmp_path):
    workspace = Workspace(tmp_path)
    assert workspace.data_root({}) == tmp_path / "data"
    assert workspace.data_root({"REGARD_DATA": ""}) == tmp_path / "data"
    assert workspace.data_root({"REGARD_DATA": "/shared"}) == Path("/shared")
