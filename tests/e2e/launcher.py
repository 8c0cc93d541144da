"""A simulation of Kubeflow Pipelines that runs every node's command on this machine.

It follows the driver and launcher (backend/src/v2): the executor's input has URIs of a store and no
types of input artifacts; files are copied from the store before a node and to it afterwards; only
the parent of an output folder exists; metadata has no null and no integer.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

FOLDERS = {"gs": "gcs", "minio": "minio", "s3": "s3"}


class Cluster:
    """Runs a compiled pipeline.

    Args:
        folder: contains the store and the local folders of the containers.
        spec: the compiled pipeline.
        pipeline_root: where artifacts are stored, such as ``minio://bucket/root``.
        environment: of the containers.
    """

    def __init__(self, folder: Path, spec: dict, pipeline_root: str, environment: dict[str, str]):
        self.store = folder / "store"
        self.pods = folder / "pods"
        self.pipeline_root = pipeline_root
        self.spec = spec
        self.environment = environment
        self.outputs: dict[str, dict[str, dict]] = {}

    def run(self, parameters: dict[str, float]) -> None:
        """Run all tasks, each after those it depends on."""
        tasks = dict(self.spec["root"]["dag"]["tasks"])
        while tasks:
            ready = [
                name
                for name, task in tasks.items()
                if all(before in self.outputs for before in task.get("dependentTasks", []))
            ]
            assert ready, f"a circle: {list(tasks)}"
            for name in ready:
                self._run_task(name, tasks.pop(name), parameters)

    def run_again(self, name: str) -> None:
        """Run one task again on the outputs of the others, and replace its outputs."""
        self._run_task(name, self.spec["root"]["dag"]["tasks"][name], {})

    def store_path(self, uri: str) -> Path:
        """Return the path of a URI in the store."""
        scheme, _, rest = uri.partition("://")
        return self.store / scheme / rest

    def _run_task(self, name: str, task: dict, parameters: dict[str, float]) -> None:
        component = self.spec["components"][task["componentRef"]["name"]]
        label = component["executorLabel"]
        container = self.spec["deploymentSpec"]["executors"][label]["container"]
        pod = self.pods / name
        executor_input = self._executor_input(name, task, component, parameters, pod)
        for listed in executor_input["inputs"].get("artifacts", {}).values():
            uri = listed["artifacts"][0]["uri"]
            copy_files(self.store_path(uri), self._local(uri, pod))
        outputs = executor_input["outputs"].get("artifacts", {})
        for listed in outputs.values():
            self._local(listed["artifacts"][0]["uri"], pod).parent.mkdir(
                parents=True, exist_ok=True
            )
        text = json_format.MessageToJson(
            json_format.ParseDict(executor_input, pipeline_spec_pb2.ExecutorInput())
        )
        command = [*container["command"], *container["args"]]
        result = subprocess.run(
            [part.replace("{{$}}", text) for part in command],
            env={**self.environment, "REGARD_STORAGE": str(pod)},
            cwd=pod,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert result.returncode == 0, f"{name}: {result.stdout[-2000:]}\n{result.stderr[-6000:]}"
        output = Path(executor_input["outputs"]["outputFile"]).read_text(encoding="utf-8")
        metadata = json_format.MessageToDict(
            json_format.Parse(output, pipeline_spec_pb2.ExecutorOutput())
        )
        self.outputs[name] = {}
        for key, listed in outputs.items():
            artifact = listed["artifacts"][0]
            merge(metadata.get("artifacts", {}).get(key, {}).get("artifacts", [{}])[0], artifact)
            copy_files(self._local(artifact["uri"], pod), self.store_path(artifact["uri"]))
            self.outputs[name][key] = artifact
        shutil.rmtree(pod)

    def _executor_input(
        self, name: str, task: dict, component: dict, parameters: dict[str, float], pod: Path
    ) -> dict[str, Any]:
        defaults = self.spec["root"].get("inputDefinitions", {}).get("parameters", {})
        values = {}
        for key, source in task.get("inputs", {}).get("parameters", {}).items():
            if (root := source.get("componentInputParameter")) is not None:
                values[key] = parameters.get(root, defaults[root].get("defaultValue"))
            else:
                values[key] = source["runtimeValue"]["constant"]
        inputs = {}
        for key, source in task.get("inputs", {}).get("artifacts", {}).items():
            producer = source["taskOutputArtifact"]
            source_artifact = self.outputs[producer["producerTask"]][producer["outputArtifactKey"]]
            known = {
                **source_artifact.get("metadata", {}),
                "display_name": producer["outputArtifactKey"],
            }
            artifact = {"name": "7", "uri": source_artifact["uri"], "metadata": known}
            inputs[key] = {"artifacts": [{**artifact, "type": {"instanceSchema": ""}}]}
        outputs = {}
        for key, kind in component.get("outputDefinitions", {}).get("artifacts", {}).items():
            uri = f"{self.pipeline_root}/{self.spec['pipelineInfo']['name']}/run-1/{name}/{key}"
            artifact = {"uri": uri, "type": kind["artifactType"]}
            outputs[key] = {"artifacts": [{**artifact, "metadata": kind.get("metadata", {})}]}
        pod.mkdir(parents=True)
        output_file = pod / "tmp" / "kfp_outputs" / "output_metadata.json"
        return {
            "inputs": {"parameterValues": values, "artifacts": inputs},
            "outputs": {"artifacts": outputs, "outputFile": str(output_file)},
        }

    def _local(self, uri: str, pod: Path) -> Path:
        scheme, _, rest = uri.partition("://")
        return pod / FOLDERS[scheme] / rest


def copy_files(source: Path, target: Path) -> None:
    """Copy files as a store does: it has no folders, so empty ones are lost."""
    for path in [source] if source.is_file() else source.rglob("*"):
        if path.is_file():
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def merge(output: dict, artifact: dict) -> None:
    """Add the output metadata of a node to an artifact."""
    artifact["uri"] = output.get("uri") or artifact["uri"]
    for key, value in output.get("metadata", {}).items():
        assert value is not None, f"the launcher refuses null: {key}"
        artifact.setdefault("metadata", {})[key] = value


def environment(root: Path) -> dict[str, str]:
    """Return the environment of a container: this interpreter without the variables of a run."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("REGARD_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), variables.get("PATH", "")])
    return {**variables, "PATH": path, "PYTHONPATH": str(root)}
