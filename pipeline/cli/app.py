"""The command ``regard``. Each command imports what it needs when it runs."""

import os
import sys
from importlib import import_module
from typing import Annotated

import typer

from regard.core.errors import UserError
from regard.core.formatting import printable
from regard.pipeline.cli import terminal
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
    from regard.core import provenance

    typer.echo(f"regard {provenance.package_version() or '(not installed)'}")
    raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, flag("--version", "Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


# Commands and groups of commands by panel of the help, and the modules of other names.
_COMMANDS = {
    "Pipelines": "run worker validate tune schedule compare report clean runs",
    "Models": "predict evaluate score serve drift lineage export deploy registry rollback",
    "Kubeflow Pipelines": "compile submit",
    "Data and configuration": "init data config doctor",
}
_MODULES = {"rollback": "registry", "init": "config"}


def _add_commands() -> None:
    for panel, names in _COMMANDS.items():
        for name in names.split():
            module = import_module(f"regard.pipeline.cli.{_MODULES.get(name, name)}")
            if name not in _MODULES and hasattr(module, "app"):
                app.add_typer(module.app, name=name, rich_help_panel=panel)
            else:
                app.command(name, rich_help_panel=panel)(getattr(module, name))


_add_commands()


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
        from regard.pipeline.runners.failures import as_user_error

        return as_user_error(error)
    return error if isinstance(error, UserError) else None
