"""The rendered deployment of a model on the cluster."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.cluster.image import ROOT
from benchmarks.cluster.node import load
from benchmarks.cluster.node.cluster import Cluster
from benchmarks.cluster.node.images import REGARD
from benchmarks.cluster.node.machine import CGROUP, CGROUPS

NAMESPACE = "nlp"
CLAIM = "regard"
MODEL = "quickstart"
REPLICAS = 2
_USER = 1000  # of the image


def find_missing(home: Path) -> list[str]:
    """Return what a home for `prepare` lacks."""
    versions = [f"registry/{MODEL}/{number}" for number in (1, 2)]
    paths = [home / name for name in ("pipeline.yaml", "data", *versions)]
    return [str(path) for path in paths if not path.exists()]


def prepare(cluster: Cluster, home: Path) -> Path:
    """Create a namespace whose pods must be restricted, and a volume with a copy of a home.

    Args:
        cluster: the cluster.
        home: a folder with `pipeline.yaml`, `data` and `registry`.

    Returns:
        The folder of the volume.
    """
    volume = cluster.folder / "volume"
    volume.mkdir()
    shutil.copy(home / "pipeline.yaml", volume)
    for name in ("data", "registry"):
        shutil.copytree(home / name, volume / name)
    for path in (volume, *volume.rglob("*")):
        os.chown(path, _USER, _USER, follow_symlinks=False)
    volume.chmod(0o755)
    labels = {
        f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
    }
    size = {"storage": "10Gi"}
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    source = {
        "capacity": size,
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": str(volume), "type": "Directory"},
    }
    request = {"volumeName": CLAIM, "resources": {"requests": size}}
    cluster.create(
        _object("v1", "Namespace", NAMESPACE, labels=labels),
        _object("v1", "PersistentVolume", CLAIM, spec={**spec, **source}),
        _object("v1", "PersistentVolumeClaim", CLAIM, NAMESPACE, spec={**spec, **request}),
    )
    return volume


def _object(version: str, kind: str, name: str, namespace: str = "", **content: Any) -> Any:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    if labels := content.pop("labels", None):
        metadata["labels"] = labels
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


class Service:
    """Servers of a model, as `regard deploy render` describes them.

    Args:
        cluster: the cluster.
        volume: the folder of the volume with the registry.
    """

    def __init__(self, cluster: Cluster, volume: Path):
        self.cluster, self._volume = cluster, volume

    def apply(self, version: str = "", image: str = REGARD[0], memory: str = "2Gi") -> None:
        """Render the deployment, and apply it as the command prints it."""
        folder = self.cluster.folder / "deploy"
        command = [
            *(sys.executable, "-m", "regard.pipeline.cli", "deploy", "render"),
            f"{MODEL}@{version}" if version else MODEL,
            f"--registry={self._volume / 'registry'}",
            f"--storage=pvc://{CLAIM}/registry",
            "--engine=ctranslate2",
            f"--image={image.removeprefix('docker.io/library/')}",
            # Several servers share two cores.
            "--cpu=250m",
            f"--memory={memory}",
            f"--replicas={REPLICAS}",
            f"--namespace={NAMESPACE}",
            f"--out={folder}",
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        self.cluster.kubectl("apply", "-k", folder)

    def wait_until_complete(self, seconds: float = 900) -> float:
        """Wait until all replicas are new and ready, and return the seconds."""
        start = time.monotonic()
        self.cluster.wait(self._is_complete, "the rollout", seconds)
        return time.monotonic() - start

    def _is_complete(self) -> bool:
        deployment = self.cluster.get("deployment", MODEL, "-n", NAMESPACE)
        status, generation = deployment["status"], deployment["metadata"]["generation"]
        counts = [status.get(f"{key}Replicas", 0) for key in ("updated", "ready", "available")]
        total = status.get("replicas", 0)
        is_observed = status.get("observedGeneration", 0) >= generation
        return is_observed and total == REPLICAS and counts == [REPLICAS] * 3

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods that are not being deleted."""
        selector = f"app.kubernetes.io/name={MODEL}"
        pods: list[dict[str, Any]] = self.cluster.get("pods", "-n", NAMESPACE, "-l", selector)
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def ready_pods(self) -> list[dict[str, Any]]:
        """Return the pods that receive requests."""
        return [pod for pod in self.pods() if is_ready(pod)]

    def endpoints(self) -> list[str]:
        """Return the addresses of the pods behind the service."""
        selector = f"kubernetes.io/service-name={MODEL}"
        slices = self.cluster.get("endpointslices", "-n", NAMESPACE, "-l", selector)
        return [
            endpoint["addresses"][0]
            for item in slices
            for endpoint in item.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
        ]

    @property
    def address(self) -> str:
        """The address of the service in the cluster."""
        address: str = self.cluster.get("service", MODEL, "-n", NAMESPACE)["spec"]["clusterIP"]
        return address

    @contextlib.contextmanager
    def load(self, rate: float = 8.0, *, client: bool = False) -> Iterator[load.Load]:
        """Send requests to the service from the first node until the end of the block.

        Args:
            rate: requests per second.
            client: whether they come from Regard's client, which repeats some requests.
        """
        machine = self.cluster.nodes[0]
        with load.run(machine, self.address, MODEL, rate, client=client) as requests:
            time.sleep(3)
            yield requests
            # The pods of an update still end.
            time.sleep(20)

    def pids(self, pod: dict[str, Any]) -> list[int]:
        """Return the processes of a pod's server by their numbers on this computer.

        The pause process of the pod is not among them.
        """
        uid = pod["metadata"]["uid"]
        (container,) = pod["status"]["containerStatuses"]
        identifier = container["containerID"].rpartition("/")[2]
        groups = (CGROUPS / "pids" / CGROUP).rglob(f"*{uid}/{identifier}/cgroup.procs")
        return [int(line) for path in groups for line in path.read_text().split()]


def is_ready(pod: dict[str, Any]) -> bool:
    """Return whether a pod is ready."""
    conditions = pod["status"].get("conditions", ())
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def restarts(pod: dict[str, Any]) -> int:
    """Return how often the containers of a pod were restarted."""
    return sum(status["restartCount"] for status in pod["status"].get("containerStatuses", ()))
