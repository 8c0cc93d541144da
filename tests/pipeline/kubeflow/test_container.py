"""The executor's input, as TFX can read it, and its output, as the launcher can."""

import json
import subprocess
import sys

import pytest
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from pipeline.kubeflow.container import restored


def artifact(uri, title=None):
    schema = {"instanceSchema": f"title: {title}\ntype: object\n" if title else ""}
    return {"artifacts": [{"name": "7", "uri": uri, "type": schema}]}


def run(folder, executor, inputs, declared, outputs):
    output_file = folder / "kfp_outputs" / "output_metadata.json"
    given = {
        "inputs": {"artifacts": inputs, "parameterValues": {"note": "hello"}},
        "outputs": {"artifacts": outputs, "outputFile": str(output_file)},
    }
    types = {
        key: {"artifactType": {"instanceSchema": f"title: {t}"}} for key, t in declared.items()
    }
    spec = {"artifacts": types, "parameters": {"note": {"parameterType": "STRING"}}}
    call = ["-m", "pipeline.kubeflow.container", "--executor_class_path", executor]
    call += ["--json_serialized_invocation_args", json.dumps(given)]
    call += ["--json_serialized_inputs_spec_args", json.dumps(spec)]
    environment = {"PATH": "/usr/bin", "PYTHONPATH": f"{folder}:.", "REGARD_STORAGE": str(folder)}
    done = subprocess.run(
        [sys.executable, *call], env=environment, capture_output=True, text=True, timeout=300
    )
    return done, output_file


EXECUTOR = """
from pathlib import Path
from tfx.dsl.components.base.base_executor import BaseExecutor
from components.artifacts import Findings, Report
from components.errors import UserError

class Executor(BaseExecutor):
    def Do(self, input_dict, output_dict, exec_properties):
        (findings,), (report,) = input_dict["findings"], output_dict["report"]
        assert isinstance(findings, Findings) and isinstance(report, Report)
        note = Path(findings.uri, "note.txt").read_text() + exec_properties["note"]
        Path(report.uri).mkdir(parents=True)
        Path(report.uri, "note.txt").write_text(note)
        report.set_int_custom_property("pages", 1)

class Refusing(BaseExecutor):
    def Do(self, input_dict, output_dict, exec_properties):
        raise UserError("no good", "a.tsv:3", "Mend it.")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own_executor.py").write_text(EXECUTOR)
    note = tmp_path / "minio" / "b" / "in" / "note.txt"
    note.parent.mkdir(parents=True)
    note.write_text("well, ")
    return tmp_path


def call(folder, executor):
    return run(
        folder,
        f"own_executor.{executor}",
        {"findings": artifact("minio://b/in")},
        {"findings": "regard.Findings"},
        {"report": artifact("minio://b/out", "regard.Report")},
    )


def test_a_node_reads_and_writes_local_folders_and_tells_uris(folder):
    done, output_file = call(folder, "Executor")
    assert done.returncode == 0, done.stderr
    assert (folder / "minio/b/out/note.txt").read_text() == "well, hello"
    told = json_format.Parse(output_file.read_text(), pipeline_spec_pb2.ExecutorOutput())
    (report,) = told.artifacts["report"].artifacts
    assert report.uri == "minio://b/out"
    assert report.metadata["pages"] == 1


def test_what_a_user_can_mend_is_told_last(folder):
    done, output_file = call(folder, "Refusing")
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith("error: a.tsv:3: no good\nMend it.")
    assert not output_file.exists()


def test_the_launcher_gets_no_null():
    metadata = {"kept": "a", "gone": None}
    told = {"artifacts": {"x": {"artifacts": [{"uri": "/gcs/b/x", "metadata": metadata}]}}}
    made = json.loads(restored(json.dumps(told), {"/gcs/b/x": "gs://b/x"}))
    assert made["artifacts"]["x"]["artifacts"] == [{"uri": "gs://b/x", "metadata": {"kept": "a"}}]
