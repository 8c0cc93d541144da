import json
import re
import shutil

import pytest

from regard.components.common import run_progress, run_record
from regard.components.common.run_record import RunRecord
from regard.core import events, locks
from regard.core.errors import UserError
from regard.core.files import temporary_name
from regard.pipeline.runs import store
from regard.pipeline.workspace import Workspace, lock_pipeline


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


def test_new_run_has_a_folder_named_by_time_and_a_record(workspace):
    run = store.create(workspace.pipeline("quickstart"), RunRecord(runner="local"))
    assert re.fullmatch(r"\d{8}-\d{6}", run.id)
    record = run.record()
    assert record.name == "quickstart"
    assert record.status == run_record.RUNNING
    assert record.runner == "local"
    run.update(RunRecord(status=run_record.SUCCEEDED, pushed_version="2"))
    changes = {"status": run_record.SUCCEEDED, "pushed_version": "2"}
    assert run.record() == record.model_copy(update=changes)


def test_runs_of_the_same_second_are_different(workspace):
    paths = workspace.pipeline("quickstart")
    runs = [store.create(paths) for _ in range(11)]
    assert len({run.id for run in runs}) == 11
    assert store.runs_of(paths) == runs  # oldest first


def test_a_run_sorts_after_those_of_its_second_when_the_first_is_removed(workspace, monkeypatch):
    monkeypatch.setattr(store.time, "strftime", lambda *_: "20261129-013450")
    paths = workspace.pipeline("quickstart")
    first, second = store.create(paths), store.create(paths)
    shutil.rmtree(first.directory)
    third = store.create(paths)
    assert store.runs_of(paths) == [second, third]


def test_temporary_files_of_killed_runs_are_removed(workspace):
    paths = workspace.pipeline("quickstart")
    killed = store.create(paths)
    leftovers = [
        paths.root / temporary_name("fingerprints.json"),
        paths.root / f"{temporary_name('metadata.sqlite')}-journal",
        killed.directory / temporary_name("run.json"),
    ]
    others = [paths.root / ".swap.tmp", killed.directory / ".draft.0123abcd.tmp"]
    for path in (*leftovers, *others):
        path.touch()
    store.create(paths)
    assert all(path.exists() for path in others)
    assert not any(path.exists() for path in leftovers)
    assert store.runs_of(paths)[0] == killed


def test_listing_is_newest_first_over_all_pipelines(workspace):
    for name, started in (("a", 1.0), ("b", 3.0), ("a", 2.0)):
        store.create(workspace.pipeline(name)).update(
            RunRecord(started=started, status=run_record.SUCCEEDED)
        )
    assert [r.name for r in store.listing(workspace)] == ["b", "a", "a"]
    assert [r.started for r in store.listing(workspace, "a")] == [2.0, 1.0]


def test_run_without_a_lock_was_killed(workspace):
    paths = workspace.pipeline("quickstart")
    with lock_pipeline(paths.lock) as lock:
        run = store.create(paths)
        lock.describe(run.id)
        assert store.listing(workspace)[0].status == run_record.RUNNING
    assert store.listing(workspace)[0].status == run_record.KILLED


def test_versions_that_a_running_pipeline_uses_are_needed(workspace):
    paths = workspace.pipeline("quickstart")
    models = workspace.registry / "quickstart", workspace.registry / "other"

    def needed():
        return [store.needed_versions(workspace, model) for model in models]

    with lock_pipeline(paths.lock) as lock:
        run = store.create(paths)
        lock.describe(run.id)
        assert needed() == [{}, {}]  # it has only begun
        origin = {"time": 1.0, "kind": "origin", "parent": "4"}
        run.events.write_text(json.dumps(origin) + "\n")
        compared = f"run quickstart/{run.id} compares with it"
        assert needed() == [{4: compared}, {}]
        start = {"model": "other@2", "path": str(models[1] / "2"), "digest": "d"}
        run.events.write_text(json.dumps({**origin, "start": start}) + "\n")
        started = f"run quickstart/{run.id} uses it"
        assert needed() == [{4: compared}, {2: started}]
        start["path"] = str(models[0] / "3")
        run.events.write_text(json.dumps({**origin, "start": start}) + "\n")
        assert needed() == [{3: started, 4: compared}, {}]
        members = [{**start, "path": str(models[1] / version)} for version in "56"]
        run.events.write_text(json.dumps({**origin, "start": start, "ensemble": members}) + "\n")
        assert needed() == [{3: started, 4: compared}, {5: started, 6: started}]
    assert needed() == [{}, {}]


def test_versions_are_needed_by_a_run_that_began_after_the_clock_was_set_back(workspace):
    paths = workspace.pipeline("quickstart")
    newer = store.create(paths)
    newer.directory.rename(paths.runs / "29991231-235959")
    with lock_pipeline(paths.lock) as lock:
        run = store.create(paths)
        lock.describe(run.id)
        run.events.write_text(json.dumps({"time": 1.0, "kind": "origin", "parent": "4"}) + "\n")
        needed = store.needed_versions(workspace, workspace.registry / "quickstart")
    assert list(needed) == [4]


def test_run_that_ends_during_the_check_was_not_killed(workspace, monkeypatch):
    run = store.create(workspace.pipeline("quickstart"))

    def ends(path):
        run.update(RunRecord(status=run_record.SUCCEEDED))
        return {}

    monkeypatch.setattr(locks, "read_holder", ends)
    assert store.status(run) == run_record.SUCCEEDED


def test_broken_record_does_not_break_the_listing(workspace):
    run = store.create(workspace.pipeline("quickstart"))
    (run.directory / store.RECORD).write_text("{")
    assert store.listing(workspace)[0].id == run.id


def test_unwritable_workspace_is_a_user_error(workspace, tmp_path):
    (tmp_path / "pipelines").touch()
    with pytest.raises(UserError, match="Cannot create the record"):
        store.create(workspace.pipeline("quickstart"))


def test_empty_workspace_has_no_runs(workspace):
    assert store.listing(workspace) == []


class Store:
    """Runs with fixed ids."""

    def __init__(self, workspace):
        self.workspace = workspace

    def add(self, full_id, **fields):
        name, run_id = full_id.split("/")
        run = store.Run(self.workspace.pipeline(name).runs / run_id)
        run.directory.mkdir(parents=True)
        run.update(RunRecord(id=run_id, name=name, **fields))
        return run

    def find(self, text):
        return store.find(self.workspace, text).full_id


@pytest.fixture
def runs(workspace):
    runs = Store(workspace)
    runs.add("a/20260101-101010", pushed_version="1")
    runs.add("a/20260101-101010-2", pushed_version="1")
    runs.add("a/20260202-101010", pushed_version="2")
    runs.add("b/20260202-101010", status=run_record.FAILED)
    runs.add("b/20260303-101010")
    return runs


@pytest.mark.parametrize(
    ("text", "full_id"),
    [
        ("20260303-101010", "b/20260303-101010"),
        ("20260101-101010", "a/20260101-101010"),
        ("a", "a/20260202-101010"),
        ("b/20260202-101010", "b/20260202-101010"),
        ("a@1", "a/20260101-101010"),  # not the later one, which had it from the cache
        ("a@2", "a/20260202-101010"),
    ],
)
def test_find_run(runs, text, full_id):
    assert runs.find(text) == full_id


def test_ambiguous_run_lists_the_candidates(runs):
    with pytest.raises(UserError, match="matches 2 runs") as error:
        runs.find("20260202-101010")
    assert "a/20260202-101010, b/20260202-101010" in error.value.remedy


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("20260303-101011", "Did you mean 20260303-101010?"),
        ("a/20260909", "Unknown run 'a/20260909'"),
        ("a@7", "Unknown run 'a@7'"),
        ("b@1", "Unknown run 'b@1'"),
        ("", "Unknown run ''"),
        ("/", "Unknown run '/'"),
        ("~nobody-here x", "Unknown run '~nobody-here x'"),
    ],
)
def test_unknown_run(runs, text, hint):
    with pytest.raises(UserError) as error:
        runs.find(text)
    assert hint in str(error.value)
    assert "`regard runs`" in error.value.remedy


def test_record_of_the_version_names_its_run(runs):
    """A version number may be used again after versions were deleted."""
    runs.add("a/20260404-101010", pushed_version="1")
    version = runs.workspace.registry / "a" / "1"
    version.mkdir(parents=True)
    (version / "regard.json").write_text('{"run": "20260404-101010"}')
    assert runs.find("a@1") == "a/20260404-101010"


def test_nodes_of_a_killed_run_come_from_its_events(runs, monkeypatch):
    run = runs.add("c/20260101-101010")
    assert run.nodes() == {}
    monkeypatch.setenv(events.VARIABLE, str(run.events))
    events.emit("node", node="CorpusGen", state="done", seconds=1.0, peak_bytes=7)
    events.emit("node", node="Trainer", state="running")
    assert {name: node.facts() for name, node in run.nodes().items()} == {
        "CorpusGen": {"state": "done", "seconds": 1.0, "peak_bytes": 7},
        "Trainer": {"state": "running"},
    }


def test_the_runs_behind_cached_nodes_are_read_once(workspace, monkeypatch):
    def add(**states):
        run = store.create(workspace.pipeline("tiny"))
        for name, state in states.items():
            uri = {"out": "/a/old"} if (name, state) == ("Gone", "done") else {"out": "/a"}
            events.write(run.events, "node", node=name, state=state, outputs=uri)
        return run

    first = add(A="done", B="done", Gone="done")
    second = add(A="cached", B="done")
    last = add(A="cached", B="cached", C="done", Gone="cached")
    nodes, reads, read = run_progress.read(last.events).nodes, [], run_progress.read
    monkeypatch.setattr(run_progress, "read", lambda path, _: reads.append(path) or read(path))
    originals = store.original_nodes(last, nodes)
    runs = {name: run.id for name, (run, _) in originals.items()}
    assert runs == {"A": first.id, "B": second.id, "C": last.id}
    assert originals["A"][1].state == run_record.DONE
    assert sorted(reads) == sorted(run.events for run in (first, second, last))
