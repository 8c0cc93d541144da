"""Start the worker process of a run, wait for it and record it: the function behind ``regard run``.

The worker (`regard.pipeline.runs.worker`) reads the resolved configuration, builds the graph
(`regard.pipeline.graph`) and runs it with TFX.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from regard.components.common.run_progress import Progress
from regard.components.common.run_record import CACHED, FAILED, INTERRUPTED, RunRecord
from regard.components.trainer.distributed_worker import check_chief
from regard.core import provenance
from regard.core.errors import UserError
from regard.core.files import atomic_write
from regard.core.locks import LockHolder
from regard.core.yaml_text import to_yaml
from regard.pipeline.config import Config, load
from regard.pipeline.context import check_start, resolve_data
from regard.pipeline.doctor import machine
from regard.pipeline.metadata_store import metadata_store, new_run_context
from regard.pipeline.runners.failures import as_user_error, explain
from regard.pipeline.runners.local import check_node
from regard.pipeline.runs import store, supervise
from regard.pipeline.runs.cached import repeat
from regard.pipeline.runs.outcome import Outcome, judge
from regard.pipeline.runs.store import Run
from regard.pipeline.runs.summary import summarize, training_record
from regard.pipeline.runs.supervise import Ending, View
from regard.pipeline.runs.tracking import record_run
from regard.pipeline.workspace import Workspace, lock_pipeline

Runner = Literal["local", "beam"]


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
class RunResult:
    """A completed run.

    Attributes:
        run: the folder of the run, with ``id``, ``directory``, ``log`` and ``config``.
        outcome: how it ended.
        progress: the nodes with their outputs.
        summary: the output of ``regard run --json``.
    """

    run: Run
    outcome: Outcome
    progress: Progress
    summary: dict[str, Any]

    def __repr__(self) -> str:
        facts = f"{self.run.full_id!r}, status={self.status!r}, metrics={self.metrics}"
        return f"RunResult({facts}, version={self.version!r})"

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
        check_chief(os.environ, config.training.backend)
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
        facts = RunRecord(
            digest=config.digest(),
            runner=request.runner,
            first=request.first,
            last=request.last,
            publish_anyway=request.publish_anyway,
            pid=os.getpid(),
            seed=config.training.seed,
            values=config.origin.assignments,
            regard=provenance.code_version(),
            stack=provenance.stack_versions(),
            machine=machine.facts(),
        )
        run = store.create(paths, facts)
        try:
            lock.describe(run.id)
            if config.metadata.address:
                run.update(RunRecord(context=new_run_context(run)))
            result = _run_locked(request, config, nodes, run, lock.descriptor, display)
        except OSError as error:
            raise _explain_disk_error(error, run) from error
    has_news = any(node.state != CACHED for node in result.progress.nodes.values())
    if has_news and not request.tune and result.outcome.status != INTERRUPTED:
        for message in record_run(run, config.tracking):
            display.message(message)
    return result


def resolved_yaml(config: Config) -> str:
    """The configuration with all defaults, absolute paths and references, as YAML."""
    return to_yaml(config.recorded())


def _validate(request: RunRequest, nodes: Sequence[str]) -> RunRequest:
    """Validate the nodes, and correct the case of their names."""
    first = check_node(request.first, nodes, "--from") if request.first else None
    last = check_node(request.last, nodes, "--to") if request.last else None
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
    """Run the worker, unless all nodes are cached, and record how the run ends."""
    atomic_write(run.config, resolved_yaml(config))
    path = Path(config.origin.file or run.config)
    run.update(RunRecord(command=_command(request, run), config=str(path.absolute())))
    started = time.monotonic()
    state = Progress(nodes)
    with display.view(f"{config.name}  run {run.id}", str(run.log)) as view:
        is_whole = not (request.first or request.last or request.tune)
        is_repeatable = is_whole and request.runner == "local"
        executions = repeat(config, run, request.publish_anyway) if is_repeatable else None
        if executions is not None:
            supervise.follow_events(run, state, view)
            ending = Ending(0, interrupted=False)
        else:
            command = supervise.worker_command(run)
            ending = supervise.supervise(command, run, state, view, lock_descriptor)
            metadata = metadata_store(config.metadata, run.workspace.pipeline(run.name))
            with contextlib.suppress(OSError, UserError):  # the worker may have failed early
                executions = RunRecord(metadata=metadata.state())
    outcome = judge(ending, state)
    if (failure := outcome.failure) is not None:  # the worker knows no lines of the file
        failure = dataclasses.replace(failure, where=config.locate(failure.where))
        outcome = dataclasses.replace(outcome, failure=failure)
    end = RunRecord(
        status=outcome.status,
        failure=outcome.failure,
        ended=time.time(),
        seconds=round(time.monotonic() - started, 3),
        nodes=state.nodes,
        **state.origin.to_dict(),
    )
    # At once: a finished run without the origin of its executions would lose their outputs.
    run.update(end if executions is None else end.with_changes(executions))
    repeated = ["regard", "run", *(config.origin.arguments or [str(run.config)])]
    summary = summarize(run, state, shlex.join(repeated))
    if not request.tune:
        run.update(_results(summary))
    return RunResult(run, outcome, state, summary)


def _results(summary: Mapping[str, Any]) -> RunRecord:
    """The results of a run, as its record stores them."""
    blessing = summary.get("blessing", {})
    return RunRecord(
        data=summary.get("data", {}),
        scores=summary.get("scores", []),
        blessed=blessing.get("blessed"),
        reason=summary.get("not_pushed") or blessing.get("sentence"),
        pushed_version=summary.get("pushed", {}).get("version"),
    )


def _explain_disk_error(error: OSError, run: Run) -> Exception:
    """Record a full disk before the worker starts or after it ends as the failure of the run."""
    with contextlib.suppress(OSError):
        run.update(RunRecord(status=FAILED, failure=explain(error), ended=time.time()))
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
