"""What runs in a node's container: ``python -m pipeline.kubeflow.container``.

TFX's own entry point runs the executor, but not as the launcher of open-source Kubeflow Pipelines
calls it: it would read and write ``minio://`` and ``s3://``, which TFX cannot; it needs the type of
every input artifact, which this launcher leaves empty; and it knows no types but TFX's. So the
paths become those that the launcher copies from and to (``pipeline.kubeflow.storage``), the types
become those that the node declares, and what is written about the outputs has the URIs again.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from components.files import atomic_write
from pipeline.kubeflow.storage import local_path

if TYPE_CHECKING:
    from kfp.pipeline_spec.pipeline_spec_pb2 import ComponentInputsSpec, ExecutorInput

OK, BUG, USER = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Runs the node that the arguments describe, and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.kubeflow.container")
    parser.add_argument("--executor_class_path", required=True)
    parser.add_argument("--json_serialized_invocation_args", required=True)
    parser.add_argument("--json_serialized_inputs_spec_args", required=True)
    options, beam = parser.parse_known_args(arguments)
    try:
        _run(options, beam)
    except Exception as error:
        from pipeline.runners.failures import explain

        traceback.print_exc()
        failure = explain(error)
        where = f"{failure.where}: " if failure.where else ""
        print(f"\nerror: {where}{failure.error}\n{failure.remedy or ''}", file=sys.stderr)
        return USER if failure.user else BUG
    return OK


def _run(options: argparse.Namespace, beam: list[str]) -> None:
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

    given = json_format.Parse(
        options.json_serialized_invocation_args,
        pipeline_spec_pb2.ExecutorInput(),
        ignore_unknown_fields=True,
    )
    declared = json_format.Parse(
        options.json_serialized_inputs_spec_args,
        pipeline_spec_pb2.ComponentInputsSpec(),
        ignore_unknown_fields=True,
    )
    _make_typed(given, declared)
    remote = _make_local(given)
    options.json_serialized_invocation_args = json_format.MessageToJson(given)
    kubeflow_v2_run_executor.main((options, beam))
    written = Path(given.outputs.output_file)
    atomic_write(written, restored(written.read_text(encoding="utf-8"), remote))


def _make_typed(given: ExecutorInput, declared: ComponentInputsSpec) -> None:
    """Gives every artifact a type by which TFX finds its class."""
    from components import artifacts as ours

    paths = {
        kind.TYPE_NAME: f"{kind.__module__}.{kind.__name__}"
        for kind in (ours.Tokenizer, ours.Findings, ours.Predictions, ours.Report)
    }
    for key, listed in given.inputs.artifacts.items():
        for artifact in listed.artifacts:
            artifact.type.CopyFrom(declared.artifacts[key].artifact_type)
    for part in (given.inputs, given.outputs):
        for listed in part.artifacts.values():
            for artifact in listed.artifacts:
                title = yaml.safe_load(artifact.type.instance_schema)["title"]
                if title in paths:
                    artifact.type.schema_title = paths[title]


def _make_local(given: ExecutorInput) -> dict[str, str]:
    """Puts local paths in the place of URIs, and returns the URI of each path."""
    remote = {}
    for part in (given.inputs, given.outputs):
        for artifacts in part.artifacts.values():
            for artifact in artifacts.artifacts:
                path = local_path(artifact.uri)
                remote[path] = artifact.uri
                artifact.uri = path
    return remote


def restored(output: str, remote: dict[str, str]) -> str:
    """What a node wrote about its outputs, as the launcher can read it.

    Args:
        output: an ``ExecutorOutput`` as JSON.
        remote: the URI of each local path.
    """
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    told = json_format.Parse(output, pipeline_spec_pb2.ExecutorOutput())
    for artifacts in told.artifacts.values():
        for artifact in artifacts.artifacts:
            artifact.uri = remote.get(artifact.uri, artifact.uri)
            fields = artifact.metadata.fields
            # The launcher refuses a null; TFX writes one for a property that is not set.
            for name in [name for name, value in fields.items() if value.HasField("null_value")]:
                del fields[name]
    return json_format.MessageToJson(told)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the interpreter's own end, in which Beam's and TensorFlow's threads may crash.
    os._exit(status)
