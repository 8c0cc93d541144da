"""``regard submit``: start a run, or a recurring run, on a cluster."""

import dataclasses
from pathlib import Path
from typing import Annotated

from regard.core.errors import UserError
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import JsonOption, argument, flag, option
from regard.pipeline.runners.kubeflow.client import KubeflowClient
from regard.pipeline.runners.kubeflow.submission import kubeflow_cron, prepare_submission

_RECURRING = "Recurring runs"


def submit(
    pipeline: Annotated[
        Path,
        argument(
            "CONFIG|PIPELINE",
            "YAML file of a pipeline with a section kubeflow, or a compiled pipeline.",
        ),
    ],
    host: Annotated[
        str | None,
        option("--host", "URL", "URL of the Kubeflow Pipelines API.", "$KF_PIPELINES_ENDPOINT"),
    ] = None,
    experiment: Annotated[
        str, option("--experiment", "NAME", "Experiment of the run. Created if it does not exist.")
    ] = "regard",
    name: Annotated[
        str | None, option("--name", "NAME", "Name of the run.", "the pipeline's")
    ] = None,
    namespace: Annotated[
        str | None, option("--namespace", "NAME", "Your namespace on a multi-user installation.")
    ] = None,
    parameters: Annotated[
        list[str] | None,
        option("--param", "NAME=VALUE", "Run parameter, for example max_epochs=3. Repeatable."),
    ] = None,
    cron: Annotated[
        str | None,
        option(
            "--cron",
            "EXPRESSION",
            "Start a run at the times of a cron expression, in the cluster's time zone.",
            rich_help_panel=_RECURRING,
        ),
    ] = None,
    no_catchup: Annotated[
        bool,
        flag(
            "--no-catchup", "Do not start a run for each missed time.", rich_help_panel=_RECURRING
        ),
    ] = False,
    replace: Annotated[
        bool,
        flag(
            "--replace",
            "Replace the recurring run of the same name, which is disabled on the cluster.",
            rich_help_panel=_RECURRING,
        ),
    ] = False,
    as_json: JsonOption = False,
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
    for name_of_flag, is_given in (("--no-catchup", no_catchup), ("--replace", replace)):
        if cron is None and is_given:
            raise UserError("The option requires --cron.", name_of_flag, "Remove it.")
    six_fields = kubeflow_cron(cron) if cron else None
    with terminal.working("preparing the pipeline …") as update:
        submission = prepare_submission(pipeline, parameters or ())
        update("contacting the cluster …")
        client = KubeflowClient(host, namespace)
        name = name or submission.pipeline.name
        if six_fields is None:
            job = client.submit(submission, experiment, name)
        else:
            job = client.schedule(submission, experiment, name, six_fields, not no_catchup, replace)
    terminal.print_notes(submission.warnings)
    if as_json:
        terminal.print_json(dataclasses.asdict(job))
        return
    lines = [f"{'Scheduled' if six_fields else 'Started'} run {job.name}: {job.id}"]
    lines += [f"  cron: {six_fields} (seconds first)"] if six_fields else []
    lines += [f"  replaces {identifier}, which is disabled" for identifier in job.replaced]
    lines += [f"  {job.link}"] if job.link else []
    terminal.print_lines(*lines)
