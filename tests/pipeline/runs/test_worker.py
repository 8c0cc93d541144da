"""The worker on a tiny TFX pipeline: events, cache, parts of the graph, failures, both runners."""

import errno
import importlib
import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
from tfx.dsl.components.common.importer import Importer

from regard.components.common.artifact_types import Findings
from regard.core import events
from regard.pipeline.runners import node_events
from regard.pipeline.runs import worker

BOTH = pytest.mark.parametrize("runner", ["local", "beam"])


class Tiny:
    """Runs the tiny pipeline and returns its events."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch):
        self.root, self.file = root, root / "events.jsonl"
        self.what = root / "what.txt"
        self.what.write_text("ok")
        monkeypatch.setenv(events.VARIABLE, str(self.file))
        monkeypatch.setenv("REGARD_TINY", str(self.what))
        self.module = importlib.import_module("tiny")
        self.number = 0

    def run(self, runner: str = "local", start: int = 1, **part: str) -> int:
        self.file.unlink(missing_ok=True)
        self.number += 1
        return worker.run(
            lambda: self.module.make(self.root, start), runner, f"run-{self.number}", **part
        )

    def events(self, kind: str = "node") -> list[dict]:
        return [event for event, _ in events.read(self.file) if event["kind"] == kind]

    def states(self) -> dict[str, str]:
        return {event["node"]: event["state"] for event in self.events()}


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    monkeypatch.setattr(sys, "argv", ["regard"])
    return Tiny(tmp_path, monkeypatch)


def test_hidden_packages_cannot_be_imported_until_the_end_of_the_block(tmp_path, monkeypatch):
    (tmp_path / "optional_package.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    with worker.hidden_packages("optional_package", "json"):
        assert importlib.import_module("json").loads("1") == 1  # imported before
        with pytest.raises(ImportError):
            importlib.import_module("optional_package")
    assert importlib.import_module("optional_package")
    with pytest.raises(KeyError), worker.hidden_packages("missing_package"):
        raise KeyError
    assert "missing_package" not in sys.modules


@BOTH
def test_second_run_is_cached(tiny, runner):
    assert tiny.run(runner) == worker.OK
    assert tiny.events("plan")[0]["nodes"] == ["Add", "Aside", "Fail"]
    assert tiny.states() == {"Add": "done", "Fail": "done", "Aside": "done"}
    first = {event["node"]: event for event in tiny.events() if event["state"] == "done"}
    total = Path(first["Add"]["outputs"]["total"])
    assert (total / "total.txt").read_text() == "2"
    assert first["Add"]["properties"]["total"]["text"] == "total 2"
    assert first["Add"]["seconds"] > 0
    assert first["Add"]["peak_bytes"] > 100 << 20  # TensorFlow is in this process

    assert tiny.run(runner) == worker.OK
    assert tiny.states() == {"Add": "cached", "Fail": "cached", "Aside": "cached"}
    second = {event["node"]: event for event in tiny.events() if event["state"] == "cached"}
    assert "peak_bytes" not in second["Add"]
    # The outputs are those of the first execution.
    assert Path(second["Add"]["outputs"]["total"]) == total


def test_changed_parameter_runs_again(tiny):
    tiny.run()
    assert tiny.run(start=5) == worker.OK
    assert tiny.states() == {"Add": "done", "Fail": "done", "Aside": "done"}


def test_node_with_deleted_artifacts_runs_again(tiny):
    tiny.run()
    shutil.rmtree(tiny.root / "artifacts" / "Add")
    assert tiny.run() == worker.OK
    assert tiny.states()["Add"] == "done"
    assert tiny.states()["Aside"] == "cached"


@BOTH
def test_node_with_changed_artifacts_runs_again(tiny, runner):
    tiny.run(runner)
    (file,) = (tiny.root / "artifacts" / "Add").rglob("total.txt")
    file.write_text("3")
    assert tiny.run(runner) == worker.OK
    assert tiny.states() == {"Add": "done", "Fail": "done", "Aside": "cached"}
    (warning,) = tiny.events("warning")
    assert str(file.parent) in warning["text"]
    assert tiny.run(runner) == worker.OK
    assert set(tiny.states().values()) == {"cached"}


def test_outputs_are_verified_after_a_kill_behind_their_publication(tiny, monkeypatch):
    def end(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(node_events._ObservedLauncher, "_outputs", end)
        assert tiny.run() == worker.INTERRUPTED
    (file,) = (tiny.root / "artifacts" / "Add").rglob("total.txt")
    assert tiny.run() == worker.OK
    assert tiny.states()["Add"] == "cached"
    file.write_text("3")
    assert tiny.run() == worker.OK
    assert tiny.states()["Add"] == "done"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE ArtifactProperty SET string_value = 'total 3' WHERE name = 'text'",
        "UPDATE ArtifactProperty SET string_value = 'a' WHERE name = 'content_digest'",
        "UPDATE ArtifactProperty SET name = 'tent' WHERE name = 'text'",
        "DELETE FROM ArtifactProperty WHERE name = 'content_digest'",
        "UPDATE Artifact SET uri = uri || 'a'",
        "UPDATE Artifact SET state = 3",
        "UPDATE Execution SET last_known_state = 4",
        "UPDATE Event SET type = 3",
        "UPDATE EventPath SET step_key = 'x'",
        "UPDATE Context SET name = name || 'a'",
    ],
)
def test_node_with_changed_metadata_runs_again(tiny, change):
    tiny.run()
    with sqlite3.connect(tiny.root / "metadata.sqlite") as database:
        database.execute(change)
    assert tiny.run() == worker.OK
    assert tiny.states()["Add"] == "done"
    (event,) = (e for e in tiny.events() if e["node"] == "Add" and e["state"] == "done")
    assert event["properties"]["total"]["text"] == "total 2"
    assert tiny.run() == worker.OK
    assert set(tiny.states().values()) == {"cached"}


def test_node_whose_outputs_cannot_be_read(tiny, monkeypatch):
    def fail(uri):
        raise OSError(errno.EIO, os.strerror(errno.EIO), uri)

    def run_without_reading():
        with monkeypatch.context() as context:
            context.setattr(node_events, "folder_digest", fail)
            return tiny.run()

    # New outputs without a digest are not published.
    assert run_without_reading() != worker.OK
    assert tiny.states()["Add"] == "failed"
    assert str(tiny.root / "artifacts" / "Add") in tiny.events()[-1]["error"]
    assert tiny.run() == worker.OK
    assert tiny.states()["Add"] == "done"
    # Existing ones are made again.
    assert run_without_reading() != worker.OK
    assert tiny.states()["Add"] == "failed"
    assert "was changed or damaged" in tiny.events("warning")[0]["text"]


@BOTH
def test_user_error_of_a_node_has_place_and_remedy(tiny, runner):
    tiny.what.write_text("user")
    assert tiny.run(runner) == worker.USER
    failed = tiny.events()[-1] if runner == "local" else _failed(tiny)
    assert failed["node"] == "Fail"
    assert failed["state"] == "failed"
    assert failed["error"] == "the sides differ"
    assert failed["where"] == "train.de:17"
    assert failed["remedy"] == "Correct line 17."
    assert failed["peak_bytes"] > 0
    assert tiny.events("run") == []


def test_run_resumes_after_a_failure(tiny):
    tiny.what.write_text("user")
    tiny.run()
    tiny.what.write_text("ok")
    assert tiny.run() == worker.OK
    assert tiny.states()["Add"] == "cached"
    assert tiny.states()["Fail"] == "done"


def test_bug_is_one_sentence_and_a_traceback_in_the_log(tiny, capfd):
    tiny.what.write_text("bug")
    assert tiny.run() == worker.BUG
    assert _failed(tiny)["error"] == "ValueError: a list of 3"
    assert "Traceback" in capfd.readouterr().err


@BOTH
def test_a_node_without_an_executor_is_done(tiny, runner):
    """Such as an Importer that `pipeline.extra` adds."""

    def build():
        pipeline = tiny.module.make(tiny.root)
        importer = Importer(source_uri=str(tiny.what.parent), artifact_type=Findings)
        pipeline.components = [*pipeline.components, importer.with_id("Import")]
        return pipeline

    assert worker.run(build, runner, "run-1") == worker.OK
    assert tiny.states() == dict.fromkeys(("Add", "Aside", "Fail", "Import"), "done")
    end = next(e for e in tiny.events() if e["node"] == "Import" and e["state"] == "done")
    assert end["outputs"] == {"result": str(tiny.root)}


@BOTH
def test_code_that_ends_the_process_is_a_failure(tiny, runner):
    tiny.what.write_text("exit")
    assert tiny.run(runner) == worker.BUG
    assert _failed(tiny)["node"] == "Fail"
    assert _failed(tiny)["error"] == "RuntimeError: The code of the node called sys.exit(0)."

    def end():
        raise SystemExit

    tiny.file.unlink()
    assert worker.run(end) == worker.BUG
    assert tiny.events("run")[0]["error"] == "SystemExit: no message"


def test_user_error_in_a_beam_job(tiny):
    tiny.what.write_text("beam")
    assert tiny.run() == worker.USER
    assert _failed(tiny)["error"] == "row 3 is empty"
    assert _failed(tiny)["where"] == "a.tsv:3"
    assert _failed(tiny)["remedy"] == "Fill it."


def test_to_runs_only_the_ancestors(tiny):
    assert tiny.run(last="Fail") == worker.OK
    assert tiny.states() == {"Add": "done", "Fail": "done"}
    assert tiny.events("plan")[0]["nodes"] == ["Add", "Fail"]


def test_from_runs_the_node_and_its_descendants_again(tiny):
    tiny.run()
    assert tiny.run(first="Fail") == worker.OK
    assert tiny.states() == {"Add": "cached", "Fail": "done", "Aside": "cached"}
    assert tiny.run(first="Add") == worker.OK
    assert tiny.states() == {"Add": "done", "Fail": "done", "Aside": "cached"}


def test_error_while_the_pipeline_is_built(tiny):
    def broken():
        raise KeyError("vocab")

    tiny.file.unlink(missing_ok=True)
    assert worker.run(broken) == worker.BUG
    assert tiny.events("run")[0]["error"] == "KeyError: 'vocab'"


def test_launcher_is_restored(tiny):
    from tfx.orchestration.portable import launcher

    original = launcher.Launcher
    tiny.what.write_text("bug")
    tiny.run()
    assert launcher.Launcher is original


def _failed(tiny: Tiny) -> dict:
    return next(event for event in tiny.events() if event["state"] == "failed")


def test_outputs_of_a_killed_run_are_removed_by_the_next_run(tiny):
    copies = tiny.root / "artifacts" / "Fail" / "copy"
    tiny.what.write_text("killed")
    assert tiny.run() == worker.OK
    shutil.rmtree(tiny.root)
    tiny.module.killed(tiny.root).rename(tiny.root)
    assert list(copies.glob("*/half.txt"))
    (incomplete,) = copies.iterdir()
    state = copies.parent / ".system" / "stateful_working_dir"
    assert list(state.iterdir())

    tiny.what.write_text("ok")
    assert tiny.run() == worker.OK
    assert not incomplete.exists()
    assert list(state.iterdir()) == []
    (complete,) = copies.iterdir()
    assert (complete / "copy.txt").exists()
    assert tiny.run() == worker.OK
    assert (complete / "copy.txt").exists()


def test_renamed_checkpoints_are_not_renamed_again(tmp_path):
    for name in ("key", "key-float16", "key-float16.unused-1234abcd", "other-float16"):
        (tmp_path / name).mkdir()
    worker._discard_checkpoints(tmp_path, "key")
    names = {path.name for path in tmp_path.iterdir()}
    assert {"key-float16.unused-1234abcd", "other-float16"} <= names
    assert not {"key", "key-float16"} & names
    worker._discard_checkpoints(tmp_path, "key")
    assert {path.name for path in tmp_path.iterdir()} == names
