"""Open-source Kubeflow Pipelines on one machine: every node's command, one after the other.

As its driver and launcher (backend/src/v2) do it: the executor's input with URIs of a store and
without the types of input artifacts; the inputs copied to local folders before, file by file, and
the outputs to the store after; of an output folder only the parent is made; metadata goes through
ML Metadata, which keeps no null and no whole number.
"""

from __future__ import annotations

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
        folder: holds the store and, one after the other, the containers' local folders.
        spec: the compiled pipeline.
        pipeline_root: where its artifacts go, such as ``minio://bucket/root``.
        environment: that of the containers.
    """

    def __init__(self, folder: Path, spec: dict, pipeline_root: str, environment: dict[str, str]):
        self.store = folder / "store"
        self.pods = folder / "pods"
        self.pipeline_root = pipeline_root
        self.spec = spec
        self.environment = environment
        self.outputs: dict[str, dict[str, dict]] = {}

    def run(self, parameters: dict[str, float]) -> None:
        """Runs all tasks, each after those that it depends on."""
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
        """Runs one task once more, on what the others have made; its outputs are replaced."""
        self._run_task(name, self.spec["root"]["dag"]["tasks"][name], {})

    def stored(self, uri: str) -> Path:
        """Where the store keeps a URI."""
        scheme, _, rest = uri.partition("://")
        return self.store / scheme / rest

    def _run_task(self, name: str, task: dict, parameters: dict[str, float]) -> None:
        component = self.spec["components"][task["componentRef"]["name"]]
        label = component["executorLabel"]
        container = self.spec["deploymentSpec"]["executors"][label]["container"]
        pod = self.pods / name
        given = self._executor_input(name, task, component, parameters, pod)
        for listed in given["inputs"].get("artifacts", {}).values():
            uri = listed["artifacts"][0]["uri"]
            copy_files(self.stored(uri), self._local(uri, pod))
        outputs = given["outputs"].get("artifacts", {})
        for listed in outputs.values():
            self._local(listed["artifacts"][0]["uri"], pod).parent.mkdir(
                parents=True, exist_ok=True
            )
        text = json_format.MessageToJson(
            json_format.ParseDict(given, pipeline_spec_pb2.ExecutorInput())
        )
        command = [*container["command"], *container["args"]]
        done = subprocess.run(
            [part.replace("{{$}}", text) for part in command],
            env={**self.environment, "REGARD_STORAGE": str(pod)},
            cwd=pod,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{name}: {done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        written = Path(given["outputs"]["outputFile"]).read_text(encoding="utf-8")
        told = json_format.MessageToDict(
            json_format.Parse(written, pipeline_spec_pb2.ExecutorOutput())
        )
        self.outputs[name] = {}
        for key, listed in outputs.items():
            artifact = listed["artifacts"][0]
            merge(told.get("artifacts", {}).get(key, {}).get("artifacts", [{}])[0], artifact)
            copy_files(self._local(artifact["uri"], pod), self.stored(artifact["uri"]))
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
            made = self.outputs[producer["producerTask"]][producer["outputArtifactKey"]]
            known = {**made.get("metadata", {}), "display_name": producer["outputArtifactKey"]}
            artifact = {"name": "7", "uri": made["uri"], "metadata": known}
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
    """Copies files as a store holds them: it knows no folders, so that empty ones vanish."""
    for path in [source] if source.is_file() else source.rglob("*"):
        if path.is_file():
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def merge(told: dict, artifact: dict) -> None:
    """What the node told of an output, into what is known of it."""
    artifact["uri"] = told.get("uri") or artifact["uri"]
    for key, value in told.get("metadata", {}).items():
        assert value is not None, f"the launcher knows no null: {key}"
        artifact.setdefault("metadata", {})[key] = value


def environment(root: Path) -> dict[str, str]:
    """The environment of a container: this interpreter, and nothing of a run's."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("REGARD_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return {**kept, "PATH": path, "PYTHONPATH": str(root)}
