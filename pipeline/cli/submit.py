"""``regard submit``: start a run, or a recurring run, on a cluster."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from regard.components.common.errors import UserError
from regard.pipeline.cli import terminal

_RECURRING = "Recurring runs"


def submit(
    pipeline: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG|PIPELINE",
            help="YAML file of a pipeline with a section kubeflow, or a compiled pipeline.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="URL of the Kubeflow Pipelines API.",
            show_default="$KF_PIPELINES_ENDPOINT",
        ),
    ] = None,
    experiment: Annotated[
        str,
        typer.Option(metavar="NAME", help="Experiment of the run. Created if it does not exist."),
    ] = "regard",
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the run.", show_default="the pipeline's"),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Your namespace on a multi-user installation."),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="NAME=VALUE",
            help="Run parameter, for example max_epochs=3. Repeatable.",
        ),
    ] = None,
    cron: Annotated[
        str | None,
        typer.Option(
            metavar="EXPRESSION",
            help="Start a run at the times of a cron expression, in the cluster's time zone.",
            rich_help_panel=_RECURRING,
        ),
    ] = None,
    no_catchup: Annotated[
        bool,
        typer.Option(
            "--no-catchup",
            help="Do not start a run for each missed time.",
            rich_help_panel=_RECURRING,
        ),
    ] = False,
    as_json: terminal.JsonOption = False,
) -> None:
    """Start a run, or with --cron a recurring run, on Kubeflow Pipelines.

    A configuration is compiled first. The pipeline is validated before it is
    sent. Set $KF_PIPELINES_TOKEN to send a bearer token, and
    $KF_PIPELINES_UI_ENDPOINT to print a link to the run.

    [bold]Examples[/bold]

      regard submit configs/quickstart.yaml --host http://localhost:8888

      regard submit pipeline.yaml --host http://localhost:8888 --param seed=3

      regard submit pipeline.yaml --host http://localhost:8888 --cron "0 3 * * *"

    [bold]Exit status[/bold]: 0 started; 2 an error that you can fix.
    """
    from regard.pipeline.runners.kubeflow.client import KubeflowClient
    from regard.pipeline.runners.kubeflow.submission import kubeflow_cron, prepare_submission

    if cron is None and no_catchup:
        raise UserError("The option requires --cron.", "--no-catchup", "Remove it.")
    six_fields = kubeflow_cron(cron) if cron else None
    with terminal.working("preparing the pipeline …") as update:
        submission = prepare_submission(pipeline, parameters or ())
        update("contacting the cluster …")
        client = KubeflowClient(host, namespace)
        name = name or submission.pipeline.name
        if six_fields is None:
            job = client.submit(submission, experiment, name)
        else:
            job = client.schedule(submission, experiment, name, six_fields, not no_catchup)
    terminal.print_notes(submission.warnings)
    if as_json:
        terminal.print_json(dataclasses.asdict(job))
        return
    out = terminal.out()
    out.print(f"{'Scheduled' if six_fields else 'Started'} run {job.name}: {job.id}")
    if six_fields:
        out.print(f"  cron: {six_fields} (seconds first)", soft_wrap=True)
    if job.link:
        out.print(f"  {job.link}", soft_wrap=True)
