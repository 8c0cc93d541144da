"""Run a pipeline in a worker process and record it: the function behind ``regard run``."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from regard.components.common.child_process import describe_exit
from regard.components.common.errors import UserError
from regard.pipeline import run_store, supervisor
from regard.pipeline.config.nodes import NODES, nodes_of, nodes_of_search
from regard.pipeline.progress import STOPPED, Failure, Progress
from regard.pipeline.run_store import Run
from regard.pipeline.run_summary import RunSummary, summarize
from regard.pipeline.runners import partial_run
from regard.pipeline.supervisor import Ending, View
from regard.pipeline.workspace import Workspace, lock_pipeline

if TYPE_CHECKING:
    from regard.pipeline.config import Config
    from regard.serving.locks import LockHolder

RUNNERS = ("local", "beam")
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
        config_path: The YAML file.
        first: Run this node and its descendants again.
        last: Run only this node and its ancestors.
        runner: ``local`` or ``beam``.
        wait: Whether to wait for another run of the pipeline to end.
        tune: Whether to run the Tuner in place of the Trainer.
    """

    config_path: Path
    first: str | None = None
    last: str | None = None
    runner: str = RUNNERS[0]
    wait: bool = False
    tune: bool = False


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended: the status for ``run.json`` and the exit status for the shell."""

    status: str
    exit_status: int
    failure: Failure | None = None


@dataclasses.dataclass(frozen=True)
class RunResult:
    """A completed run."""

    run: Run
    outcome: Outcome
    progress: Progress
    summary: RunSummary


class Display(Protocol):
    """Displays the messages and the progress of a run."""

    def message(self, text: str) -> None:
        """Show a message before the run starts."""

    def view(self, title: str, log: str) -> contextlib.AbstractContextManager[View]:
        """Open the view of the run."""


class NoDisplay:
    """Displays nothing, for use from Python."""

    def message(self, text: str) -> None:
        """Ignore the text."""

    @contextlib.contextmanager
    def view(self, title: str, log: str) -> Iterator[View]:
        """Ignore the run."""
        yield self

    def event(self, event: object, state: Progress) -> None:
        """Ignore the event."""

    def refresh(self, state: Progress) -> None:
        """Ignore the progress."""

    def say(self, text: str) -> None:
        """Ignore the text."""


def run_pipeline(request: RunRequest, display: Display | None = None) -> RunResult:
    """Run a pipeline in a worker process and record the run.

    Raises:
        UserError: The request or the configuration is invalid, or another run is in progress.
    """
    from regard.components.common import provenance
    from regard.components.trainer.distributed_worker import check_chief
    from regard.pipeline.config import load
    from regard.pipeline.context import resolve_data
    from regard.pipeline.doctor import machine

    display = display or NoDisplay()
    request = request if request.tune else _validate(request)
    config = load(request.config_path)
    if config.training.devices == "workers" and _includes_trainer(request):
        check_chief(os.environ)
    notes: list[str] = []
    resolve_data(config, notes)  # the worker would find a missing file only after a slow start
    workspace = Workspace.from_environment()
    paths = workspace.pipeline(config.name)
    for note in notes:
        display.message(f"data: {note}")

    def report_wait(holder: LockHolder) -> None:
        who = f"run {holder['run']}, process {holder['pid']}" if holder.get("run") else "a run"
        display.message(f"Waiting for {who} of {config.name} to end …")

    with lock_pipeline(paths.lock, request.wait, report_wait) as lock:
        run = run_store.create(
            paths,
            config=str(request.config_path.absolute()),
            digest=config.digest(),
            runner=request.runner,
            first=request.first,
            last=request.last,
            pid=os.getpid(),
            seed=config.training.seed,
            regard=provenance.code_version(),
            stack=provenance.stack_versions(),
            machine=machine.facts(),
        )
        try:
            lock.describe(run.id)
            return _run_locked(request, config, workspace, run, lock.descriptor, display)
        except OSError as error:
            raise _explain_disk_error(error, run) from error


def judge(ending: Ending, state: Progress) -> Outcome:
    """Derive the outcome from the end of the worker and the progress of the nodes."""
    if ending.interrupted and ending.status != 0:
        return Outcome(run_store.INTERRUPTED, _EXIT_STATUS[run_store.INTERRUPTED])
    if ending.status != 0:
        failure = state.failure or _unreported_failure(ending.status, state)
        exit_status = USER_ERROR if failure.get("user") else _EXIT_STATUS[run_store.FAILED]
        return Outcome(run_store.FAILED, exit_status, failure)
    pusher = state.nodes.get("Pusher")
    pushed = pusher is None or pusher.properties.get("pushed_model", {}).get("pushed")
    status = run_store.SUCCEEDED if pushed else run_store.NOT_BLESSED
    return Outcome(status, _EXIT_STATUS[status])


def resolved_yaml(config: Config) -> str:
    """The configuration with all defaults and absolute paths, as YAML."""
    from regard.components.common.yaml_text import to_yaml

    return to_yaml(config.model_dump(mode="json"))


def _validate(request: RunRequest) -> RunRequest:
    """Validate the runner and the nodes, and correct the case of the nodes' names."""
    if request.runner not in RUNNERS:
        raise UserError(
            f"Unknown runner {request.runner!r}.", "--runner", f"Use {' or '.join(RUNNERS)}."
        )
    first, last = request.first, request.last
    first = partial_run.check_node(first, NODES, "--from") if first else None
    last = partial_run.check_node(last, NODES, "--to") if last else None
    if first and last and NODES.index(first) > NODES.index(last):
        raise UserError(
            f"{first} runs after {last}, so no node would run again.",
            where="--from, --to",
            remedy=f"The order of the nodes is {', '.join(NODES)}.",
        )
    return dataclasses.replace(request, first=first, last=last)


def _includes_trainer(request: RunRequest) -> bool:
    """Whether the Trainer runs; the trials of a search use one device each."""
    last = request.last or NODES[-1]
    return not request.tune and NODES.index(last) >= NODES.index("Trainer")


def _run_locked(
    request: RunRequest,
    config: Config,
    workspace: Workspace,
    run: Run,
    lock_descriptor: int,
    display: Display,
) -> RunResult:
    from regard.components.common.files import atomic_write

    atomic_write(run.config, resolved_yaml(config))
    run.update(command=_command(request, run))
    started = time.monotonic()
    nodes = nodes_of_search if request.tune else nodes_of
    state = Progress(nodes(bool(config.description.text_features)))
    with display.view(f"{config.name}  run {run.id}", str(run.log)) as view:
        ending = supervisor.supervise(
            supervisor.worker_command(
                run, workspace.home, request.runner, request.first, request.last, request.tune
            ),
            run,
            state,
            view,
            lock_descriptor,
            supervisor.worker_environment(run, workspace.home),
        )
    outcome = judge(ending, state)
    run.update(
        status=outcome.status,
        failure=outcome.failure,
        ended=time.time(),
        seconds=round(time.monotonic() - started, 3),
        nodes={node.name: node.facts() for node in state.nodes.values()},
    )
    run.update(**state.origin)
    summary = summarize(run, state, str(request.config_path))
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
    from regard.pipeline.runners.failures import explain

    failure = explain(error)
    with contextlib.suppress(OSError):
        run.update(status=run_store.FAILED, failure=failure, ended=time.time())
    if not failure.get("user"):
        return error
    return UserError(failure["error"], failure.get("where"), failure.get("remedy"))


def _command(request: RunRequest, run: Run) -> str:
    """The command that repeats this run with its resolved configuration."""
    if request.tune:
        return shlex.join(["regard", "tune", str(run.config)])
    command = ["regard", "run", str(run.config)]
    command += ["--to", request.last] if request.last else []
    command += ["--runner", request.runner] if request.runner != RUNNERS[0] else []
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
