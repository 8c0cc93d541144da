"""``regard init`` and ``regard config``: starter configurations and all configuration options."""

import sys
from pathlib import Path
from typing import Annotated

from regard.models import tasks
from regard.pipeline.cli import terminal
from regard.pipeline.cli.completion import complete_task
from regard.pipeline.cli.options import (
    JsonErrorsOption,
    JsonOption,
    argument,
    command_group,
    flag,
    option,
)
from regard.pipeline.compare.matrix import comparison_schema
from regard.pipeline.config.config import require_task
from regard.pipeline.config.reference import config_reference, json_schema, write_starter

app = command_group("Show all configuration options.")

_TASKS = ", ".join(tasks.TASKS.own)
TaskOption = Annotated[
    str,
    option(
        "--task",
        "TASK",
        f"Task whose options to show: {_TASKS}.",
        autocompletion=complete_task,
    ),
]


def init(
    task: Annotated[
        str,
        argument(
            "TASK",
            f"Task of the model: {_TASKS}; or an example: quickstart.",
            autocompletion=complete_task,
        ),
    ],
    out: Annotated[Path | None, option("--out -o", "FILE", "Output file.", "TASK.yaml")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a commented starter configuration for a task.

    An example, such as quickstart, is a file of the folder configs. The JSON schema of the file
    is written next to it: editors find it by the first line of the file.

    The file name sets the name of the pipeline. An existing file is never overwritten.

    [bold]Examples[/bold]

      regard init translation

      regard init captioning --out birds.yaml
    """
    path = out or Path(f"{task}.yaml")
    schema_file = write_starter(task, path)
    if as_json:
        terminal.print_json({"file": str(path), "schema": str(schema_file)})
    elif task in tasks.TASKS:
        terminal.print_lines(
            f"Wrote {path} ({tasks.describe(task).summary}).",
            f"Fill in your data, then run: regard validate {path}",
        )
    else:
        terminal.print_lines(f"Wrote {path}. Its first lines say where the data comes from.")


@app.command()
def reference(task: TaskOption = "translation", errors_as_json: JsonErrorsOption = False) -> None:
    """Print every option with its description and default value, as YAML.

    [bold]Example[/bold]

      regard config reference --task translation > reference.yaml
    """
    sys.stdout.write(config_reference(require_task(task, "--task")).rstrip("\n") + "\n")


@app.command()
def schema(
    task: TaskOption = "translation",
    comparison: Annotated[
        bool, flag("--comparison", "Print that of a file for `regard compare`.")
    ] = False,
    errors_as_json: JsonErrorsOption = False,
) -> None:
    """Print the JSON schema of the YAML file, for validation and completion in editors.

    [bold]Examples[/bold]

      regard config schema --task translation > regard.translation.schema.json

      regard config schema --comparison > regard.comparison.schema.json
    """
    known = require_task(task, "--task")
    terminal.print_json(comparison_schema() if comparison else json_schema(known))
