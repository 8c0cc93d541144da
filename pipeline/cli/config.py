"""``regard config``: the configuration options of a pipeline's YAML file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from regard.pipeline.cli import terminal

app = typer.Typer(
    help="Show all configuration options.", no_args_is_help=True, rich_markup_mode="rich"
)

TaskOption = Annotated[
    str, typer.Option("--task", metavar="TASK", help="Task whose options to show.")
]


@app.command()
def reference(task: TaskOption = "translation") -> None:
    """Print every option with its description and default value, as YAML.

    [bold]Example[/bold]

      regard config reference --task translation > reference.yaml
    """
    from regard.pipeline.config import config_reference, require_task

    sys.stdout.write(config_reference(require_task(task, "--task")).rstrip("\n") + "\n")


@app.command()
def schema(task: TaskOption = "translation") -> None:
    """Print the JSON schema of the YAML file, for validation and completion in editors.

    [bold]Example[/bold]

      regard config schema > regard.schema.json
    """
    from regard.pipeline.config import json_schema, require_task

    terminal.print_json(json_schema(require_task(task, "--task")))
