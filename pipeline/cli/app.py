"""The command ``regard``."""

import os
import sys
import traceback
from typing import Annotated

import typer

from regard.core import provenance
from regard.core.errors import UserError
from regard.core.formatting import printable
from regard.pipeline.cli import terminal
from regard.pipeline.cli.commands import CommandTable
from regard.pipeline.cli.options import App, flag
from regard.pipeline.runners.failures import as_user_error

app = App(
    name="regard",
    cls=CommandTable,
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
    typer.echo(f"regard {provenance.package_version() or '(not installed)'}")
    raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, flag("--version", "Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


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
            sys.stderr.write(printable(traceback.format_exc()))
            sys.exit(1)
        terminal.print_error(user_error)
        sys.exit(2)


def _as_user_error(error: Exception) -> UserError | None:
    if isinstance(error, OSError):
        return as_user_error(error)
    return error if isinstance(error, UserError) else None
