"""``regard schedule``: a pipeline that runs again and again."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Annotated

import typer

from components.errors import UserError
from pipeline.commands import terminal
from pipeline.commands.submit import (
    ExperimentOption,
    HostOption,
    NamespaceOption,
    ParameterOption,
    PipelineArgument,
)

_ON_CLUSTER = "On Kubeflow Pipelines"


class Target(str, Enum):
    """Where the runs are started."""

    local = "local"
    kubeflow = "kubeflow"


def schedule(
    pipeline: PipelineArgument,
    cron: Annotated[
        str,
        typer.Option(
            metavar="EXPRESSION",
            help="When: minute, hour, day of the month, month, day of the week; or six fields "
            "with the second in front; or @hourly, @daily, @weekly, @monthly, @yearly.",
            show_default=False,
        ),
    ],
    target: Annotated[
        Target, typer.Option("--to", help="On this machine, or on a cluster.")
    ] = Target.local,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The schedule's name.", show_default="the pipeline's"),
    ] = None,
    max_concurrency: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=10, help="Runs at once.", rich_help_panel=_ON_CLUSTER),
    ] = 1,
    no_catchup: Annotated[
        bool,
        typer.Option(
            "--no-catchup",
            help="Leave out the runs that were missed, instead of making up for each.",
            rich_help_panel=_ON_CLUSTER,
        ),
    ] = False,
    host: HostOption = None,
    experiment: ExperimentOption = "regard",
    namespace: NamespaceOption = None,
    parameters: ParameterOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Run a pipeline again and again.

    On a cluster the times are those of its time zone, UTC where nobody has set
    another. Kubeflow's own expressions begin with the second: the usual five
    fields get a 0 in front.

    [bold]Example[/bold]

      regard schedule configs/quickstart.yaml --to kubeflow --cron "0 3 * * *"

    [bold]Exit status[/bold]: 0 it is scheduled; 2 something is wrong.
    """
    if target is Target.local:
        raise UserError(
            "there is no scheduler for this machine yet",
            "--to local",
            "Use --to kubeflow, or call `regard run` from cron or a systemd timer.",
        )
    from pipeline.kubeflow.client import Cluster
    from pipeline.kubeflow.cron import six_fields
    from pipeline.kubeflow.package import package

    when = six_fields(cron)
    with terminal.working("preparing the pipeline …") as say:
        prepared = package(pipeline, parameters or ())
        say("talking to the cluster …")
        started = Cluster(host, namespace).schedule(
            prepared,
            experiment,
            name or prepared.name,
            when,
            max_concurrency=max_concurrency,
            catchup=not no_catchup,
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
