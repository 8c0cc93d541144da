"""``regard schedule``: run a pipeline repeatedly on this machine."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated

import typer
from rich.console import Console

from regard.core.errors import UserError
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import ConfigArgument, QuietOption, VerboseOption, flag
from regard.pipeline.cli.rendering.schedule_tables import describe_schedule, print_plan
from regard.pipeline.scheduling.daemon import ScheduleDaemon, find_process, message_line
from regard.pipeline.scheduling.plan import plan_schedule
from regard.pipeline.scheduling.settings import ScheduleSettings
from regard.pipeline.workspace import Workspace


def schedule(
    config: ConfigArgument,
    dry_run: Annotated[
        bool, flag("--dry-run", "Print the status and what a check would do now.")
    ] = False,
    once: Annotated[bool, flag("--once", "Check once if due, then exit.")] = False,
    as_json: Annotated[
        bool, flag("--json", "Print errors, and with --dry-run everything, as JSON.")
    ] = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run a pipeline repeatedly.

    The section schedule of the file sets when to check the data and which
    conditions start a run; see `regard config reference`. Stop it with Ctrl-C. A
    run that was stopped resumes at the next start. For a schedule on a cluster
    see `regard submit --cron`.

    [bold]Examples[/bold]

      regard schedule pipeline.yaml --dry-run

      regard schedule pipeline.yaml

    [bold]Exit status[/bold]: 0 stopped, or nothing to do; 2 an error that you
    can fix. With --once the status of `regard run`.
    """
    if dry_run and once:
        raise UserError("The options exclude each other.", "--dry-run, --once", "Give one of them.")

    settings = ScheduleSettings(config)
    if dry_run:
        _print_plan(settings, as_json, quiet)
    else:
        raise typer.Exit(_run_schedule(settings, once, quiet, verbose))


def _run_schedule(settings: ScheduleSettings, once: bool, quiet: bool, verbose: bool) -> int:
    console, workspace = terminal.work_console(False, quiet), Workspace.from_environment()
    failures = terminal.failure_console(console)

    def print_line(text: str, to: Console = console) -> None:
        to.print(message_line(text, settings), soft_wrap=True)

    def print_output(text: str) -> None:
        console.print(text, soft_wrap=True)

    process = find_process(workspace.pipeline(settings.config.name).schedule)
    if once and process is not None:
        print_line(f"process {process} keeps the schedule")
        return 0
    daemon = ScheduleDaemon(
        settings,
        workspace,
        print_line,
        print_error=functools.partial(print_line, to=failures),
        print_output=print_output if verbose else None,
    )
    with daemon.open():
        if once:
            return daemon.run_once()
        print_line(f"{daemon.name} {describe_schedule(settings)}")
        daemon.serve()
        return 0


def _print_plan(settings: ScheduleSettings, as_json: bool, quiet: bool) -> None:
    with terminal.working("checking the data …"):
        plan = plan_schedule(settings, Workspace.from_environment())
    if as_json:
        attempts = [a.model_dump(exclude={"data"}, exclude_defaults=True) for a in plan.attempts]
        content = {**dataclasses.asdict(plan), "attempts": attempts}
        terminal.print_json({**content, "description": describe_schedule(settings)})
    else:
        print_plan(plan, settings, terminal.work_console(False, quiet))
