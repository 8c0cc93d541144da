"""Keep a schedule with a cleaning after each run, and measure the disk and the checks.

    python -m benchmarks.trust clean --runs 1000

A run is a stand-in: TFX executes a pipeline of twelve nodes in this process, whose outputs have the
size of those of a tiny run, and leaves the record, the events, the log and a version as a run does.
Everything else is the scheduler's own: its decisions, its state, the removal of runs and versions.
The exit status is 1 if the workspace is over three times as large as after ten runs, or if a check
takes over two seconds.
"""

# No lazy annotations here: TFX reads them when it makes a component from a function.
import argparse
import collections
import json
import logging
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.types.standard_artifacts import Examples, Model

from regard.components.common import run_record
from regard.components.common.run_record import RunRecord
from regard.components.registry.publish import push
from regard.components.registry.records import VersionRecord
from regard.components.registry.store import size_of
from regard.core import events
from regard.pipeline import metadata_file
from regard.pipeline.config import load
from regard.pipeline.config.config import NODES
from regard.pipeline.runs import store, worker
from regard.pipeline.runs.launch import resolved_yaml
from regard.pipeline.scheduling import attempt as attempts
from regard.pipeline.scheduling import daemon as daemons
from regard.pipeline.scheduling.daemon import ScheduleDaemon
from regard.pipeline.scheduling.settings import ScheduleSettings
from regard.pipeline.scheduling.snapshot import take_snapshot
from regard.pipeline.workspace import Workspace, lock_pipeline

NAME = "tiny"
EXAMPLES_BYTES, MODEL_BYTES, OTHER_BYTES, LOG_BYTES = 500_000, 3_000_000, 20_000, 60_000
CONFIG = """
name: {name}
task: translation
data: {{root: {root}, train: "train-{{SPAN:3}}.tsv", eval: eval.tsv, test: eval.tsv}}
tokenizer: {{vocab_size: 50}}
model:
  encoder: {{type: recurrent, units: 8}}
  decoder: {{type: luong, units: 8}}
schedule: {{every: 1s{keys}}}
"""


@component
def CorpusGen(corpus: Parameter[str], examples: OutputArtifact[Examples]) -> None:
    """Write as many bytes as the examples of a tiny run have."""
    Path(examples.uri, "examples").write_bytes(os.urandom(EXAMPLES_BYTES))


@component
def Trainer(
    run: Parameter[str], examples: InputArtifact[Examples], model: OutputArtifact[Model]
) -> None:
    """Write as many bytes as the model of a tiny run has."""
    Path(model.uri, "saved_model.pb").write_bytes(os.urandom(MODEL_BYTES))


@component
def OtherNode(
    node: Parameter[str], before: InputArtifact[Examples], result: OutputArtifact[Examples]
) -> None:
    """Write as many bytes as another node of a tiny run."""
    Path(result.uri, node).write_bytes(os.urandom(OTHER_BYTES))


class Process:
    """A run that has ended."""

    pid = os.getpid()

    def wait(self, seconds: float) -> int:
        """Return the exit status."""
        return 0


def start_run(command: Sequence[str], folder: Path, home: Path) -> Process:
    """Do what a run leaves behind; the last but one argument of the command is the file."""
    time.sleep(1.0 - time.time() % 1.0)  # runs are named by the second of their start
    workspace = Workspace(home)
    config, paths = load(Path(command[-2])), workspace.pipeline(NAME)
    with lock_pipeline(paths.lock, wait=True) as lock:
        run = store.create(
            paths, RunRecord(pid=Process.pid, config=command[-2], digest=config.digest())
        )
        lock.describe(run.id)
        run.config.write_text(resolved_yaml(config))
        run.log.write_text("x" * LOG_BYTES)
        snapshot = take_snapshot(config, paths)
        generated = CorpusGen(corpus=snapshot.fingerprint)
        trained = Trainer(run=run.id, examples=generated.outputs["examples"])
        nodes = [generated]
        for name in NODES:
            if name not in ("CorpusGen", "Trainer"):
                before = nodes[-1].outputs["examples" if nodes[-1] is generated else "result"]
                nodes.append(OtherNode(node=name, before=before).with_id(name))
        connection = metadata.sqlite_metadata_connection_config(str(paths.metadata))
        pipeline = Pipeline(
            NAME, str(paths.artifacts), connection, [*nodes, trained], enable_cache=True
        )
        with mock.patch.dict(os.environ, {events.VARIABLE: str(run.events)}):
            status = worker.run(lambda: pipeline, run_id=run.id)
        if status != worker.OK:
            end = run.events.read_text()[-2000:]
            raise RuntimeError(f"run {run.id} ended with status {status}:\n{end}")
        metadata_file.store_copy(paths.metadata)
        model = max(paths.artifacts.glob("Trainer/model/*"), key=lambda path: int(path.name))
        version, _ = push(model, workspace.registry, NAME, VersionRecord(run=run.id))
        destination = {"pushed_destination": str(workspace.registry / NAME / str(version))}
        event = {"time": 0.0, "kind": "node", "node": "Pusher", "state": "done"}
        event["properties"] = {"pushed_model": destination}
        run.events.write_text(json.dumps(event) + "\n")
        fingerprints = {
            "data_fingerprint": snapshot.fingerprint,
            "word_vectors": snapshot.word_files,
        }
        result = {"status": run_record.SUCCEEDED, "pushed_version": str(version), "seconds": 1.0}
        run.update(RunRecord(**fingerprints, **result))
    return Process()


def keep_schedule(folder: Path, runs: int, keys: str) -> dict[str, list[float]]:
    """Start runs with one more span each, and return seconds and bytes after each.

    Args:
        folder: An empty folder.
        runs: The number of runs.
        keys: Further keys of the schedule.
    """
    rng, data = random.Random(1), folder / "data"
    data.mkdir()
    for name in ("eval", "train-001"):
        (data / f"{name}.tsv").write_text("a\tA\n")
    path = folder / "tiny.yaml"
    path.write_text(CONFIG.format(name=NAME, root=data, keys=keys))
    workspace, figures = Workspace(folder / "home"), {"bytes": [], "check": [], "clean": []}
    messages: collections.deque[str] = collections.deque(maxlen=10)
    daemon = ScheduleDaemon(ScheduleSettings(path), workspace, messages.append)
    with daemon.open():
        for number in range(runs):
            row = f"{rng.random()}\tA\n"
            (data / "train-001.tsv").write_text(row)
            try:
                figures["clean"].append(timed(daemon, "_clean", daemon.run_once))
            except RuntimeError as error:
                raise RuntimeError("\n".join([f"run {number}: {error}", *messages])) from error
            figures["check"].append(timed(daemon, "_evaluate", daemon.run_once))
            figures["bytes"].append(size_of(folder / "home"))
    return figures


def timed(daemon: ScheduleDaemon, method: str, call: Callable[[], int]) -> float:
    """Call a function, and return the seconds that a method of the scheduler took meanwhile."""
    seconds, real = 0.0, getattr(daemon, method)

    def measured(*arguments: Any) -> Any:
        nonlocal seconds
        started = time.monotonic()
        result = real(*arguments)
        seconds += time.monotonic() - started
        return result

    with mock.patch.object(daemon, method, measured):
        if (status := call()) != 0:
            raise RuntimeError(f"exit status {status}")
    return seconds


def main(arguments: list[str]) -> int:
    """Run the benchmark and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust clean")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--keep", type=int, default=10, help="runs and versions; 0: all")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    keys = f", keep: {options.keep}, keep_versions: {options.keep}" if options.keep else ""
    with (
        tempfile.TemporaryDirectory(prefix="trust-") as folder,
        mock.patch.dict(os.environ, {"REGARD_HOME": str(Path(folder, "home"))}),
        mock.patch.object(attempts, "start_run", start_run),
        mock.patch.object(daemons, "_SIGNAL_POLL_SECONDS", 0.0),
    ):
        figures = keep_schedule(Path(folder), options.runs, keys)
    ten, last = figures["bytes"][min(9, options.runs - 1)], figures["bytes"][-1]
    print(f"runs: {options.runs}")
    print(f"bytes after ten runs: {ten:,.0f}, at the end: {last:,.0f} ({last / ten:.2f} times)")
    for name in ("check", "clean"):
        values = sorted(figures[name])
        print(f"{name}: median {values[len(values) // 2]:.3f} s, worst {values[-1]:.3f} s")
    return int(last > 3 * ten or max(figures["check"]) > 2.0)
