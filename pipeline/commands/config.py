"""``regard config``: what may stand in a pipeline's YAML file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pipeline.commands import terminal

app = typer.Typer(
    help="Show what may stand in a pipeline's YAML file.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

TaskOption = Annotated[str, typer.Option("--task", metavar="TASK", help="Of which task.")]


@app.command()
def reference(task: TaskOption = "translation") -> None:
    """Print every key with its meaning and its default, as YAML.

    [bold]Example[/bold]

      regard config reference --task translation > mine.yaml
    """
    from pipeline.config import known_task
    from pipeline.config import reference as text

    sys.stdout.write(text(known_task(task, "--task")).rstrip("\n") + "\n")


@app.command()
def schema(task: TaskOption = "translation") -> None:
    """Print the JSON schema, for editors that check and complete YAML.

    [bold]Example[/bold]

      regard config schema > regard.schema.json
    """
    from pipeline.config import known_task
    from pipeline.config import schema as content

    terminal.print_json(content(known_task(task, "--task")))
