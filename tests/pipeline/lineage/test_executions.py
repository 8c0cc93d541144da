"""The ids of ML Metadata behind a run, and the code that looks them up in the documentation."""

import re
import sqlite3
from pathlib import Path

import pytest

from regard.components.common.run_record import RunRecord
from regard.core import events
from regard.pipeline.lineage.executions import trace_executions
from regard.pipeline.runs import store
from regard.pipeline.workspace import Workspace
from tests.pipeline.pushing import push

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "metadata.md"


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Workspace(tmp_path / "workspace").pipeline("quickstart")


def add_run(paths, identifier: str) -> store.Run:
    """Execute a pipeline of two nodes, and write the events of its nodes."""
    run = store.create(paths, RunRecord(context=f"quickstart.{identifier}"))
    events_file = run.events
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(events.VARIABLE, str(events_file))
        push(paths, run.id, identifier)
    return run


def test_nodes_have_the_ids_of_the_run_that_executed_them(paths):
    first, second = add_run(paths, "a"), add_run(paths, "b")
    missing = []
    nodes, contexts = trace_executions(second, missing)
    assert missing == []
    with sqlite3.connect(paths.metadata) as database:
        ids = dict(database.execute("SELECT name, id FROM Context"))
    expected = {run.id: ids[run.record().context] for run in (first, second)}
    assert contexts == expected
    assert [(node.node, node.execution, node.context) for node in nodes] == [
        ("Pusher", 4, expected[second.id]),
        ("CorpusGen", 1, expected[first.id]),  # execution 3 found it in the cache
    ]


def test_without_the_database_nodes_have_their_executions_only(paths):
    run = add_run(paths, "a")
    paths.metadata.write_bytes(b"damaged" * 1000)
    missing = []
    nodes, contexts = trace_executions(run, missing)
    assert str(paths.metadata) in missing[0]
    assert contexts == {}
    assert [(node.execution, node.context) for node in nodes] == [(2, None), (1, None)]
    paths.metadata.unlink()
    assert trace_executions(run, []) == (nodes, {})
    assert not paths.metadata.exists()


def test_the_code_of_the_documentation_finds_a_run_and_its_outputs(paths):
    add_run(paths, "a")
    (code,) = re.findall("```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    namespace = {}
    exec(compile(code, PAGE.name, "exec"), namespace)
    assert {execution.id for execution in namespace["executions"]} == {1, 2}
    (output,) = namespace["outputs"]
    assert output.uri == str(paths.artifacts / "Pusher" / "pushed_model" / "2")
