from __future__ import annotations

import json
import re

import pytest

from components import events
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


def test_what_a_run_that_goes_on_compares_with_and_starts_from_is_needed(workspace):
    paths = workspace.pipeline("quickstart")
    models = workspace.registry / "quickstart", workspace.registry / "other"

    def needed():
        return [runs.needed_versions(workspace, model) for model in models]

    with lock.acquire(paths.lock) as held:
        run = runs.create(paths)
        held.describe(run.id)
        assert needed() == [{}, {}]  # it has only begun
        origin = {"time": 1.0, "kind": "origin", "parent": "4"}
        run.events.write_text(json.dumps(origin) + "\n")
        compared = f"run quickstart/{run.id} compares with it"
        assert needed() == [{4: compared}, {}]
        start = {"model": "other@2", "path": str(models[1] / "2"), "digest": "d"}
        run.events.write_text(json.dumps({**origin, "start": start}) + "\n")
        started = f"run quickstart/{run.id} starts from it"
        assert needed() == [{4: compared}, {2: started}]
        start["path"] = str(models[0] / "3")
        run.events.write_text(json.dumps({**origin, "start": start}) + "\n")
        assert needed() == [{3: started, 4: compared}, {}]
    assert needed() == [{}, {}]


def test_a_run_that_ends_while_it_is_looked_at_was_not_killed(workspace, monkeypatch):
    run = runs.create(workspace.pipeline("quickstart"))

    def ends(path):
        run.update(status=runs.SUCCEEDED)
        return {}

    monkeypatch.setattr(lock, "holder", ends)
    assert runs.status(run) == runs.SUCCEEDED


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


class Store:
    """Runs with ids of our own choosing."""

    def __init__(self, workspace):
        self.workspace = workspace

    def add(self, full_id, **fields):
        name, run_id = full_id.split("/")
        run = runs.Run(self.workspace.pipeline(name).runs / run_id)
        run.directory.mkdir(parents=True)
        run.update(id=run_id, name=name, **fields)
        return run

    def find(self, given):
        return runs.find(self.workspace, given).full_id


@pytest.fixture
def store(workspace):
    store = Store(workspace)
    cached, done = {"Pusher": {"state": "cached"}}, {"Pusher": {"state": "done"}}
    store.add("a/20260101-101010", pushed_version="1", nodes=done)
    store.add("a/20260101-101010-2", pushed_version="1", nodes=cached)
    store.add("a/20260202-101010", pushed_version="2", nodes=done)
    store.add("b/20260202-101010", status=runs.FAILED)
    store.add("b/20260303-101010")
    return store


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("20260303-101010", "b/20260303-101010"),
        ("202603", "b/20260303-101010"),
        ("20260101-101010", "a/20260101-101010"),  # whole, though another id begins with it
        ("a", "a/20260202-101010"),
        ("a/", "a/20260202-101010"),
        ("b/20260202", "b/20260202-101010"),
        ("a@1", "a/20260101-101010"),  # not the later one, which had it from the cache
        ("a@2", "a/20260202-101010"),
    ],
)
def test_a_run_is_found_by_what_a_user_gives(store, given, found):
    assert store.find(given) == found


def test_a_run_is_found_by_its_folder(store, monkeypatch):
    folder = store.workspace.pipeline("b").runs / "20260202-101010"
    assert store.find(str(folder)) == "b/20260202-101010"
    monkeypatch.chdir(folder.parent)
    assert store.find("20260202-101010/") == "b/20260202-101010"


def test_what_fits_several_runs_is_refused_with_their_full_ids(store):
    with pytest.raises(UserError, match="may be any of 2 runs") as told:
        store.find("20260202")
    assert "b/20260202-101010, a/20260202-101010" in told.value.remedy
    with pytest.raises(UserError, match="may be any of 3 runs"):
        store.find("a/2026")


@pytest.mark.parametrize(
    ("given", "hint", "remedy"),
    [
        ("20260303-101011", "did you mean '20260303-101010'", "`regard runs`"),
        ("a/20260909", "'a/20260909'", "newest runs: a/20260202-101010, a/20260101-101010-2"),
        ("a@7", "there is no run 'a@7'", "Pushed by runs here: a@1, a@2."),
        ("b@1", "there is no run 'b@1'", "No run of it pushed any."),
        ("", "there is no run ''", "one of a, b"),
        ("/", "there is no run '/'", "one of a, b"),
        ("~nobody-here x", "there is no run '~nobody-here x'", "one of a, b"),
    ],
)
def test_what_fits_no_run_is_refused_with_what_there_is(store, given, hint, remedy):
    with pytest.raises(UserError) as told:
        store.find(given)
    assert hint in told.value.message
    assert remedy in told.value.remedy


def test_nothing_is_found_where_nothing_has_run(workspace):
    with pytest.raises(UserError) as told:
        runs.find(workspace, "quickstart")
    assert "REGARD_HOME" in told.value.remedy


def test_a_version_knows_its_run_best(store):
    """Versions were deleted, so a number came twice: what the newer one says is right."""
    store.add("a/20260404-101010", pushed_version="1", nodes={"Pusher": {"state": "done"}})
    version = store.workspace.registry / "a" / "1"
    version.mkdir(parents=True)
    (version / "regard.json").write_text('{"run": "20260404-101010"}')
    assert store.find("a@1") == "a/20260404-101010"


def test_older_records_of_nodes_are_read(store):
    run = store.add("c/20260101-101010", nodes={"Trainer": "cached"})
    assert run.nodes() == {"Trainer": {"state": "cached"}}


def test_nodes_of_a_killed_run_are_known_from_its_events(store, monkeypatch):
    run = store.add("c/20260101-101010")
    assert run.nodes() == {}
    monkeypatch.setenv(events.VARIABLE, str(run.events))
    events.emit("node", node="CorpusGen", state="done", seconds=1.0, peak_bytes=7)
    events.emit("node", node="Trainer", state="running")
    assert run.nodes() == {
        "CorpusGen": {"state": "done", "seconds": 1.0, "peak_bytes": 7},
        "Trainer": {"state": "running"},
    }
