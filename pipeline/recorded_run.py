"""Run a pipeline in a worker process and record it: the function behind ``regard run``."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from regard.components.trainer.distributed_worker import check_chief
from regard.core import events, provenance
from regard.core.errors import UserError
from regard.core.events import Failure
from regard.core.files import atomic_write
from regard.core.locks import LockHolder
from regard.core.processes import describe_exit
from regard.core.yaml_text import to_yaml
from regard.pipeline import run_store, supervisor
from regard.pipeline.cached_run import metadata_state, repeat
from regard.pipeline.config import Config, load
from regard.pipeline.context import check_start, resolve_data
from regard.pipeline.doctor import machine
from regard.pipeline.progress import CACHED, STOPPED, Progress
from regard.pipeline.run_store import Run, RunRecord
from regard.pipeline.run_summary import summarize, training_record
from regard.pipeline.runners.failures import as_user_error, explain
from regard.pipeline.runners.local import check_node
from regard.pipeline.supervisor import Ending, View
from regard.pipeline.tracking import record_run
from regard.pipeline.workspace import Workspace, lock_pipeline

Runner = Literal["local", "beam"]
USER_ERROR = 2
_EXIT_STATUS = {
    run_store.SUCCEEDED: 0,
    run_store.FAILED: 1,
    run_store.NOT_BLESSED: 3,
    run_store.INTERRUPTED: 130,
}
_MEMORY_KEYS = {"Trainer": "training.batch_tokens", "Predictor": "evaluation.batch_size"}


@dataclasses.dataclass(frozen=True)
class RunRequest:
    """The arguments of ``regard run`` or, with ``tune``, of ``regard tune``.

    Attributes:
        config: The YAML file, or a loaded configuration.
        first: Run this node and its descendants again.
        last: Run only this node and its ancestors.
        wait: Whether to wait for another run of the pipeline to end.
        tune: Whether to run the Tuner in place of the Trainer.
        publish_anyway: Whether to publish a model that does not pass evaluation.
    """

    config: Path | Config
    first: str | None = None
    last: str | None = None
    runner: Runner = "local"
    wait: bool = False
    tune: bool = False
    publish_anyway: bool = False


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended: the status for ``run.json``, and why it failed."""

    status: str
    failure: Failure | None = None

    @property
    def exit_status(self) -> int:
        """The exit status for the shell."""
        return USER_ERROR if (self.failure or {}).get("user") else _EXIT_STATUS[self.status]


@dataclasses.dataclass(frozen=True)
class RunResult:
    """A completed run.

    Attributes:
        run: its folder, with ``id``, ``directory``, ``log`` and ``config``.
        outcome: how it ended.
        progress: the nodes with their outputs.
        summary: the output of ``regard run --json``.
    """

    run: Run
    outcome: Outcome
    progress: Progress = dataclasses.field(repr=False)
    summary: dict[str, Any] = dataclasses.field(repr=False)

    @property
    def status(self) -> str:
        """``succeeded``, or ``not blessed`` if the model did not pass evaluation."""
        return self.outcome.status

    @property
    def metrics(self) -> dict[str, float | None]:
        """The metrics of the test split by name; None if a metric is undefined."""
        return {score["name"]: score["value"] for score in self.summary.get("scores", [])}

    @property
    def history(self) -> list[dict[str, float]]:
        """The training curves, one mapping per evaluation with ``step``, ``loss`` and so on."""
        return list(training_record(self.progress).get("history", []))

    @property
    def version(self) -> str | None:
        """The version in the registry; None if the model was not published."""
        return self.summary.get("pushed", {}).get("version")

    @property
    def model(self) -> Path | None:
        """The SavedModel, that is the published version, or else what the Trainer exported."""
        trained = self.progress.outputs("Trainer").get("model")
        path = self.summary.get("pushed", {}).get("path") or trained
        return Path(path) if path else None

    @property
    def report(self) -> Path | None:
        """The HTML report; None if the run ended before it."""
        return Path(self.summary["report"]) if "report" in self.summary else None


class Display(Protocol):
    """Displays the messages and the progress of a run."""

    def message(self, text: str) -> None:
        """Show a message before the run starts."""

    def view(self, title: str, log: str) -> contextlib.AbstractContextManager[View]:
        """Open the view of the run."""


def run_pipeline(request: RunRequest, display: Display) -> RunResult:
    """Run a pipeline in a worker process and record the run.

    Raises:
        UserError: The request or the configuration is invalid, or another run is in progress.
    """
    config = load(request.config) if isinstance(request.config, Path) else request.config
    nodes = config.search_nodes if request.tune else config.nodes
    request = _validate(request, nodes)
    includes_trainer = "Trainer" in nodes[: nodes.index(request.last or nodes[-1]) + 1]
    if config.training.devices == "workers" and includes_trainer:
        check_chief(os.environ)
    notes: list[str] = []
    resolve_data(config, notes)  # the worker would find a missing file only after a slow start
    workspace = Workspace.from_environment()
    check_start(config, workspace)
    paths = workspace.pipeline(config.name)
    for note in notes:
        display.message(f"data: {note}")

    def report_wait(holder: LockHolder) -> None:
        who = f"run {holder['run']}, process {holder['pid']}" if holder.get("run") else "a run"
        display.message(f"Waiting for {who} of {config.name} to end …")

    with lock_pipeline(paths.lock, request.wait, report_wait) as lock:
        run = run_store.create(
            paths,
            digest=config.digest(),
            runner=request.runner,
            first=request.first,
            last=request.last,
            publish_anyway=request.publish_anyway,
            pid=os.getpid(),
            seed=config.training.seed,
            regard=provenance.code_version(),
            stack=provenance.stack_versions(),
            machine=machine.facts(),
        )
        try:
            lock.describe(run.id)
            result = _run_locked(request, config, nodes, run, lock.descriptor, display)
        except OSError as error:
            raise _explain_disk_error(error, run) from error
    has_news = any(node.state != CACHED for node in result.progress.nodes.values())
    if has_news and not request.tune and result.outcome.status != run_store.INTERRUPTED:
        for message in record_run(run, config.tracking):
            display.message(message)
    return result


def judge(ending: Ending, state: Progress) -> Outcome:
    """Derive the outcome from the end of the worker and the progress of the nodes."""
    if ending.status != 0 and ending.interrupted:
        return Outcome(run_store.INTERRUPTED)
    if ending.status != 0:
        return Outcome(run_store.FAILED, state.failure or _unreported_failure(ending.status, state))
    pushed = "Pusher" not in state.nodes or state.pushed_model().get("pushed")
    return Outcome(run_store.SUCCEEDED if pushed else run_store.NOT_BLESSED)


def resolved_yaml(config: Config) -> str:
    """The configuration with all defaults, absolute paths and references, as YAML."""
    return to_yaml(config.recorded())


def _validate(request: RunRequest, nodes: Sequence[str]) -> RunRequest:
    """Validate the nodes, and correct the case of their names."""
    first, last = request.first, request.last
    first = check_node(first, nodes, "--from") if first else None
    last = check_node(last, nodes, "--to") if last else None
    if first and last and nodes.index(first) > nodes.index(last):
        message = f"{first} runs after {last}, so no node would run again."
        raise UserError(message, "--from, --to", f"The order of the nodes is {', '.join(nodes)}.")
    return dataclasses.replace(request, first=first, last=last)


def _run_locked(
    request: RunRequest,
    config: Config,
    nodes: Sequence[str],
    run: Run,
    lock_descriptor: int,
    display: Display,
) -> RunResult:
    atomic_write(run.config, resolved_yaml(config))
    path = request.config if isinstance(request.config, Path) else run.config
    run.update(command=_command(request, run), config=str(path.absolute()))
    started = time.monotonic()
    state = Progress(nodes)
    with display.view(f"{config.name}  run {run.id}", str(run.log)) as view:
        is_whole = not (request.first or request.last or request.tune)
        is_repeatable = is_whole and request.runner == "local"
        fields = repeat(config, run, request.publish_anyway) if is_repeatable else {}
        if fields:
            for event, _ in events.read(run.events):
                state.apply(event)
                view.event(event, state)
            ending = Ending(0, interrupted=False)
        else:
            ending = supervisor.supervise(
                supervisor.worker_command(run), run, state, view, lock_descriptor
            )
            with contextlib.suppress(OSError):  # the worker may have failed early
                fields = {"metadata": metadata_state(run)}
    outcome = judge(ending, state)
    end: RunRecord = {
        "status": outcome.status,
        "failure": outcome.failure,
        "ended": time.time(),
        "seconds": round(time.monotonic() - started, 3),
        "nodes": {node.name: node.facts() for node in state.nodes.values()},
        **state.origin,
        **fields,
    }
    run.update(**end)
    summary = summarize(run, state, str(path))
    if not request.tune:
        blessing = summary.get("blessing", {})
        run.update(
            data=summary.get("data", {}),
            scores=summary.get("scores", []),
            blessed=blessing.get("blessed"),
            reason=summary.get("not_pushed") or blessing.get("sentence"),
            pushed_version=summary.get("pushed", {}).get("version"),
        )
    return RunResult(run, outcome, state, summary)


def _explain_disk_error(error: OSError, run: Run) -> Exception:
    """Record a full disk before the worker starts or after it ends as the failure of the run."""
    with contextlib.suppress(OSError):
        run.update(status=run_store.FAILED, failure=explain(error), ended=time.time())
    return as_user_error(error) or error


def _command(request: RunRequest, run: Run) -> str:
    """The command that repeats this run with its resolved configuration."""
    if request.tune:
        return shlex.join(["regard", "tune", str(run.config)])
    command = ["regard", "run", str(run.config)]
    command += ["--to", request.last] if request.last else []
    command += ["--runner", request.runner] if request.runner != "local" else []
    command += ["--publish-anyway"] if request.publish_anyway else []
    return shlex.join(command)


def _unreported_failure(status: int, state: Progress) -> Failure:
    """The failure of a worker that ended without an event about it: killed, or crashed."""
    node = next((node.name for node in state.nodes.values() if node.state == STOPPED), None)
    failure: Failure = {"error": f"the worker process {describe_exit(status)}"}
    if node is not None:
        failure["node"] = node
    if status == -signal.SIGKILL:
        key = _MEMORY_KEYS.get(node or "")
        failure["remedy"] = f"Use more memory{f', or reduce {key}' if key else ''}."
    elif status == USER_ERROR:  # the worker could not write an event about the failure
        failure["error"] = "the reason could not be recorded; the disk may be full"
        failure["remedy"] = "Free some disk space."
        failure["user"] = True
    return failure
