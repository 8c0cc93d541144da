"""``regard doctor``: whether this machine has what the pipelines need."""

from __future__ import annotations

import typer

from pipeline.commands import terminal


def doctor(
    as_json: terminal.JsonOption = False,
) -> None:
    """Check versions, compilers, disk, cores and GPU, and say what to mend."""
    from pipeline import doctor as checks

    found = checks.report()
    if as_json:
        terminal.print_json(checks.as_json(found))
    else:
        checks.render(found, terminal.out(markup=True))
    raise typer.Exit(checks.exit_status(found))
