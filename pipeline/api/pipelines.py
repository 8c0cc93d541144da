"""Run, tune, compare and check pipelines from Python."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Sequence
from pathlib import Path

from regard.components.common.run_record import INTERRUPTED
from regard.core.errors import UserError, class_of
from regard.core.files import atomic_write
from regard.pipeline.cli import terminal
from regard.pipeline.cli.rendering.live import TerminalDisplay
from regard.pipeline.compare.matrix import read_comparison
from regard.pipeline.compare.results import ComparisonResults
from regard.pipeline.compare.run import run_comparison
from regard.pipeline.config import Config
from regard.pipeline.config.document import ConfigSource
from regard.pipeline.config.load import load
from regard.pipeline.lineage.run_report import write_report
from regard.pipeline.runs import store
from regard.pipeline.runs.launch import (
    Runner,
    RunRequest,
    RunResult,
    resolved_yaml,
    run_pipeline,
)
from regard.pipeline.scheduling.attempt import run_command
from regard.pipeline.scheduling.daemon import ScheduleDaemon, message_line
from regard.pipeline.scheduling.plan import SchedulePlan, plan_schedule
from regard.pipeline.scheduling.settings import ScheduleSettings
from regard.pipeline.scheduling.state import Attempt, read_state
from regard.pipeline.tuning import tune as tuning
from regard.pipeline.tuning.tune import TuneResult
from regard.pipeline.validation import Validation
from regard.pipeline.validation import validate as validate_data
from regard.pipeline.workspace import Workspace

AnyPath = str | os.PathLike[str]


def load_config(source: ConfigSource) -> Config:
    """Load and check the configuration of a pipeline.

    Args:
        source: The YAML file, or its content as a mapping with paths relative to the working
            directory.

    Returns:
        The configuration. `Config.with_values` returns a copy with other values.

    Raises:
        UserError: A value is invalid. The message names every problem with its key.
    """
    return load(source)


def validate(config: Config | AnyPath) -> Validation:
    """Check a configuration and all its data, as ``regard validate``. Nothing is written.

    Args:
        config: The configuration, or the YAML file of a pipeline or of a comparison.

    Returns:
        The rows and files of each split, and notes.

    Raises:
        UserError: The configuration, a row, or a folder of the run is invalid.
    """
    return validate_data(_config_or_path(config))


def run(
    config: Config | AnyPath,
    *,
    first: str | None = None,
    last: str | None = None,
    runner: Runner = "local",
    publish_anyway: bool = False,
    wait: bool = False,
) -> RunResult:
    """Run a pipeline: prepare data, train, evaluate and publish a model.

    The nodes run in a separate process; the progress is printed on standard output, and redrawn in
    place in a terminal. Finished nodes are cached in the workspace, which the environment variable
    ``REGARD_HOME`` names. Ctrl-C, or the interruption of a notebook's kernel, stops the process; so
    does SIGTERM. Another call then resumes the run.

    Args:
        config: The configuration, or its YAML file.
        first: Run this node and all later ones again, as ``regard run --from``.
        last: Stop after this node, as ``regard run --to``.
        runner: ``local`` or ``beam``.
        publish_anyway: Whether to publish a model that does not pass evaluation.
        wait: Whether to wait for another run of the pipeline to end.

    Returns:
        The result. The status of a model that did not pass evaluation is ``not blessed``.

    Raises:
        UserError: The configuration, the data or the environment is invalid.
        RuntimeError: A node failed; the message names the log.
        KeyboardInterrupt: The run was stopped.
    """
    request = RunRequest(
        _config_or_path(config), first, last, runner, wait, publish_anyway=publish_anyway
    )
    result = run_pipeline(request, TerminalDisplay(terminal.out()))
    _raise_failure(result)
    return result


def tune(
    config: Config | AnyPath,
    out: AnyPath | None = None,
    *,
    force: bool = False,
    restart: bool = False,
    wait: bool = False,
) -> TuneResult:
    """Search the best values of the keys in the section ``tune``, as ``regard tune``.

    Args:
        config: The configuration, or its YAML file.
        out: The file for the configuration with the best values; by default NAME.tuned.yaml next
            to the configuration.
        force: Whether to overwrite an existing file.
        restart: Whether to delete all trials of the pipeline first.
        wait: Whether to wait for another run of the pipeline to end.

    Returns:
        The best values, all trials, and the file.

    Raises:
        UserError: The configuration or the file is invalid, or too many trials failed.
        RuntimeError: A node failed; the message names the log.
        KeyboardInterrupt: The search was stopped. Another call resumes it.
    """
    source = _config_or_path(config)
    result = tuning.tune(
        source if isinstance(source, Config) else load(source),
        TerminalDisplay(terminal.out()),
        None if out is None else Path(out),
        force=force,
        restart=restart,
        wait=wait,
    )
    _raise_failure(result.run)
    return result


def compare(
    configs: AnyPath | Sequence[Config | AnyPath],
    name: str | None = None,
    *,
    only: Sequence[str] = (),
    jobs: int = 1,
) -> ComparisonResults:
    """Train several models on the same data and compare them, as ``regard compare``.

    Args:
        configs: Configurations or their YAML files, or one file with name, base and models.
        name: The name of the comparison; by default that in the file.
        only: The labels of the models to train; by default all.
        jobs: How many models to train at a time; they share the cores.

    Returns:
        The state of each model, the metrics and figures of those that are finished, and which one
        is significantly the best.

    Raises:
        UserError: A configuration, the data or a label is invalid.
        KeyboardInterrupt: The comparison was stopped. Another call resumes it.
    """
    many = [configs] if isinstance(configs, str | os.PathLike) else list(configs)
    sources = [_config_or_path(config) for config in many]
    workspace = Workspace.from_environment()
    comparison = read_comparison(sources, workspace, name)
    command = "regard.compare"  # in Python
    if all(isinstance(source, Path) for source in sources):
        options = ["--name", name] if name else []
        command = shlex.join(["regard", "compare", *map(str, sources), *options])
    results, outcome = run_comparison(
        comparison,
        workspace,
        terminal.out(),
        TerminalDisplay(terminal.out()).message,
        only=only,
        jobs=jobs,
        command=command,
    )
    if outcome.interrupted:
        raise KeyboardInterrupt("The comparison was stopped. Another call resumes it.")
    return results


def schedule(config: Config | AnyPath) -> SchedulePlan:
    """Return what ``regard schedule`` would do now, as its ``--dry-run``. Nothing is written.

    `run_schedule` keeps the schedule.

    Args:
        config: The configuration, or its YAML file.

    Returns:
        The next times, the conditions with their results, and whether a check would start a run.

    Raises:
        UserError: The configuration or the data is invalid.
    """
    return plan_schedule(ScheduleSettings(_config_or_path(config)), Workspace.from_environment())


def run_schedule(config: Config | AnyPath, *, once: bool = False) -> list[Attempt]:
    """Keep the schedule of a pipeline until Ctrl-C, as ``regard schedule``.

    What happens is printed on standard output. Ctrl-C, the interruption of a notebook's kernel, and
    SIGTERM stop the run in progress, and then end the call; another call resumes the run. Only the
    main thread can call it, because other threads receive no signals.

    Args:
        config: The YAML file, which is read again at each check; or a configuration, which remains
            as it is.
        once: Whether to check once, run if needed, and return, as ``--once``.

    Returns:
        The attempts to run the pipeline that ended meanwhile, each with ``status``, ``run``,
        ``version`` and ``text``.

    Raises:
        UserError: The configuration is invalid, another process keeps the schedule, or the thread
            is not the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        message = "run_schedule was called outside of the main thread, where no signal can stop it."
        remedy = "Call it in the main thread, or start `regard schedule` in a process of its own."
        raise UserError(message, remedy=remedy)
    source = _config_or_path(config)
    settings = ScheduleSettings(source)
    workspace = Workspace.from_environment()
    console = terminal.out()

    def print_line(text: str) -> None:
        console.print(message_line(text, settings), soft_wrap=True)

    paths = workspace.pipeline(settings.config.name)
    path = source if isinstance(source, Path) else paths.schedule / "config.yaml"
    daemon = ScheduleDaemon(settings, workspace, print_line, run_command(path.absolute()))
    with daemon.open():
        if isinstance(source, Config):
            atomic_write(path, resolved_yaml(source))
        earlier = read_state(paths.schedule).history
        if once:
            daemon.run_once()
        else:
            daemon.serve()
        return [one for one in read_state(paths.schedule).history if one not in earlier]


def report(run: RunResult | str, output: AnyPath | None = None) -> Path:
    """Write the HTML report of a run, as ``regard report``.

    Args:
        run: The result of `run`; or the id of a run, the name of a pipeline for its newest run, or
            ``NAME@VERSION``.
        output: The file; by default in the folder of the run.

    Returns:
        The absolute path of the file.

    Raises:
        UserError: There is no such run, or the file cannot be written.
    """
    workspace = Workspace.from_environment()
    stored_run = store.find(workspace, run) if isinstance(run, str) else run.run
    return write_report(stored_run, None if output is None else Path(output))


def _config_or_path(config: Config | AnyPath) -> Config | Path:
    return config if isinstance(config, Config) else Path(config)


def _raise_failure(result: RunResult) -> None:
    """Raise an error unless a run succeeded."""
    failure = result.outcome.failure
    if result.status == INTERRUPTED:
        raise KeyboardInterrupt("The run was stopped. Another call resumes it.")
    if failure is not None:
        node = f"{failure.node} failed: " if failure.node is not None else "The run failed: "
        message = node + failure.error
        if failure.user:
            raise class_of(failure.code)(message, failure.where, failure.remedy)
        raise RuntimeError(f"{message}\nLog: {result.run.log}")
