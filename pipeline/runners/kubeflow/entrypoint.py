"""The command of every node's container: ``python -m regard.pipeline.runners.kubeflow.entrypoint``.

The launcher of open-source Kubeflow Pipelines copies input artifacts from the store to local
folders before a node runs, and output artifacts back afterwards: ``minio://b/p`` is ``/minio/b/p``,
and likewise for ``s3://`` (``/s3``) and ``gs://`` (``/gcs``), by its ``LocalPathForURI``. TFX's own
entry point does not know these folders, needs the type of every input artifact, which the launcher
leaves empty, and knows TFX's types only. This entry point calls TFX's with local paths and declared
types, and puts the URIs back into the output metadata. So no node needs a client of a store.

The launcher would also download every input, whatever the node reads of it. So the content of an
artifact is in ``--artifact_folder``, on a volume that all nodes and Beam's workers mount, and the
store has only a file with its location. Each attempt of a node writes to a folder of its own, so an
attempt that was lost but still runs does not disturb the next one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from regard.core import owned_folders
from regard.core.errors import UserError
from regard.core.files import atomic_write, read_json_object, write_json
from regard.pipeline.runners.failures import explain

if TYPE_CHECKING:
    from kfp.pipeline_spec.pipeline_spec_pb2 import (
        ComponentInputsSpec,
        ExecutorInput,
        RuntimeArtifact,
    )
    from tfx.types.artifact import Artifact

COMMAND = ("python", "-m", "regard.pipeline.runners.kubeflow.entrypoint")
# A folder that holds those of the stores; tests set it, a container has them at the root.
STORAGE_VARIABLE = "REGARD_STORAGE"
_STORE_FOLDERS = {"gs": "gcs", "minio": "minio", "s3": "s3"}
_LOCATION = "regard_location.json"  # what the store has of an artifact on a volume
_ATTEMPT = ".attempt"  # a file next to an output until it is complete
_SUCCESS, _BUG, _USER_ERROR = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run the node that the arguments describe, and return the exit status."""
    parser = argparse.ArgumentParser(prog=" ".join(COMMAND))
    parser.add_argument("--executor_class_path", required=True)
    parser.add_argument("--json_serialized_invocation_args", required=True)
    parser.add_argument("--json_serialized_inputs_spec_args", required=True)
    parser.add_argument("--artifact_folder", required=True)
    options, beam_arguments = parser.parse_known_args(arguments)
    try:
        _run(options, beam_arguments)
    except Exception as error:
        traceback.print_exc()
        failure = explain(error)
        where = f"{failure.where}: " if failure.where is not None else ""
        print(f"\nerror: {where}{failure.error}\n{failure.remedy or ''}", file=sys.stderr)
        return _USER_ERROR if failure.user else _BUG
    return _SUCCESS


def local_path(uri: str) -> str:
    """Return the local folder of an artifact's URI; other paths are returned unchanged."""
    scheme, separator, rest = uri.partition("://")
    if not separator or scheme not in _STORE_FOLDERS:
        return uri
    return os.path.join(os.environ.get(STORAGE_VARIABLE) or "/", _STORE_FOLDERS[scheme], rest)


def restore_uris(output: str, uris: Mapping[str, str]) -> str:
    """Return the output metadata of a node as the launcher can read it.

    Args:
        output: an ``ExecutorOutput`` as JSON.
        uris: the URI of each local path.
    """
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    message = json_format.Parse(output, pipeline_spec_pb2.ExecutorOutput())
    for artifacts in message.artifacts.values():
        for artifact in artifacts.artifacts:
            artifact.uri = uris.get(artifact.uri, artifact.uri)
            fields = artifact.metadata.fields
            # TFX writes null for a property that is not set, which the launcher refuses.
            for name in [name for name, value in fields.items() if value.HasField("null_value")]:
                del fields[name]
    return json_format.MessageToJson(message)


def _run(options: argparse.Namespace, beam_arguments: list[str]) -> None:
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor
    from tfx.utils import import_utils

    from regard.pipeline.runners.job_service import check_job_service  # imports Beam

    # TFX gives Beam's arguments to all nodes.
    if issubclass(import_utils.import_class_by_path(options.executor_class_path), BaseBeamExecutor):
        check_job_service(beam_arguments)
    executor_input = json_format.Parse(
        options.json_serialized_invocation_args,
        pipeline_spec_pb2.ExecutorInput(),
        ignore_unknown_fields=True,
    )
    inputs_spec = json_format.Parse(
        options.json_serialized_inputs_spec_args,
        pipeline_spec_pb2.ComponentInputsSpec(),
        ignore_unknown_fields=True,
    )
    _set_artifact_types(executor_input, inputs_spec)
    uris = _use_local_paths(executor_input, options.artifact_folder)
    options.json_serialized_invocation_args = json_format.MessageToJson(executor_input)
    kubeflow_v2_run_executor.main((options, beam_arguments))
    _store_locations(uris)
    output_file = Path(executor_input.outputs.output_file)
    atomic_write(output_file, restore_uris(output_file.read_text(encoding="utf-8"), uris))


def _set_artifact_types(executor_input: ExecutorInput, inputs_spec: ComponentInputsSpec) -> None:
    """Give every artifact a type by which TFX finds its class, and drop those of the launcher."""
    class_paths = {
        kind.TYPE_NAME: f"{kind.__module__}.{kind.__name__}"
        for kind in _artifact_types()
        if not kind.__module__.startswith("tfx.")
    }
    for key, listed in executor_input.inputs.artifacts.items():
        for artifact in listed.artifacts:
            artifact.type.CopyFrom(inputs_spec.artifacts[key].artifact_type)
    # With published logs, there is an output for the launcher's own log.
    executor_input.outputs.artifacts.pop("executor-logs", None)
    for artifact in _artifacts(executor_input.inputs, executor_input.outputs):
        title = yaml.safe_load(artifact.type.instance_schema)["title"]
        if title in class_paths:
            artifact.type.schema_title = class_paths[title]


def _artifact_types() -> list[type[Artifact]]:
    """Return Regard's types of artifacts, and those that the module of the node imports."""
    from tfx.types.artifact import Artifact

    from regard.components.common import artifact_types  # noqa: F401 (they are subclasses)

    kinds: list[type[Artifact]] = [Artifact]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return kinds[1:]


def _use_local_paths(executor_input: ExecutorInput, artifact_folder: str) -> dict[str, str]:
    """Replace the URIs by local paths, and return the URI of each path of an output.

    Raises:
        UserError: an input is no longer on its volume.
    """
    for artifact in _artifacts(executor_input.inputs):
        artifact.uri = _find_content(local_path(artifact.uri))
    uris = {}
    for artifact in _artifacts(executor_input.outputs):
        path = local_path(artifact.uri)
        # Users read the report, which no node does, in the store.
        if not artifact.type.schema_title.endswith(".Report"):
            parent = Path(artifact_folder, artifact.uri.partition("://")[2] or path.lstrip("/"))
            with contextlib.suppress(OSError):  # of an attempt that failed
                owned_folders.remove(parent, owned_folders.ARTIFACTS)
            owned_folders.create(parent, owned_folders.ARTIFACTS)
            path = str(parent / uuid.uuid4().hex)
            Path(path + _ATTEMPT).touch()
        uris[path] = artifact.uri
        artifact.uri = path
    return uris


def _store_locations(uris: Mapping[str, str]) -> None:
    """Write to the store where each output is.

    Raises:
        RuntimeError: a later attempt has removed the outputs of this one.
    """
    for path, uri in uris.items():
        os.makedirs(stored := local_path(uri), exist_ok=True)
        if path != stored:
            try:
                os.unlink(path + _ATTEMPT)
            except FileNotFoundError:
                raise RuntimeError("A later attempt has replaced this one.") from None
            write_json(Path(stored, _LOCATION), {"path": path})
        os.makedirs(path, exist_ok=True)  # a node may have nothing to write


def _find_content(path: str) -> str:
    """Return the folder of an input's content, which may be on a volume."""
    location = Path(path, _LOCATION)
    if not location.is_file():
        return path
    content = str(read_json_object(location)["path"])
    if not os.path.isdir(content):
        remedy = "Mount the same volumes into all nodes, and start another run."
        raise UserError(f"There is no artifact in {content}.", "kubeflow.volumes", remedy)
    return content


def _artifacts(*parts: ExecutorInput.Inputs | ExecutorInput.Outputs) -> Iterator[RuntimeArtifact]:
    for part in parts:
        for listed in part.artifacts.values():
            yield from listed.artifacts


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Skip the interpreter's shutdown, in which threads of Beam and TensorFlow may crash.
    os._exit(status)
