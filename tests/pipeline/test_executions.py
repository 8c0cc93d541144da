from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipeline import executions
from pipeline.workspace import Workspace
from tests.pipeline import pushing

_PUSHES = (("run-1", "first"), ("run-2", "second"), ("run-3", "second"), ("run-4", ""))


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """A pipeline whose third run found all in the cache, and whose fourth pushed no model."""
    monkeypatch.setattr(sys, "argv", ["regard"])
    paths = Workspace(tmp_path).pipeline("tiny")
    for run, identifier in _PUSHES:
        pushing.push(paths, run, identifier)
    return paths


def test_the_run_that_pushed_is_told_with_the_work_that_was_done(paths):
    found = executions.behind(paths.metadata, "second")
    assert found["run"] == "run-2"  # and not run-3, which pushed nothing
    pusher, corpus = found["nodes"]
    assert (pusher["node"], pusher["run"], pusher["cached"]) == ("Pusher", "run-2", False)
    assert (corpus["node"], corpus["run"], corpus["cached"]) == ("CorpusGen", "run-1", True)
    assert 0.0 < corpus["seconds"] < 60.0
    examples = next(output for output in corpus["outputs"] if output["key"] == "examples")
    assert pusher["inputs"] == [{"key": "examples", "artifact": examples["artifact"]}]
    assert Path(examples["uri"]).parent == paths.artifacts / "CorpusGen" / "examples"
    assert (examples["type"], examples["there"]) == ("Examples", True)
    assert examples["properties"]["span"] == 3
    (pushed,) = pusher["outputs"]
    assert pushed["properties"]["mlmd_uuid"] == "second"

    assert executions.behind(paths.metadata, "first")["run"] == "run-1"
    pushing.push(paths, "run-5", "first", {"rows": 1})  # which found it pushed already
    assert executions.behind(paths.metadata, "first")["run"] == "run-1"
    assert executions.behind(paths.metadata, "third") is None
    assert executions.behind(paths.metadata, "") is None
