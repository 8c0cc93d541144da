"""``regard run``: a pipeline in a worker process, shown live."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands import terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.config import Config
    from pipeline.outcome import Outcome
    from pipeline.progress import Progress
    from pipeline.runs import Run
    from pipeline.workspace import Workspace

RUNNERS = ("local", "beam")

ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The pipeline's YAML file.", show_default=False)
]


def run(
    config: ConfigArgument,
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="NODE", help="Run again from this node on."),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="NODE", help="Run only this node and what it needs."),
    ] = None,
    runner: Annotated[
        str, typer.Option(metavar="local|beam", help="What runs the graph.")
    ] = "local",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for another run of this pipeline to end.")
    ] = False,
    as_json: terminal.JsonOption = False,
) -> None:
    """Run a pipeline: from files to a model in the registry.

    What is already done is skipped, so the same command goes on after a failure or Ctrl-C.

    [bold]Examples[/bold]

      regard run configs/quickstart.yaml

      regard run configs/quickstart.yaml --from Trainer

      regard run configs/quickstart.yaml --to ExampleValidator

    [bold]Exit status[/bold]: 0 done; 1 a node failed; 2 the input or the disk is at fault;
    3 done, but the model is not good enough to be pushed; 130 interrupted.
    """
    raise typer.Exit(run_pipeline(Request(config, first, last, runner, wait, as_json)))


@dataclasses.dataclass(frozen=True)
class Request:
    """What the user asks ``regard run`` for, or ``regard tune``.

    With ``tuned`` it is a search: what is called with its end, and gives the exit status.
    """

    config_path: Path
    first: str | None = None
    last: str | None = None
    runner: str = "local"
    wait: bool = False
    as_json: bool = False
    tuned: Callable[[Outcome, Progress, Run], int] | None = None


def run_pipeline(request: Request) -> int:
    """Runs a pipeline in a worker, shows it, and returns the exit status.

    Raises:
        UserError: the request or the configuration is wrong, or another run is going on.
    """
    from components import provenance
    from components.trainer.member import check_chief
    from pipeline import lock, machine, runs
    from pipeline.config import load
    from pipeline.inputs import data_section
    from pipeline.workspace import Workspace

    request = request if request.tuned else _checked(request)
    config = load(request.config_path)
    if config.training.devices == "workers" and _trains(request):
        check_chief(os.environ)
    notes: list[str] = []
    # The worker would find a missing file, too, but only after TensorFlow.
    data_section(config, notes)
    workspace = Workspace.from_environment()
    paths = workspace.pipeline(config.name)
    messages = terminal.err()
    for note in notes:
        messages.print(f"data: {note}", soft_wrap=True)

    def tell(holder: dict[str, Any]) -> None:
        who = f"run {holder['run']}, process {holder['pid']}" if holder.get("run") else "a run"
        messages.print(f"Waiting for {who} of {config.name} to end …", soft_wrap=True)

    with lock.acquire(paths.lock, request.wait, tell) as held:
        record = runs.create(
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
            held.describe(record.id)
            return _run_locked(request, config, workspace, record, held.descriptor)
        except OSError as error:
            raise _told(error, record) from error


def _told(error: OSError, record: Run) -> Exception:
    """The error of a disk that is full before the worker starts or after it ends."""
    from components.errors import UserError
    from pipeline import runs
    from pipeline.runners.failures import explain

    failure = explain(error)
    with contextlib.suppress(OSError):
        record.update(status=runs.FAILED, failure=failure.fields(), ended=time.time())
    return UserError(failure.error, failure.where, failure.remedy) if failure.user else error


def _checked(request: Request) -> Request:
    """The request with the nodes' names as they are written; refuses what cannot be run."""
    from components.errors import UserError
    from pipeline.nodes import NODES
    from pipeline.runners import parts

    first, last = request.first, request.last
    if request.runner not in RUNNERS:
        raise UserError(
            f"there is no runner {request.runner!r}", "--runner", "Choose local or beam."
        )
    first = parts.check_node(first, NODES, "--from") if first else None
    last = parts.check_node(last, NODES, "--to") if last else None
    if first and last and NODES.index(first) > NODES.index(last):
        raise UserError(
            f"{first} comes after {last}, so nothing would run again",
            where="--from, --to",
            remedy=f"The nodes run in this order: {', '.join(NODES)}.",
        )
    return dataclasses.replace(request, first=first, last=last)


def _trains(request: Request) -> bool:
    """Whether the Trainer is asked for; the trials of a search have one device each."""
    from pipeline.nodes import NODES

    last = request.last or NODES[-1]
    return not request.tuned and NODES.index(last) >= NODES.index("Trainer")


def _run_locked(
    request: Request, config: Config, workspace: Workspace, run: Run, lock_descriptor: int
) -> int:
    from components.files import atomic_write
    from pipeline import live, outcome, summary
    from pipeline.nodes import nodes_of, nodes_of_search
    from pipeline.progress import Progress
    from pipeline.runners import supervise

    atomic_write(run.config, resolved_yaml(config))
    run.update(command=_command(request, run))
    started = time.monotonic()
    nodes = nodes_of_search if request.tuned else nodes_of
    state = Progress(nodes(bool(config.description.text_features)))
    console = terminal.err() if request.as_json else terminal.out()
    with live.open_view(console, f"{config.name}  run {run.id}", str(run.log)) as view:
        ending = supervise.supervise(
            supervise.worker_command(
                run,
                workspace.home,
                request.runner,
                request.first,
                request.last,
                request.tuned is not None,
            ),
            run,
            state,
            view,
            lock_descriptor,
            supervise.worker_environment(run, workspace.home),
        )
    result = outcome.judge(ending, state)
    run.update(
        status=result.status,
        failure=result.failure,
        ended=time.time(),
        seconds=round(time.monotonic() - started, 3),
        nodes={node.name: node.facts() for node in state.nodes.values()},
        **state.origin,
    )
    if request.tuned:
        return request.tuned(result, state, run)
    told = summary.summarise(run, state, str(request.config_path))
    run.update(
        data=told.get("data", {}),
        scores=told.get("scores", []),
        blessed=told.get("blessing", {}).get("blessed"),
        reason=told.get("not_pushed") or told.get("blessing", {}).get("sentence"),
        pushed_version=told.get("pushed", {}).get("version"),
    )
    if request.as_json:
        terminal.print_json(told)
    else:
        outcome.show(result, told, console, str(request.config_path))
    return result.exit_status


def _command(request: Request, run: Run) -> str:
    """What gives this run again, also when the user's own file has changed since."""
    if request.tuned:
        return shlex.join(["regard", "tune", str(run.config)])
    command = ["regard", "run", str(run.config)]
    command += ["--to", request.last] if request.last else []
    command += ["--runner", request.runner] if request.runner != RUNNERS[0] else []
    return shlex.join(command)


def resolved_yaml(config: Config) -> str:
    """The configuration with every default and absolute paths, as YAML."""
    import yaml

    content = config.model_dump(mode="json")
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
