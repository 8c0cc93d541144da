"""``regard submit``: one run on a cluster."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands import terminal

PipelineArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG|PIPELINE",
        help="The YAML file of a pipeline with a section kubeflow, or a compiled one.",
        show_default=False,
    ),
]
HostOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The API of Kubeflow Pipelines.",
        show_default="$KF_PIPELINES_ENDPOINT",
    ),
]
ExperimentOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="The group of runs that it belongs to; made where it is missing."
    ),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Yours, on a cluster with several users."),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="A parameter, such as max_epochs=3; several: once for each.",
    ),
]


def submit(
    pipeline: PipelineArgument,
    host: HostOption = None,
    experiment: ExperimentOption = "regard",
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The run's name.", show_default="the pipeline's"),
    ] = None,
    namespace: NamespaceOption = None,
    parameters: ParameterOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Start a run on Kubeflow Pipelines.

    A configuration is compiled first, and `regard lint` looks at it in any
    case. $KF_PIPELINES_TOKEN is sent as a bearer token, where it is set, and with
    $KF_PIPELINES_UI_ENDPOINT a link to the run is told.

    [bold]Examples[/bold]

      regard submit configs/quickstart.yaml --host http://localhost:8888

      regard submit pipeline.yaml --host http://localhost:8888 --param seed=3

    [bold]Exit status[/bold]: 0 it is started; 2 something is wrong.
    """
    from pipeline.kubeflow.client import Cluster
    from pipeline.kubeflow.package import package

    with terminal.working("preparing the pipeline …") as say:
        prepared = package(pipeline, parameters or ())
        say("talking to the cluster …")
        started = Cluster(host, namespace).submit(prepared, experiment, name or prepared.name)
    terminal.print_notes(prepared.notes)
    if as_json:
        terminal.print_json(dataclasses.asdict(started))
        return
    out = terminal.out()
    out.print(f"Run {started.name} is started: {started.id}", soft_wrap=True)
    if started.link:
        out.print(f"  {started.link}", soft_wrap=True)
