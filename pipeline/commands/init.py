"""``regard init``: a first configuration of a task, to be filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands import terminal


def init(
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="What the model is to do.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where to.", show_default="TASK.yaml"),
    ] = None,
) -> None:
    """Write a commented starter configuration of a task.

    Its file name is the pipeline's name; a file that is there is not touched.

    [bold]Examples[/bold]

      regard init translation

      regard init captioning --out birds.yaml
    """
    from models import tasks
    from pipeline import starters

    path = starters.write(task, out or Path(f"{task}.yaml"))
    console = terminal.out()
    console.print(f"{path}: {tasks.describe(task).summary}; to be filled in.", soft_wrap=True)
    console.print(f"next  regard validate {path}", soft_wrap=True)
