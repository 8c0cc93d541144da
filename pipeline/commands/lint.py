"""``regard lint``: what a cluster would refuse in a compiled pipeline."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands import terminal

_FOUND = 2


def lint(
    pipeline: Annotated[
        Path,
        typer.Argument(
            metavar="PIPELINE",
            help="A compiled pipeline: TFX's, the Kubeflow SDK's, or that of `regard compile`.",
            show_default=False,
        ),
    ],
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="NAME=VALUE",
            help="A parameter that a run would be given; several: once for each.",
        ),
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Find what open-source Kubeflow Pipelines would refuse, or pass over in silence.

    No cluster is needed. Each finding says where it is, what comes of it
    (refused, ignored, or fails while it runs), and what to do about it.

    [bold]Examples[/bold]

      regard lint pipeline.yaml

      regard lint pipeline.yaml --param seed=3

    [bold]Exit status[/bold]: 0 nothing was found; 2 something was.
    """
    from components.words import counted
    from pipeline.kubeflow.extra import require
    from pipeline.kubeflow.given import given_parameters
    from pipeline.kubeflow.lint import findings
    from pipeline.kubeflow.lint.document import documents
    from pipeline.kubeflow.lint.heads import spec_in
    from pipeline.kubeflow.package import read

    require()
    parsed = documents(read(pipeline))
    given = given_parameters(parameters, spec_in(parsed)) if parameters else None
    found = findings(parsed, given)
    if as_json:
        told = [dataclasses.asdict(finding) for finding in found]
        terminal.print_json({"pipeline": str(pipeline), "findings": told})
    else:
        out = terminal.out()
        for finding in found:
            key = f"{finding.key}: " if finding.key else ""
            place = f"{pipeline}:{finding.line}"
            out.print(
                f"{place}: {finding.effect}: {key}{finding.message} ({finding.rule})",
                soft_wrap=True,
            )
            out.print(f"  {finding.remedy}", soft_wrap=True)
        said = counted(len(found), "finding") if found else "nothing that Kubeflow would refuse"
        out.print(f"{pipeline}: {said}", soft_wrap=True)
    if found:
        raise typer.Exit(_FOUND)
