"""Scenarios that train and publish on the cluster, while servers of the model answer requests."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.cluster.image import ROOT
from benchmarks.cluster.node.service import MODEL, NAMESPACE, Service, restarts
from benchmarks.cluster.node.serving_scenarios import Row, request_rows, seconds_since

_DOCS = ROOT / "docs"
_MINUTES = 60.0
_JOB = "batch.kubernetes.io/job-name=regard-training"


def cronjob(service: Service, volume: Path) -> Iterator[Row]:
    """The CronJob of `docs/kubernetes-cronjob.yaml` publishes a version that the servers take."""
    _serve_newest(service)
    _change(volume, max_steps=300)
    last = max(_versions(volume))
    with service.load() as load:
        _apply(service, "kubernetes-cronjob.yaml")
        # The rendered schedule would make the benchmark wait for up to ten minutes.
        patch = json.dumps({"spec": {"schedule": "* * * * *"}})
        command = ("patch", "cronjob", "regard-retraining", "-n", NAMESPACE, "-p", patch)
        service.cluster.kubectl(*command)
        start = time.monotonic()
        yield from _wait_for_version(service, volume, last, start)
        service.cluster.kubectl("delete", "cronjob", "regard-retraining", "-n", NAMESPACE)
    yield from request_rows("during the retraining", load)


def scheduler(service: Service, volume: Path) -> Iterator[Row]:
    """The scheduler of `docs/kubernetes-scheduler.yaml` resumes after its pod was killed."""
    _serve_newest(service)
    _change(volume, max_steps=600)
    last = max(_versions(volume))
    with service.load() as load:
        _apply(service, "kubernetes-scheduler.yaml")
        start, before = time.monotonic(), _checkpoints(volume)
        service.cluster.wait(lambda: _checkpoints(volume) - before, "a checkpoint", 10 * _MINUTES)
        yield "first checkpoint", seconds_since(start)
        (pod,) = _pods(service, "app.kubernetes.io/name=regard-scheduler")
        for pid in service.pids(pod):
            os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()

        def is_restarted() -> bool:
            (current,) = _pods(service, "app.kubernetes.io/name=regard-scheduler")
            return restarts(current) > restarts(pod)

        service.cluster.wait(is_restarted, "the restart of the scheduler")
        yield "scheduler restarted after SIGKILL", seconds_since(killed)
        yield from _wait_for_version(service, volume, last, start)
        yield "the training resumed from", _resumed_from(volume)
        service.cluster.kubectl("delete", "deployment", "regard-scheduler", "-n", NAMESPACE)
    yield from request_rows("during the retraining", load)


def workers(service: Service, volume: Path) -> Iterator[Row]:
    """The Job of `docs/kubernetes-training.yaml` trains with two workers on two nodes."""
    _change(volume, max_steps=900, devices="workers")
    _apply(service, "kubernetes-training.yaml")
    yield from _wait_for_job(service, volume, time.monotonic())


def lost_worker(service: Service, volume: Path) -> Iterator[Row]:
    """The same Job, while a worker is killed with SIGKILL in the middle of the training."""
    _change(volume, max_steps=1500, devices="workers")
    start, before = time.monotonic(), _checkpoints(volume)
    _apply(service, "kubernetes-training.yaml")
    service.cluster.wait(lambda: _checkpoints(volume) - before, "a checkpoint", 10 * _MINUTES)
    (pod,) = _pods(service, f"{_JOB},batch.kubernetes.io/job-completion-index=1")
    for pid in service.pids(pod):
        os.kill(pid, signal.SIGKILL)
    yield "worker 1 killed", seconds_since(start)
    yield from _wait_for_job(service, volume, start)
    yield "the training resumed from", _resumed_from(volume)


def _wait_for_job(service: Service, volume: Path, start: float) -> Iterator[Row]:
    """Wait until the Job has ended, and remove it."""
    last, job = max(_versions(volume)), ("job", "regard-training", "-n", NAMESPACE)

    def conditions() -> list[str]:
        items = service.cluster.get(*job)["status"].get("conditions", ())
        states = [item["type"] for item in items if item["status"] == "True"]
        return [state for state in states if state in ("Complete", "Failed")]

    (state,) = service.cluster.wait(conditions, "the Job", 20 * _MINUTES)
    yield "Job", f"{state} after {seconds_since(start)}"
    pods = _pods(service, _JOB)
    yield "nodes of all pods", ", ".join(sorted(pod["spec"]["nodeName"] for pod in pods))
    output = service.cluster.kubectl("logs", "-n", NAMESPACE, "-l", _JOB, "--tail=-1")
    match = re.search(r"\d+ workers train together", output)
    yield "message of the Trainer", match[0] if match else output[-1000:]
    newest = max(_versions(volume))
    yield "version published", str(newest) if newest > last else "no"
    service.cluster.kubectl("delete", *job)


def _serve_newest(service: Service) -> None:
    service.apply()
    service.wait_until_complete()


def _apply(service: Service, name: str) -> None:
    service.cluster.kubectl("apply", "-n", NAMESPACE, "-f", _DOCS / name)


def _change(volume: Path, max_steps: int, devices: str = "") -> None:
    """Write `pipeline.yaml` with more steps, which is a reason for a run."""
    path = volume / "pipeline.yaml"
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"\n  devices: .*", "", text)
    steps = f"max_steps: {max_steps}" + (f"\n  devices: {devices}" if devices else "")
    text, count = re.subn(r"max_steps: \d+", steps, text)
    if count != 1:
        raise RuntimeError("pipeline.yaml has no training.max_steps.")
    if "\nschedule:" not in text:
        # The scheduler counts the minutes from the last check, also from one of the CronJob.
        text += "\nschedule: {every: 1m}\n"
    path.write_text(text, encoding="utf-8")


def _versions(volume: Path) -> list[int]:
    folder = volume / "registry" / MODEL
    return [int(path.name) for path in folder.iterdir() if path.name.isdecimal()]


def _wait_for_version(service: Service, volume: Path, last: int, start: float) -> Iterator[Row]:
    """Wait until a version is published, and until all servers have loaded it."""
    cluster = service.cluster
    new = cluster.wait(
        lambda: [number for number in _versions(volume) if number > last],
        "a new version",
        20 * _MINUTES,
    )
    yield f"version {new[0]} published", seconds_since(start)
    published = time.monotonic()
    cluster.wait(
        lambda: all(str(new[0]) in _served(service, pod) for pod in service.ready_pods()),
        "the new version on all servers",
    )
    yield "served by all replicas, after the publication", seconds_since(published)


def _served(service: Service, pod: dict[str, Any]) -> list[str]:
    """Return the versions that a pod serves."""
    name = pod["metadata"]["name"]
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}:8501/proxy/v1/models/{MODEL}"
    states = json.loads(service.cluster.kubectl("get", "--raw", path))["model_version_status"]
    return [state["version"] for state in states if state["state"] == "AVAILABLE"]


def _pods(service: Service, selector: str) -> list[dict[str, Any]]:
    pods: list[dict[str, Any]] = service.cluster.get("pods", "-n", NAMESPACE, "-l", selector)
    return pods


def _checkpoints(volume: Path) -> set[Path]:
    """Return the last checkpoint of each training."""
    return set((volume / "pipelines" / MODEL / "checkpoints").glob("*/last.npz"))


def _resumed_from(volume: Path) -> str:
    """Return where the training of the last run resumed, from the events of the run."""
    runs = sorted((volume / "pipelines" / MODEL / "runs").iterdir())
    text = (runs[-1] / "events.jsonl").read_text(encoding="utf-8")
    match = re.search(r"resumed at (step \d+)", text)
    return match[1] if match else "the beginning"
