"""``regard init``: write a starter configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.pipeline.cli import terminal


def init(
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="Task of the model.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Output file.", show_default="TASK.yaml"),
    ] = None,
) -> None:
    """Write a commented starter configuration for a task.

    The file name sets the name of the pipeline. An existing file is never overwritten.

    [bold]Examples[/bold]

      regard init translation

      regard init captioning --out birds.yaml
    """
    from regard.models import tasks
    from regard.pipeline.config.starters import write_starter

    path = out or Path(f"{task}.yaml")
    write_starter(task, path)
    console = terminal.out()
    console.print(f"Wrote {path} ({tasks.describe(task).summary}).", soft_wrap=True)
    console.print(f"Fill in your data, then run: regard validate {path}", soft_wrap=True)
