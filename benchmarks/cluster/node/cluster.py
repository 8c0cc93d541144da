"""A cluster of Kubernetes on this computer: a control plane and nodes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.cluster.kubernetes_api import ApiServer
from benchmarks.cluster.node import control_plane, images, kubelet, names
from benchmarks.cluster.node.machine import Machine, machines

CONTROL = "control"


@dataclasses.dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        folder: for all files; gone at the end of the cluster.
        control: the machine of the control plane.
        nodes: the machines of the nodes.
        api: the API server.
    """

    folder: Path
    control: Machine
    nodes: list[Machine]
    api: ApiServer

    def kubectl(self, *arguments: str | Path, text: str | None = None) -> str:
        """Run kubectl, and return its output.

        Raises:
            RuntimeError: it fails.
        """
        result = self.api.kubectl(*arguments, text=text)
        if result.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(map(str, arguments))}: {result.stdout}")
        return result.stdout

    def get(self, *arguments: str) -> Any:
        """Return an object of the API, or the list of objects that matches."""
        content = json.loads(self.kubectl("get", *arguments, "-o", "json"))
        return content["items"] if content["kind"] == "List" else content

    def create(self, *objects: dict[str, Any]) -> None:
        """Create or change objects."""
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", text=json.dumps(document))

    def node(self, name: str) -> Machine:
        """Return the machine of a node."""
        return next(machine for machine in self.nodes if machine.name == name)

    def wait(self, condition: Callable[[], Any], what: str, seconds: float = 300) -> Any:
        """Wait until a function returns something true, and return it.

        Raises:
            TimeoutError: it does not in time.
            RuntimeError: a program of the cluster has ended.
        """
        end = time.monotonic() + seconds
        while not (result := condition()):
            for machine in (self.control, *self.nodes):
                machine.check()
            if time.monotonic() > end:
                events = self.api.kubectl("get", "events,pods", "-A", "-o", "wide").stdout
                raise TimeoutError(f"{what}: not after {seconds:.0f} s\n{events[-6000:]}")
            time.sleep(0.3)
        return result


@contextlib.contextmanager
def run(programs: Path, folder: Path, count: int = 2) -> Iterator[Cluster]:
    """Run a cluster, and remove everything at the end except the folder.

    Args:
        programs: the folder of ``images.build``.
        folder: an empty folder for its files, on the file system of the programs, but not below
            /run, /var/lib and /var/log.
        count: of nodes.
    """
    node_names = [f"node-{number}" for number in range(1, count + 1)]
    with machines(folder, [CONTROL, *node_names]) as (control, *nodes):
        api = control_plane.start(control, programs, node_names)
        names.start(control)
        for machine in nodes:
            images.copy(programs, machine)
            kubelet.start(machine, programs, control.folder, control.address)
        kubelet.wait_until_ready(api, nodes)
        yield Cluster(folder, control, nodes, api)
