"""The command ``regard``."""

import itertools
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from regard.core import provenance
from regard.core.errors import UserError
from regard.core.formatting import printable
from regard.pipeline.cli import error_records, terminal
from regard.pipeline.cli.commands import CommandTable, Stopped
from regard.pipeline.cli.options import App, flag
from regard.pipeline.runners.failures import as_user_error

# The error of an invalid command; Typer exports only classes that derive from it.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]

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
    status = 0
    terminal.name_output_in_errors()
    with terminal.output_may_be_closed():
        status = _run(sys.argv[1:])
        try:
            terminal.flush_output()
        except OSError:  # as reported; Python would end with a traceback and status 120
            terminal.discard_output()
    sys.exit(status)


def _run(arguments: Sequence[str]) -> int:
    """Run a command, report its error, and return its exit status."""
    as_json = "--json" in itertools.takewhile(lambda argument: argument != "--", arguments)
    try:
        result = app(prog_name="regard", standalone_mode=False)
        terminal.flush_output()
    except Stopped as stop:
        return _report(stop.reason, as_json)
    except Exception as error:
        return _report(error, as_json)
    return result if isinstance(result, int) else 0  # the status of typer.Exit


def _report(error: BaseException, as_json: bool) -> int:
    """Print an error, with ``--json`` as JSON on standard output, and return the exit status."""
    if isinstance(error, OSError) and error.filename is None:
        try:
            terminal.flush_output()
        except OSError as output_error:  # which names what cannot be written
            error = output_error
    user_error = as_user_error(error) if isinstance(error, OSError) else error
    if isinstance(error, BrokenPipeError):
        raise error
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        status = error_records.INTERRUPTED_STATUS
        records = [error_records.record(error_records.INTERRUPTED, "Interrupted.")]
    elif isinstance(error, _USAGE_ERROR):
        status, records = error.exit_code, [error_records.of_usage_error(error)]
        if not as_json:
            from typer import rich_utils  # imports much of Rich

            rich_utils.rich_format_error(error)
    elif isinstance(user_error, UserError):
        status, records = 2, error_records.of_user_error(user_error)
        if not as_json:
            terminal.print_error(user_error)
    else:  # a bug; texts in the traceback must not control the terminal
        message = f"{type(error).__name__}: {error}"
        status, records = 1, [error_records.record(error_records.INTERNAL, message)]
        sys.stderr.write(printable("".join(traceback.format_exception(error))))
    if as_json:
        terminal.print_errors(records)
    return status
