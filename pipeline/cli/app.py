"""The command ``regard``. Each command imports what it needs when it runs."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from regard.components.common.errors import UserError
from regard.components.common.formatting import printable
from regard.pipeline.cli import (
    clean,
    compare,
    compile,
    config,
    data,
    deploy,
    doctor,
    drift,
    evaluate,
    export,
    lineage,
    predict,
    registry,
    report,
    run,
    runs,
    schedule,
    score,
    serve,
    submit,
    terminal,
    tune,
    validate,
    worker,
)
from regard.pipeline.cli.options import App, flag

app = App(
    name="regard",
    help="Turn your data and one YAML file into a deployed attention model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="To get started: [bold]regard data generate quickstart[/bold], then "
    "[bold]regard run configs/quickstart.yaml[/bold]",
)


def _print_version(requested: bool) -> None:
    if not requested:
        return
    from regard.components.common import provenance

    typer.echo(f"regard {provenance.package_version() or '(not installed)'}")
    raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, flag("--version", "Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


_PIPELINES, _MODELS, _CLUSTER = "Pipelines", "Models", "Kubeflow Pipelines"
_SETUP = "Data and configuration"
app.command("run", rich_help_panel=_PIPELINES)(run.run)
app.command("worker", rich_help_panel=_PIPELINES)(worker.worker)
app.command("validate", rich_help_panel=_PIPELINES)(validate.validate)
app.command("tune", rich_help_panel=_PIPELINES)(tune.tune)
app.command("schedule", rich_help_panel=_PIPELINES)(schedule.schedule)
app.command("compare", rich_help_panel=_PIPELINES)(compare.compare)
app.command("report", rich_help_panel=_PIPELINES)(report.report)
app.command("clean", rich_help_panel=_PIPELINES)(clean.clean)
app.add_typer(runs.app, name="runs", rich_help_panel=_PIPELINES)
app.command("predict", rich_help_panel=_MODELS)(predict.predict)
app.command("evaluate", rich_help_panel=_MODELS)(evaluate.evaluate)
app.command("score", rich_help_panel=_MODELS)(score.score)
app.command("serve", rich_help_panel=_MODELS)(serve.serve)
app.command("drift", rich_help_panel=_MODELS)(drift.drift)
app.command("lineage", rich_help_panel=_MODELS)(lineage.lineage)
app.command("export", rich_help_panel=_MODELS)(export.export)
app.add_typer(deploy.app, name="deploy", rich_help_panel=_MODELS)
app.add_typer(registry.app, name="registry", rich_help_panel=_MODELS)
app.command("rollback", rich_help_panel=_MODELS)(registry.rollback)
app.command("compile", rich_help_panel=_CLUSTER)(compile.compile_config)
app.command("submit", rich_help_panel=_CLUSTER)(submit.submit)
app.command("init", rich_help_panel=_SETUP)(config.init)
app.add_typer(data.app, name="data", rich_help_panel=_SETUP)
app.add_typer(config.app, name="config", rich_help_panel=_SETUP)
app.command("doctor", rich_help_panel=_SETUP)(doctor.doctor)


def main() -> None:
    """Run the command line; a user error exits with status 2 and without a traceback."""
    # The processes of a run share the GPU; by default, TensorFlow would reserve all of its memory.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # our messages say what went wrong
    try:
        app(prog_name="regard")
    except Exception as error:
        user_error = _as_user_error(error)
        if user_error is None:  # a bug; texts in the traceback must not control the terminal
            import traceback

            sys.stderr.write(printable(traceback.format_exc()))
            sys.exit(1)
        terminal.print_error(user_error)
        sys.exit(2)


def _as_user_error(error: Exception) -> UserError | None:
    if isinstance(error, OSError):
        from regard.pipeline.runners.failures import explain

        failure = explain(error)
        if failure.get("user"):
            return UserError(failure["error"], failure.get("where"), failure.get("remedy"))
    return error if isinstance(error, UserError) else None
