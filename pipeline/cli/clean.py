"""``regard clean``: remove old runs of pipelines."""

import dataclasses
from typing import Annotated

from regard.core.errors import UserError
from regard.core.formatting import format_bytes, format_count
from regard.pipeline import clean as cleaning
from regard.pipeline.cli import terminal
from regard.pipeline.cli.completion import complete_pipeline
from regard.pipeline.cli.options import JsonOption, argument, flag, option
from regard.pipeline.workspace import Workspace


def clean(
    name: Annotated[
        str | None,
        argument(
            "NAME",
            "Clean only this pipeline.",
            "all that have no active run",
            autocompletion=complete_pipeline,
        ),
    ] = None,
    keep: Annotated[
        int, option("--keep", "N", "Number of newest runs to keep in each pipeline.", min=1)
    ] = 10,
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would be removed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old runs with their outputs, logs and metadata.

    Also keeps every run that published a version which still exists in the
    registry, that has a report by `regard report`, or that the schedule refers to.
    Kept runs can be resumed, reported, compared and traced. Copies of tokenizers
    (tokenizer.model) are removed; a run makes its own. Checkpoints, searches of
    `regard tune` and the registry stay; see `regard registry prune`. To clean after
    each scheduled run, set schedule.keep.

    [bold]Examples[/bold]

      regard clean --dry-run

      regard clean quickstart --keep 3
    """
    workspace = Workspace.from_environment()
    names = workspace.pipeline_names()
    if name is not None:
        terminal.check_name(name, names, "pipeline", str(workspace.pipelines))
    results = []
    for pipeline in [name] if name else names:
        try:
            results.append(cleaning.clean(workspace, pipeline, keep, dry_run))
        except UserError as error:
            if name is not None:
                raise
            terminal.print_notes([f"{pipeline} is skipped: {error.message}"])
    if as_json:
        pipelines = [dataclasses.asdict(result) for result in results]
        terminal.print_json({"dry_run": dry_run, "pipelines": pipelines})
        return
    verb = "would be removed" if dry_run else "removed"
    for result in results:
        for run, reason in result.runs.items():
            state = f"kept: {reason}" if reason else verb
            terminal.print_lines(f"{result.name}/{run}  {state}")
        count = format_count(list(result.runs.values()).count(None), "run")
        terminal.print_lines(f"{result.name}: {count} ({format_bytes(result.bytes)}) {verb}.")
