"""Scenarios with the servers of a model; each returns the rows of a table."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.cluster.kubernetes_api import ApiServer
from benchmarks.cluster.node.images import REGARD
from benchmarks.cluster.node.load import Load
from benchmarks.cluster.node.service import NAMESPACE, Service, is_ready, restarts

Row = tuple[str, str]
_MEMORY_STEP = 150  # MiB of each process that fills the memory of a container
_FILL = f"""
import time
block = bytearray({_MEMORY_STEP} << 20)
for index in range(0, len(block), 4096):
    block[index] = 1
time.sleep(60)
"""


def ready(service: Service, volume: Path) -> Iterator[Row]:
    """The servers become ready, and the service gives requests to both."""
    start = time.monotonic()
    service.apply("1")
    cluster = service.cluster
    cluster.wait(service.ready_pods, "the first ready pod")
    yield "first pod ready", seconds_since(start)
    service.wait_until_complete()
    yield "all replicas ready", seconds_since(start)
    yield "nodes of the pods", _nodes(service)
    with service.load() as load:
        time.sleep(20)
    yield from request_rows("through the service", load)
    counts = [_count(service, pod["metadata"]["name"]) for pod in service.pods()]
    yield "requests by pod", ", ".join(map(str, counts))


def version_update(service: Service, volume: Path) -> Iterator[Row]:
    """A rolling update to another version of the model."""
    yield from _update(service, "version 1 to 2", version="2")


def image_update(service: Service, volume: Path) -> Iterator[Row]:
    """A rolling update to another image."""
    yield from _update(service, f"image {_tag(REGARD[0])} to {_tag(REGARD[1])}", image=REGARD[1])


def bad_image(service: Service, volume: Path) -> Iterator[Row]:
    """An update to an image that does not exist: the old pods stay, and a correct one follows."""
    with service.load() as load:
        service.apply("2", "registry.example.org/regard:0.1.2")
        reason = service.cluster.wait(lambda: _waiting_reason(service), "a failure of the image")
        yield "state of the new pod", reason
        time.sleep(20)
        yield "ready replicas meanwhile", str(len(service.ready_pods()))
        service.apply("2", REGARD[1])
        service.wait_until_complete()
    yield from request_rows("until the corrected update", load)


def deleted_pod(service: Service, volume: Path) -> Iterator[Row]:
    """A pod is deleted."""
    with service.load() as load:
        start = time.monotonic()
        name = service.pods()[0]["metadata"]["name"]
        service.cluster.kubectl("delete", "pod", name, "-n", NAMESPACE, "--wait=false")
        service.wait_until_complete()
        yield "all replicas ready again", seconds_since(start)
    yield from request_rows("a pod deleted", load)


def killed_server(service: Service, volume: Path) -> Iterator[Row]:
    """The server's process is killed with SIGKILL: its container restarts."""
    with service.load() as load, service.load(client=True) as client:
        pod = service.pods()[0]
        start = time.monotonic()
        _signal(service, pod, signal.SIGKILL)
        yield from _wait_for_restart(service, pod, start)
    yield from request_rows("a server killed, without retries", load)
    yield from request_rows("a server killed, with Regard's client", client)


def failed_probes(service: Service, volume: Path) -> Iterator[Row]:
    """The server stops answering (SIGSTOP): no requests, then a restart."""
    with service.load() as load, service.load(client=True) as client:
        pod = service.pods()[0]
        start = time.monotonic()
        _signal(service, pod, signal.SIGSTOP)
        address = pod["status"]["podIP"]
        service.cluster.wait(lambda: address not in service.endpoints(), "the readiness probe")
        yield "no requests to the pod after", seconds_since(start)
        yield from _wait_for_restart(service, pod, start)
    yield from request_rows("a server stopped, without retries", load)
    yield from request_rows("a server stopped, with Regard's client", client)


def memory_limit(service: Service, volume: Path) -> Iterator[Row]:
    """The container exceeds its memory: the kernel kills the server, and the container restarts."""
    with service.load() as load, service.load(client=True) as client:
        pod = service.pods()[0]
        start = time.monotonic()
        # The kernel kills the largest process; each of these is smaller than the server.
        fills = [_fill(service.cluster.api, pod["metadata"]["name"]) for _ in range(16)]
        yield from _wait_for_restart(service, pod, start)
        for process in fills:
            process.kill()
            process.wait()
    yield from request_rows("memory exceeded, without retries", load)
    yield from request_rows("memory exceeded, with Regard's client", client)


def drain(service: Service, volume: Path) -> Iterator[Row]:
    """A node is drained, then the last one, where the disruption budget keeps a pod."""
    cluster = service.cluster
    names = [machine.name for machine in cluster.nodes]
    options = ("--ignore-daemonsets", "--delete-emptydir-data")
    with service.load() as load:
        yield "nodes of the pods", _nodes(service)
        start = time.monotonic()
        cluster.kubectl("drain", names[1], *options)
        yield f"{names[1]} drained", seconds_since(start)
        service.wait_until_complete()
        yield "all replicas ready again", seconds_since(start)
        yield "nodes of the pods afterwards", _nodes(service)
        result = cluster.api.kubectl("drain", names[0], *options, "--timeout=60s")
        is_refused = result.returncode != 0 and "disruption budget" in result.stdout
        yield f"{names[0]}, the last node", "refused" if is_refused else result.stdout
        yield "ready replicas meanwhile", str(len(service.ready_pods()))
        cluster.kubectl("uncordon", *names)
        service.wait_until_complete()
    yield from request_rows("two nodes drained", load)


def restarted_node(service: Service, volume: Path) -> Iterator[Row]:
    """kubelet and containerd of a node are killed and started again: the pods do not notice."""
    node = service.cluster.nodes[1]
    with service.load() as load:
        before = [(pod["metadata"]["uid"], restarts(pod)) for pod in service.pods()]
        for program in ("kubelet", "containerd"):
            node.restart(program)
        time.sleep(30)
        service.wait_until_complete()
        after = [(pod["metadata"]["uid"], restarts(pod)) for pod in service.pods()]
        yield "the same containers", "yes" if before == after else "no"
    yield from request_rows("kubelet and containerd killed", load)


def _update(service: Service, name: str, **changes: str) -> Iterator[Row]:
    settings = {"version": "2", **changes}
    with service.load() as load:
        start = time.monotonic()
        service.apply(**settings)
        service.wait_until_complete()
        yield f"update of {name}", seconds_since(start)
    yield from request_rows(name, load)
    container = service.pods()[0]["spec"]["containers"][0]
    yield "arguments and image", f"{container['args'][1]}, {container['image']}"


def _wait_for_restart(service: Service, pod: dict[str, Any], start: float) -> Iterator[Row]:
    """Wait until a pod's container has restarted and is ready."""
    name, before = pod["metadata"]["name"], restarts(pod)

    def current() -> Any:
        return service.cluster.get("pod", name, "-n", NAMESPACE)

    service.cluster.wait(lambda: restarts(current()) > before, "the restart", 600)
    yield "container restarted", seconds_since(start)
    service.cluster.wait(lambda: is_ready(current()), "a ready pod", 600)
    yield "ready again", seconds_since(start)
    (status,) = current()["status"]["containerStatuses"]
    last = status["lastState"]["terminated"]
    yield "recorded reason", f"{last['reason']}, status {last['exitCode']}"


def request_rows(name: str, load: Load) -> Iterator[Row]:
    result = load.result
    reasons = ", ".join(f"{count} {reason}" for reason, count in result.failures.items())
    failed = f"{result.failed} failed" + (f" ({reasons})" if reasons else "")
    yield f"requests: {name}", f"{result.requests}, {failed}"
    milliseconds = [f"{value * 1000:.0f}" for value in (result.p50, result.p99, result.maximum)]
    yield "p50, p99, maximum", f"{', '.join(milliseconds)} ms"


def seconds_since(start: float) -> str:
    return f"{time.monotonic() - start:.0f} s"


def _nodes(service: Service) -> str:
    return ", ".join(sorted(pod["spec"].get("nodeName", "none") for pod in service.pods()))


def _tag(image: str) -> str:
    return image.rpartition(":")[2]


def _count(service: Service, name: str) -> int:
    """Return how many requests a pod has answered, from its metrics."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}:8501/proxy/monitoring/prometheus/metrics"
    text = service.cluster.kubectl("get", "--raw", path)
    lines = [line for line in text.splitlines() if "request_count" in line and line[0] != "#"]
    return int(sum(float(line.split()[-1]) for line in lines))


def _waiting_reason(service: Service) -> str:
    """Return why the image of a container cannot be used, or an empty text."""
    for pod in service.pods():
        for status in pod["status"].get("containerStatuses", ()):
            reason = str(status["state"].get("waiting", {}).get("reason", ""))
            if reason in ("ErrImagePull", "ImagePullBackOff"):
                return reason
    return ""


def _signal(service: Service, pod: dict[str, Any], number: signal.Signals) -> None:
    """Send a signal to all processes of a pod's server."""
    pids = service.pids(pod)
    if not pids:
        raise RuntimeError("The server's processes are not in the expected control group.")
    for pid in pids:
        os.kill(pid, number)


def _fill(api: ApiServer, pod: str) -> subprocess.Popen[bytes]:
    command = api.command("exec", "-n", NAMESPACE, pod, "--", "python", "-c", _FILL)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
