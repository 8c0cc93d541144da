from __future__ import annotations

import sys
from pathlib import Path

import pytest

from regard.pipeline.lineage.executions import InputArtifact, trace_executions
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
    result = trace_executions(paths.metadata, "second")
    assert result.run == "run-2"  # and not run-3, which pushed nothing
    pusher, corpus = result.nodes
    assert (pusher.node, pusher.run, pusher.cached) == ("Pusher", "run-2", False)
    assert (corpus.node, corpus.run, corpus.cached) == ("CorpusGen", "run-1", True)
    assert 0.0 < corpus.seconds < 60.0
    examples = next(output for output in corpus.outputs if output.key == "examples")
    assert pusher.inputs == [InputArtifact("examples", examples.artifact)]
    assert Path(examples.uri).parent == paths.artifacts / "CorpusGen" / "examples"
    assert (examples.type, examples.exists) == ("Examples", True)
    assert examples.properties["span"] == 3
    (pushed,) = pusher.outputs
    assert pushed.properties["mlmd_uuid"] == "second"

    assert trace_executions(paths.metadata, "first").run == "run-1"
    pushing.push(paths, "run-5", "first", {"rows": 1})  # the model was pushed before
    assert trace_executions(paths.metadata, "first").run == "run-1"
    assert trace_executions(paths.metadata, "third") is None
    assert trace_executions(paths.metadata, "") is None
