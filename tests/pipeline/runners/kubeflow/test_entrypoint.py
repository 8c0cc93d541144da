"""The command of a container between the launcher and TFX."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from regard.core import owned_folders
from regard.pipeline.runners.kubeflow.entrypoint import (
    _store_locations,
    _use_local_paths,
    local_path,
    main,
    restore_uris,
)


def artifact(uri, title=None):
    schema = {"instanceSchema": f"title: {title}\ntype: object\n" if title else ""}
    return {"artifacts": [{"name": "7", "uri": uri, "type": schema}]}


def arguments(folder, executor, output="regard.Report"):
    """Return the arguments with which the launcher runs an executor, and its output file.

    The executor has one artifact in and one out, and the launcher's log.
    """
    output_file = folder / "kfp_outputs" / "output_metadata.json"
    inputs = {"findings": artifact("minio://b/in")}
    outputs = {"report": artifact("minio://b/out", output)}
    outputs["executor-logs"] = {
        "artifacts": [{"uri": "minio://b/logs", "type": {"schemaTitle": "system.Artifact"}}]
    }
    executor_input = {
        "inputs": {"artifacts": inputs, "parameterValues": {"note": "hello"}},
        "outputs": {"artifacts": outputs, "outputFile": str(output_file)},
    }
    types = {"findings": {"artifactType": {"instanceSchema": "title: regard.Findings"}}}
    spec = {"artifacts": types, "parameters": {"note": {"parameterType": "STRING"}}}
    call = ["--executor_class_path", f"own_executor.{executor}"]
    call += ["--json_serialized_invocation_args", json.dumps(executor_input)]
    call += ["--json_serialized_inputs_spec_args", json.dumps(spec)]
    call += ["--artifact_folder", str(folder / "volume")]
    call += ["--job_endpoint=localhost:1", "--job_server_timeout=1"]  # all nodes get Beam's options
    return call, output_file


@pytest.fixture
def run(folder, monkeypatch):
    """Return a function that runs an executor in this process, and returns its exit status."""
    monkeypatch.setenv("REGARD_STORAGE", str(folder))
    monkeypatch.syspath_prepend(folder)
    yield lambda *options: main(arguments(folder, *options)[0])
    sys.modules.pop("own_executor", None)


EXECUTOR = """
from pathlib import Path
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types.artifact import Artifact
from regard.components.common.artifact_types import Findings, Report
from regard.core.errors import UserError

class Executor(BaseExecutor):
    def Do(self, input_dict, output_dict, exec_properties):
        (findings,), (report,) = input_dict["findings"], output_dict["report"]
        assert isinstance(findings, Findings) and isinstance(report, Report | Findings)
        note = Path(findings.uri, "note.txt").read_text() + exec_properties["note"]
        Path(report.uri).mkdir(parents=True)
        Path(report.uri, "note.txt").write_text(note)
        report.set_int_custom_property("pages", 1)

class Note(Artifact):
    TYPE_NAME = "own.Note"

class Noting(BaseExecutor):
    def Do(self, input_dict, output_dict, exec_properties):
        (note,) = output_dict["report"]
        assert isinstance(note, Note)
        Path(note.uri).mkdir(parents=True)
        Path(note.uri, "note.txt").write_text("noted")

class Refusing(BaseExecutor):
    def Do(self, input_dict, output_dict, exec_properties):
        raise UserError("no good", "a.tsv:3", "Fix it.")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own_executor.py").write_text(EXECUTOR)
    note = tmp_path / "minio" / "b" / "in" / "note.txt"
    note.parent.mkdir(parents=True)
    note.write_text("well, ")
    return tmp_path


@pytest.mark.slow  # imports TFX in another process
def test_the_command_of_a_container(folder):
    call, output_file = arguments(folder, "Executor")
    command = [sys.executable, "-m", "regard.pipeline.runners.kubeflow.entrypoint", *call]
    environment = {"PATH": "/usr/bin", "PYTHONPATH": f"{folder}:.", "REGARD_STORAGE": str(folder)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert (folder / "minio/b/out/note.txt").read_text() == "well, hello"
    assert output_file.is_file()


def test_a_node_uses_local_folders_and_reports_uris(folder, run):
    assert run("Executor") == 0
    assert (folder / "minio/b/out/note.txt").read_text() == "well, hello"
    output_file = arguments(folder, "Executor")[1]
    message = json_format.Parse(output_file.read_text(), pipeline_spec_pb2.ExecutorOutput())
    (report,) = message.artifacts["report"].artifacts
    assert report.uri == "minio://b/out"
    assert report.metadata["pages"] == 1
    assert set(message.artifacts) == {"report"}  # without the log, which is the launcher's own


def test_content_is_on_the_volume_and_its_location_in_the_store(folder, run):
    left = folder / "volume" / "b" / "out" / "of-a-killed-attempt"
    owned_folders.create(left.parent, owned_folders.ARTIFACTS)
    left.mkdir()
    assert run("Executor", "regard.Findings") == 0
    (content,) = (path for path in left.parent.iterdir() if path.is_dir())
    assert content != left
    assert (content / "note.txt").read_text() == "well, hello"
    (location,) = (folder / "minio/b/out").iterdir()
    assert json.loads(location.read_text()) == {"path": str(content)}
    output_file = folder / "kfp_outputs" / "output_metadata.json"
    assert '"minio://b/out"' in output_file.read_text()

    (folder / "minio/b/in/note.txt").unlink()
    location.rename(folder / "minio/b/in" / location.name)  # the output is the next node's input
    (folder / "minio/b/out").rmdir()
    assert run("Executor") == 0
    assert (folder / "minio/b/out/note.txt").read_text() == "well, hellohello"


def test_types_of_artifacts_of_the_users_own_are_found(folder, run):
    assert run("Noting", "own.Note") == 0
    (content,) = (folder / "volume/b/out").glob("*/note.txt")
    assert content.read_text() == "noted"


def test_a_folder_of_someone_else_on_the_volume_stays(folder, run):
    mine = folder / "volume" / "b" / "out" / "mine"
    mine.mkdir(parents=True)
    assert run("Executor", "regard.Findings") == 0
    assert mine.is_dir()


def test_an_attempt_that_was_lost_but_still_runs_does_not_replace_the_next_one(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("REGARD_STORAGE", str(tmp_path))
    attempts = []
    for number in (1, 2):
        message = {"outputs": {"artifacts": {"findings": artifact("minio://b/out")}}}
        executor_input = json_format.ParseDict(message, pipeline_spec_pb2.ExecutorInput())
        attempts.append(_use_local_paths(executor_input, str(tmp_path / "volume")))
        (path,) = attempts[-1]
        Path(path).mkdir()
        Path(path, "note.txt").write_text(str(number))
    (earlier,), (path,) = attempts
    _store_locations(attempts[1])
    Path(earlier).mkdir()  # it writes more of its files
    with pytest.raises(RuntimeError, match="later attempt"):
        _store_locations(attempts[0])
    location = json.loads((tmp_path / "minio/b/out/regard_location.json").read_text())
    assert location == {"path": path}
    assert Path(path, "note.txt").read_text() == "2"


def test_a_lost_input_is_a_user_error(folder, run, capsys):
    location = folder / "minio/b/in/regard_location.json"
    location.write_text('{"path": "/regard/artifacts/gone"}')
    assert run("Executor") == 2
    error = capsys.readouterr().err
    assert "kubeflow.volumes: There is no artifact in /regard/artifacts/gone" in error


def test_a_user_error_is_printed_last(folder, run, capsys):
    assert run("Refusing") == 2
    assert capsys.readouterr().err.rstrip().endswith("error: a.tsv:3: no good\nFix it.")
    assert not (folder / "kfp_outputs" / "output_metadata.json").exists()


def test_null_properties_are_removed():
    metadata = {"name": "a", "empty": None}
    message = {"artifacts": {"x": {"artifacts": [{"uri": "/gcs/b/x", "metadata": metadata}]}}}
    output = json.loads(restore_uris(json.dumps(message), {"/gcs/b/x": "gs://b/x"}))
    assert output["artifacts"]["x"]["artifacts"] == [{"uri": "gs://b/x", "metadata": {"name": "a"}}]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("gs://bucket/a/b", "/gcs/bucket/a/b"),
        ("minio://mlpipeline/v2/artifacts/x", "/minio/mlpipeline/v2/artifacts/x"),
        ("s3://bucket/a", "/s3/bucket/a"),
        ("/a/local/folder", "/a/local/folder"),
        ("https://example.org/a", "https://example.org/a"),
        ("", ""),
    ],
)
def test_local_path_is_that_of_the_launcher(uri, path, monkeypatch):
    monkeypatch.delenv("REGARD_STORAGE", raising=False)
    assert local_path(uri) == path
