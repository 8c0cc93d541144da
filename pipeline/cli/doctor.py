"""``regard doctor``: check whether this machine can run pipelines."""

import typer

from regard.pipeline.cli import error_records, terminal
from regard.pipeline.cli.options import JsonOption
from regard.pipeline.doctor import report


def doctor(as_json: JsonOption = False) -> None:
    """Check packages, memory, disk and GPU, and explain how to fix problems.

    [bold]Exit status[/bold]: 0 if pipelines can run on this machine, otherwise 2.
    """
    results = report.run_checks()
    if as_json:
        records = [error_records.of_user_error(error)[0] for error in report.failures(results)]
        errors = {"errors": records} if records else {}
        terminal.print_json({**report.to_json(results), **errors})
    else:
        report.render(results, terminal.out(markup=True))
    raise typer.Exit(report.exit_status(results))
