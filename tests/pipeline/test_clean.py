"""Which runs, outputs and rows of ML Metadata a cleaning removes, and what still works then."""

import errno
import json
import multiprocessing
import os
import shutil
import signal
import sqlite3

import pytest
from typer.testing import CliRunner

from regard.components.common.run_record import SUCCEEDED, RunRecord
from regard.components.registry.rollback import rollback
from regard.components.registry.store import Registry
from regard.core import owned_folders
from regard.core.errors import UserError
from regard.pipeline.clean import clean
from regard.pipeline.cli.app import app
from regard.pipeline.runs import store
from regard.pipeline.runs.store import Run
from regard.pipeline.scheduling.state import ScheduleState, TrainedData, write_state
from regard.pipeline.workspace import Workspace, lock_pipeline, output_folders
from tests.components.registry.models import push_model
from tests.marks import slow_except
from tests.pipeline.pushing import push, pushing_nodes

NEWEST = "among the newest 1"


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    return Workspace(tmp_path / "home")


@pytest.fixture
def paths(workspace):
    return workspace.pipeline("m")


def add_run(paths, number: int, corpus: dict | None = None, **record) -> Run:
    """Execute a pipeline of two nodes as a run with a record, a configuration and a log."""
    run = record_run(paths, number, **record)
    push(paths, run.id, f"model-{number}", corpus)
    return run


def record_run(paths, number: int, **record) -> Run:
    run = Run(paths.runs / f"2026112{number}-000000")
    run.directory.mkdir(parents=True)
    run.update(RunRecord(id=run.id, name="m", status=SUCCEEDED, started=float(number), **record))
    run.log.write_text("log\n" * 100)
    return run


def publish(run: Run, weights: int) -> None:
    """Publish a version by a run, as the Pusher does."""
    root = run.workspace.registry
    version, _ = push_model(root, weights, run=run.id)
    destination = {"pushed_destination": str(root / "m" / str(version))}
    event = {"time": 0.0, "kind": "node", "node": "Pusher", "state": "done"}
    run.events.write_text(json.dumps({**event, "properties": {"pushed_model": destination}}) + "\n")
    run.update(RunRecord(pushed_version=str(version)))


def reasons(result) -> dict[int, str | None]:
    return {int(run[7]): reason for run, reason in result.runs.items()}


def rows(paths) -> dict[str, int]:
    with sqlite3.connect(paths.metadata) as database:
        names = "Artifact", "Execution", "Event", "EventPath", "Context", "Attribution"
        count = "select count(*) from {}"
        return {name: database.execute(count.format(name)).fetchone()[0] for name in names}


def outputs(paths) -> list[str]:
    folders = [path for path in output_folders(paths.artifacts) if ".system" not in path.parts]
    return sorted("/".join(path.parts[-3:]) for path in folders)


def test_old_runs_are_removed_with_their_outputs_and_rows(workspace, paths):
    first = add_run(paths, 1, {"rows": 1})
    only_first = rows(paths)
    add_run(paths, 2, {"rows": 2})
    newest = add_run(paths, 3, {"rows": 3})
    size = paths.metadata.stat().st_size
    result = clean(workspace, "m", 1)
    assert reasons(result) == {1: None, 2: None, 3: NEWEST}
    assert result.bytes > 800
    assert [run.id for run in store.runs_of(paths)] == [newest.id]
    assert not first.directory.exists()
    assert outputs(paths) == [
        "CorpusGen/examples/5",
        "CorpusGen/findings/5",
        "Pusher/pushed_model/6",
    ]
    assert rows(paths) == only_first
    assert paths.metadata.stat().st_size <= size
    run_id, nodes = pushing_nodes(paths, "model-3")
    assert run_id == newest.id
    assert all(folder.exists() for _, _, folders in nodes for folder in folders)
    assert pushing_nodes(paths, "model-1") is None
    assert clean(workspace, "m", 1).bytes == 0


def test_what_a_kept_run_took_from_the_cache_is_kept(workspace, paths):
    old = add_run(paths, 1)
    add_run(paths, 2)  # the same corpus
    assert reasons(clean(workspace, "m", 1)) == {1: None, 2: NEWEST}
    assert outputs(paths) == [
        "CorpusGen/examples/1",
        "CorpusGen/findings/1",
        "Pusher/pushed_model/4",
    ]
    _, nodes = pushing_nodes(paths, "model-2")
    assert [(node, run) for node, run, _ in nodes] == [
        ("Pusher", "20261122-000000"),
        ("CorpusGen", old.id),
    ]
    push(paths, "again", "model-2")  # everything is found
    assert outputs(paths) == [
        "CorpusGen/examples/1",
        "CorpusGen/findings/1",
        "Pusher/pushed_model/4",
    ]
    push(paths, "another", "model-1")  # its result was removed
    assert "Pusher/pushed_model/8" in outputs(paths)


def test_runs_that_something_needs_are_kept(workspace, paths):
    runs = {number: record_run(paths, number) for number in range(1, 8)}
    for number in (1, 2):
        publish(runs[number], number)
    publish(runs[3], 3)
    rollback(Registry(workspace.registry), "m", 1)  # version 4 has the model of run 1
    shutil.rmtree(workspace.registry / "m" / "1")
    shutil.rmtree(workspace.registry / "m" / "3")
    (runs[4].directory / "report.html").write_text("page")
    trained = TrainedData(key="k", groups=[], spans={}, run=runs[5].id)
    paths.schedule.mkdir()
    write_state(paths.schedule, ScheduleState(trained=trained))
    assert reasons(clean(workspace, "m", 1)) == {
        1: "published m@4",
        2: "published m@2",
        3: None,
        4: "has a report",
        5: "the schedule compares with it",
        6: None,
        7: NEWEST,
    }


def test_the_runs_of_a_registry_that_is_not_mounted_are_kept(workspace, paths, tmp_path):
    runs = [record_run(paths, number) for number in (1, 2)]
    publish(runs[0], 1)
    workspace.registry.rename(tmp_path / "elsewhere")
    reason = f"published to {workspace.registry}, which does not exist"
    assert reasons(clean(workspace, "m", 1)) == {1: reason, 2: NEWEST}


def test_a_registry_elsewhere_is_known_from_the_runs(workspace, paths, tmp_path):
    runs = [record_run(paths, number) for number in (1, 2)]
    publish(runs[0], 1)
    other = tmp_path / "shared-registry"
    workspace.registry.rename(other)
    text = runs[0].events.read_text().replace(str(workspace.registry), str(other))
    runs[0].events.write_text(text)
    assert reasons(clean(workspace, "m", 1)) == {1: "published m@1", 2: NEWEST}


def test_a_dry_run_removes_nothing(workspace, paths):
    for number in (1, 2):
        add_run(paths, number, {"rows": number})
    before = outputs(paths), rows(paths)
    with lock_pipeline(paths.lock):  # also during a run
        expected = clean(workspace, "m", 1, dry_run=True)
    assert (outputs(paths), rows(paths)) == before
    assert clean(workspace, "m", 1).runs == expected.runs


def test_a_pipeline_in_use_is_not_cleaned(workspace, paths):
    for number in (1, 2):
        record_run(paths, number)
    with lock_pipeline(paths.lock) as lock:
        lock.describe("20261122-000000")
        with pytest.raises(UserError, match=r"m is in use \(run 20261122-000000, process"):
            clean(workspace, "m", 1)
    assert len(store.runs_of(paths)) == 2


def test_without_metadata_no_output_is_removed(workspace, paths):
    add_run(paths, 1)
    paths.metadata.unlink()
    shutil.rmtree(paths.runs)
    clean(workspace, "m", 1)
    assert len(outputs(paths)) == 3


def test_damaged_metadata_removes_nothing(workspace, paths):
    add_run(paths, 1)
    add_run(paths, 2)
    paths.metadata.write_bytes(b"damaged" * 1000)
    for dry_run in (True, False):
        with pytest.raises(UserError) as caught:
            clean(workspace, "m", 1, dry_run)
        assert caught.value.where == str(paths.metadata)
    assert len(outputs(paths)) == 4


def kill_at(point: int, workspace) -> None:
    """Clean, and kill this process at the n-th change of the disk."""
    count = 0

    def counting(real):
        def call(*arguments, **options):
            nonlocal count
            count += 1
            if count == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    for name in ("rename", "rmdir", "unlink"):
        setattr(os, name, counting(getattr(os, name)))
    sqlite3.connect = counting(sqlite3.connect)
    clean(workspace, "m", 1)


@pytest.mark.parametrize("step", slow_except([0], range(3)))
def test_a_killed_cleaning_is_continued(workspace, paths, tmp_path, step):
    add_run(paths, 1)
    add_run(paths, 2, {"rows": 2})
    newest = add_run(paths, 3)  # with the outputs of the first run
    shutil.copytree(workspace.home, tmp_path / "before")
    clean(workspace, "m", 1)
    expected = outputs(paths), rows(paths)
    context = multiprocessing.get_context("fork")
    for point in range(1 + step, 200, 3):
        shutil.rmtree(workspace.home)
        shutil.copytree(tmp_path / "before", workspace.home)
        process = context.Process(target=kill_at, args=(point, workspace))
        process.start()
        process.join(60)
        _, nodes = pushing_nodes(paths, "model-3")
        assert all(folder.exists() for _, _, folders in nodes for folder in folders)
        clean(workspace, "m", 1)
        assert (outputs(paths), rows(paths)) == expected
        assert [path.name for path in paths.runs.iterdir()] == [newest.id]
        assert list(paths.artifacts.rglob("*.removed")) == []
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert point > 10


def test_a_folder_of_a_run_that_never_started_is_removed(workspace, paths):
    record_run(paths, 1)
    (paths.runs / "20261121-000001").mkdir()
    clean(workspace, "m", 1)
    assert [path.name for path in paths.runs.iterdir()] == ["20261121-000000"]


def test_a_full_disk_is_cleaned(workspace, paths, monkeypatch):
    for number in (1, 2):
        record_run(paths, number)

    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail)
    assert reasons(clean(workspace, "m", 1)) == {1: None, 2: NEWEST}


def test_links_stay(workspace, paths, tmp_path):
    for number in (1, 2):
        add_run(paths, number, {"rows": number})
    elsewhere = (paths.runs / "20261121-000000").rename(tmp_path / "elsewhere")
    (paths.runs / "20261121-000000").symlink_to(elsewhere)
    output = (paths.artifacts / "CorpusGen/examples/1").rename(tmp_path / "examples")
    (paths.artifacts / "CorpusGen/examples/1").symlink_to(output)
    clean(workspace, "m", 1)
    assert (elsewhere / "run.json").is_file()
    assert output.is_dir()


def test_what_regard_did_not_create_stays(workspace, paths, tmp_path):
    for number in (1, 2):
        add_run(paths, number, {"rows": number})
    shutil.copytree(paths.runs / "20261121-000000", paths.runs / "20261121-backup")
    mine = [
        paths.runs / "20261121-000001" / "notes",
        paths.artifacts / "photos" / "2024" / "12" / "notes",
        paths.artifacts / "CorpusGen" / "examples" / "2024" / "notes",
        tmp_path / "elsewhere" / "examples" / "1" / "notes",
    ]
    for path in mine:
        path.mkdir(parents=True)
    (paths.artifacts / "linked").symlink_to(tmp_path / "elsewhere")
    clean(workspace, "m", 1)
    assert all(path.exists() for path in mine)
    assert sorted(path.name for path in paths.runs.iterdir()) == [
        *("20261121-000001", "20261121-backup", "20261122-000000")
    ]
    assert "CorpusGen/examples/1" not in outputs(paths)


def test_a_folder_whose_number_an_execution_may_get_is_renamed(workspace, paths, tmp_path):
    add_run(paths, 1)
    mine = paths.artifacts / "CorpusGen" / "examples"
    (mine / "3" / "notes").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (mine / "4").symlink_to(tmp_path / "elsewhere")
    add_run(paths, 2, {"rows": 2})  # its executions are 3 and 4
    (renamed,) = mine.glob("unused-3-*")
    assert [path.name for path in renamed.iterdir()] == ["notes"]
    assert not (mine / "3" / "notes").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_in_a_folder_of_regard_outputs_that_nobody_knows_are_removed(workspace, paths):
    """A pipeline root with the mark contains nothing else; the metadata may be those of a copy."""
    owned_folders.create(paths.artifacts, owned_folders.ARTIFACTS)
    add_run(paths, 1)
    before = outputs(paths)
    (paths.artifacts / "CorpusGen" / "examples" / "99").mkdir()
    clean(workspace, "m", 1)
    assert outputs(paths) == before


def regard(*arguments: str):
    return CliRunner().invoke(app, ["clean", *arguments], catch_exceptions=False)


def test_the_command_lists_what_it_removes(workspace, paths):
    for number in (1, 2):
        record_run(paths, number)
    record_run(workspace.pipeline("n"), 1)
    with lock_pipeline(workspace.pipeline("n").lock):
        assert regard("--keep", "1", "--dry-run").stdout.splitlines() == [
            "m/20261121-000000  would be removed",
            "m/20261122-000000  kept: among the newest 1",
            "m: 1 run (488 B) would be removed.",
            "n/20261121-000000  kept: among the newest 1",
            "n: 0 runs (0 B) would be removed.",
        ]
        result = regard("--keep", "1", "--json")
        assert "note: n is skipped: The pipeline n is in use." in result.stderr
    printed = json.loads(result.stdout)
    assert printed["pipelines"] == [
        {"name": "m", "runs": {"20261121-000000": None, "20261122-000000": NEWEST}, "bytes": 488}
    ]


def test_an_unknown_pipeline_is_an_error(workspace, paths):
    record_run(paths, 1)
    with pytest.raises(UserError, match="Unknown pipeline 'q'"):
        regard("q")


def test_folders_of_the_user_and_published_runs_without_a_record_stay(workspace, paths):
    published = add_run(paths, 1)
    publish(published, 1)
    for number in (2, 3):
        add_run(paths, number)
    (published.directory / store.RECORD).unlink()
    (paths.runs / "my-notes").mkdir()
    (paths.runs / "20250101-000000").mkdir()  # killed before its record was written
    expected = clean(workspace, "m", 1, dry_run=True).runs
    result = clean(workspace, "m", 1)
    assert result.runs == expected
    assert result.runs["20250101-000000"] is None
    assert "my-notes" not in result.runs
    left = {folder.name for folder in paths.runs.iterdir()}
    assert {"my-notes", published.id} < left
    assert "20250101-000000" not in left


def test_a_folder_that_cannot_be_removed_does_not_keep_the_others(workspace, paths, monkeypatch):
    first, second = add_run(paths, 1, {"rows": 1}), add_run(paths, 2, {"rows": 2})
    add_run(paths, 3, {"rows": 3})
    real = os.rmdir

    def refuse(path, *arguments, **options):
        if path == first.directory:
            raise PermissionError(13, "Permission denied", str(path))
        real(path, *arguments, **options)

    with monkeypatch.context() as context:
        context.setattr(os, "rmdir", refuse)
        with pytest.raises(PermissionError):
            clean(workspace, "m", 1)
    assert first.directory.exists()
    assert not second.directory.exists()
    assert len(outputs(paths)) == 3
    clean(workspace, "m", 1)
    assert not first.directory.exists()
