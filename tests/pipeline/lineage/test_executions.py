import sys
from pathlib import Path

import pytest

from regard.pipeline.lineage.executions import trace_executions
from regard.pipeline.workspace import Workspace
from tests.pipeline import pushing

_PUSHES = (("run-1", "first"), ("run-2", "second"), ("run-3", "second"), ("run-4", ""))


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """A pipeline whose third run was cached and whose fourth pushed no model."""
    monkeypatch.setattr(sys, "argv", ["regard"])
    paths = Workspace(tmp_path).pipeline("tiny")
    for run, identifier in _PUSHES:
        pushing.push(paths, run, identifier)
    return paths


def test_the_pushing_run_and_the_original_executions_are_found(paths):
    run, (pusher, corpus) = trace_executions(paths.metadata, "second")
    assert run == "run-2"  # and not run-3, which pushed nothing
    assert (pusher.node, pusher.run, pusher.cached) == ("Pusher", "run-2", False)
    assert (corpus.node, corpus.run, corpus.cached) == ("CorpusGen", "run-1", True)
    assert 0.0 < corpus.seconds < 60.0
    examples = next(output for output in corpus.outputs if output.key == "examples")
    assert Path(examples.uri).parent == paths.artifacts / "CorpusGen" / "examples"
    assert examples.exists
    assert [output.key for output in pusher.outputs] == ["pushed_model"]

    assert trace_executions(paths.metadata, "first")[0] == "run-1"
    pushing.push(paths, "run-5", "first", {"rows": 1})  # the model was pushed before
    assert trace_executions(paths.metadata, "first")[0] == "run-1"
    assert trace_executions(paths.metadata, "third") is None
    assert trace_executions(paths.metadata, "") is None
