"""``regard schedule``: a pipeline that runs again and again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from components.errors import UserError
from pipeline.commands import terminal
from pipeline.commands.submit import HostOption, NamespaceOption, ParameterOption

_REASONS = "What is reason enough for a run"
_HERE = "On this machine"
_ON_CLUSTER = "On Kubeflow Pipelines"
_EXPERIMENT = "regard"
_OF_CLUSTER = "is for schedules on a cluster"


class Target(str, Enum):
    """Where the runs are started."""

    local = "local"
    kubeflow = "kubeflow"


class Require(str, Enum):
    """How many of the reasons are needed."""

    any = "any"
    all = "all"


def schedule(
    pipeline: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG",
            help="The pipeline's YAML file; with --to kubeflow also a compiled one.",
            show_default=False,
        ),
    ],
    cron: Annotated[
        str | None,
        typer.Option(
            metavar="EXPRESSION",
            help="When to look: minute, hour, day of the month, month, day of the week; or six "
            "fields with the second in front; or @hourly, @daily, @weekly, @monthly, @yearly.",
            show_default="the file's",
        ),
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of --cron, such as Europe/Berlin.", show_default=False),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Instead: the time between looks, such as 15m.", show_default=False
        ),
    ] = None,
    new_span: Annotated[
        bool | None,
        typer.Option("--new-span/--no-new-span", help="A new span.", rich_help_panel=_REASONS),
    ] = None,
    new_rows: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="So many new rows.", rich_help_panel=_REASONS),
    ] = None,
    drift: Annotated[
        bool | None,
        typer.Option(
            "--drift/--no-drift",
            help="Drift beyond the file's limits: schedule.drift, else data.checks.",
            rich_help_panel=_REASONS,
        ),
    ] = None,
    require: Annotated[
        Require | None,
        typer.Option(help="One of them, or all.", show_default=False, rich_help_panel=_REASONS),
    ] = None,
    no_catchup: Annotated[
        bool,
        typer.Option(
            "--no-catchup",
            help="Leave out times that were missed: here instead of one look for all of them, on "
            "Kubeflow instead of a run for each.",
        ),
    ] = False,
    target: Annotated[
        Target, typer.Option("--to", help="On this machine, or on a cluster.")
    ] = Target.local,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only print the next times, what is found now, and what would follow.",
            rich_help_panel=_HERE,
        ),
    ] = False,
    once: Annotated[
        bool,
        typer.Option("--once", help="Look once, run if it is due, end.", rich_help_panel=_HERE),
    ] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Print what was tried.", rich_help_panel=_HERE)
    ] = False,
    systemd: Annotated[
        bool,
        typer.Option(
            "--systemd", help="Write a user's systemd unit that does it.", rich_help_panel=_HERE
        ),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where the unit goes; -: print it.",
            show_default="~/.config/systemd/user",
            rich_help_panel=_HERE,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace another unit.", rich_help_panel=_HERE)
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The schedule's name.",
            show_default="the pipeline's",
            rich_help_panel=_ON_CLUSTER,
        ),
    ] = None,
    max_concurrency: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=10,
            help="Runs at once.",
            show_default="1",
            rich_help_panel=_ON_CLUSTER,
        ),
    ] = None,
    host: HostOption = None,
    experiment: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The group of runs that it belongs to; made where it is missing.",
            show_default=_EXPERIMENT,
        ),
    ] = None,
    namespace: NamespaceOption = None,
    parameters: ParameterOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Run a pipeline again and again.

    On this machine it looks at the times of --cron, or every 15 minutes, and
    runs where there is reason for it: the file's section schedule says both,
    and the options go before it. Stop it with Ctrl-C; what was tried is
    remembered, and a run that was stopped goes on at the next start.

    On a cluster the times are those of its time zone, UTC where nobody has set
    another. Kubeflow's own expressions begin with the second: the usual five
    fields get a 0 in front. Only there --host, --namespace, --experiment and
    --param say anything.

    [bold]Examples[/bold]

      regard schedule configs/quickstart.yaml --dry-run

      regard schedule configs/quickstart.yaml --new-rows 10000 --every 1h

      regard schedule configs/quickstart.yaml --cron "0 3 * * *" --systemd

      regard schedule configs/quickstart.yaml --to kubeflow --cron "0 3 * * *"

    [bold]Exit status[/bold]: 0 it was stopped, or nothing was to do, or it is
    scheduled; 2 something is wrong. With --once those of `regard run`.
    """
    ways = {"--dry-run": dry_run, "--once": once, "--history": history, "--systemd": systemd}
    asked = [option for option, is_asked in ways.items() if is_asked]
    if len(asked) > 1:
        raise UserError("these do not go together", ", ".join(asked), "Give one of them.")
    reasons: dict[str, object] = {"--new-span": new_span, "--new-rows": new_rows}
    reasons |= {"--drift": drift, "--require": require}
    unit = {"--output": output, "--force": force or None}
    if target is Target.kubeflow:
        local: dict[str, object] = {option: is_asked or None for option, is_asked in ways.items()}
        local |= {"--time-zone": time_zone, "--every": every, **reasons, **unit}
        _refuse(local, "is for schedules of this machine")
        if cron is None:
            raise UserError("is missing; on a cluster only it says when to run", "--cron")
        _on_kubeflow(
            pipeline,
            cron,
            name,
            host,
            namespace,
            experiment or _EXPERIMENT,
            parameters,
            max_concurrency=max_concurrency or 1,
            catchup=not no_catchup,
            as_json=as_json,
        )
        return
    elsewhere = {"--name": name, "--max-concurrency": max_concurrency, "--host": host}
    elsewhere |= {"--experiment": experiment, "--namespace": namespace}
    _refuse(elsewhere, _OF_CLUSTER, "Leave it out, or give --to kubeflow.")
    _refuse(
        {"--param": parameters or None},
        _OF_CLUSTER,
        "Write the value into the YAML file, or give --to kubeflow.",
    )
    if not systemd:
        _refuse(unit, "goes with --systemd", "Leave it out, or give --systemd.")
    if history:
        looks = {"--cron": cron, "--every": every, **reasons, "--no-catchup": no_catchup or None}
        _refuse(looks, "does not go with --history, which only reads what was tried")
        _refuse(
            {"--time-zone": time_zone},
            "does not go with --history, whose times are those of schedule.timezone",
            "Leave it out, or set schedule.timezone in the YAML file.",
        )
    from pipeline.commands import scheduling

    request = scheduling.Request(
        pipeline,
        cron=cron,
        timezone=time_zone,
        every=every,
        new_span=new_span,
        new_rows=new_rows,
        drift=drift,
        require=require and require.value,
        catchup=False if no_catchup else None,
        as_json=as_json,
    )
    if dry_run:
        scheduling.plan(request)
    elif history:
        scheduling.history(request)
    elif systemd:
        scheduling.write_unit(request, output, force)
    elif as_json:
        raise UserError("goes with --dry-run and --history", "--json", "Leave it out.")
    else:
        raise typer.Exit(scheduling.keep(request, once))


def _refuse(options: Mapping[str, object], why: str, remedy: str = "Leave it out.") -> None:
    """Raises a ``UserError`` about the first option that is given; None: it is not."""
    for option, value in options.items():
        if value is not None:
            raise UserError(why, option, remedy)


def _on_kubeflow(
    pipeline: Path,
    cron: str,
    name: str | None,
    host: str | None,
    namespace: str | None,
    experiment: str,
    parameters: list[str] | None,
    *,
    max_concurrency: int,
    catchup: bool,
    as_json: bool,
) -> None:
    from pipeline.cron import six_fields
    from pipeline.kubeflow.client import Cluster
    from pipeline.kubeflow.package import package

    when = six_fields(cron, often=False)
    with terminal.working("preparing the pipeline …") as say:
        prepared = package(pipeline, parameters or ())
        say("talking to the cluster …")
        started = Cluster(host, namespace).schedule(
            prepared,
            experiment,
            name or prepared.name,
            when,
            max_concurrency=max_concurrency,
            catchup=catchup,
        )
    terminal.print_notes(prepared.notes)
    if as_json:
        terminal.print_json({**dataclasses.asdict(started), "cron": when})
        return
    out = terminal.out()
    out.print(f"{started.name} is scheduled: {started.id}", soft_wrap=True)
    out.print(f"  cron: {when} (the second first, as Kubeflow reads it)", soft_wrap=True)
    if started.link:
        out.print(f"  {started.link}", soft_wrap=True)
