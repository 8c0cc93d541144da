"""``regard data``: generate or download the data sets of the examples."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

from regard.core.errors import UserError
from regard.pipeline import datasets
from regard.pipeline.cli import terminal
from regard.pipeline.cli.completion import complete_data_set
from regard.pipeline.cli.options import JsonOption, argument, command_group, option
from regard.pipeline.workspace import Workspace

app = command_group("Generate or download the data of the examples.")

NameArgument = Annotated[str, argument("NAME", "Data set.", autocompletion=complete_data_set)]


@app.command()
def generate(
    name: NameArgument,
    out: Annotated[
        Path | None, option("--out", "DIR", "Output folder.", "$REGARD_HOME/data/NAME")
    ] = None,
    rows: Annotated[
        int | None, option("--rows", "N", "Number of rows.", "depends on the data set")
    ] = None,
    seed: Annotated[int, option("--seed", "N", "Random seed; it determines all data.")] = 17,
    dimensions: Annotated[
        int | None,
        option("--dimensions", "N", "Coordinates of a point (only sorting and tours).", "2"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Generate a data set from a seed.

    [bold]Example[/bold]

      regard data generate quickstart
    """
    values = {"seed": seed, "rows": rows, "dimensions": dimensions}
    options = {key: value for key, value in values.items() if value is not None}
    function = datasets.writer("generate", name)
    if dimensions is not None and "dimensions" not in inspect.signature(function).parameters:
        message = f"The data set {name} has no points."
        raise UserError(message, "--dimensions", "Leave the option out.")
    write = partial(function, **options)
    _write(write, name, out or Workspace.from_environment().data(name), as_json)


@app.command()
def fetch(
    name: NameArgument,
    out: Annotated[
        Path | None, option("--out", "DIR", "Output folder.", "$REGARD_DATA/NAME")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Download a data set and verify its checksums; existing files are verified and kept.

    REGARD_DATA defaults to $REGARD_HOME/data, here and in configurations.

    [bold]Example[/bold]

      regard data fetch multi30k
    """
    folder = out or Workspace.from_environment().data_root() / name
    _write(datasets.writer("fetch", name), name, folder, as_json)


@app.command("list")
def list_datasets(as_json: JsonOption = False) -> None:
    """List the data sets that can be generated or downloaded."""
    entries = [
        {"name": name, "command": command} for name, (command, _) in datasets.DATASETS.items()
    ]
    if as_json:
        terminal.print_json(entries)
    else:
        terminal.print_lines(
            *(f"regard data {entry['command']} {entry['name']}" for entry in entries)
        )


def _write(write: Callable[..., dict[str, int]], name: str, directory: Path, as_json: bool) -> None:
    """Write a data set with a progress bar, and print what was written."""
    if directory.is_file():
        message = "A file has the name of the folder."
        raise UserError(message, str(directory), "Choose another one with --out.")
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal.err(), transient=True) as bar:
        task = bar.add_task(name, total=1.0)

        def report(text: str, fraction: float) -> None:
            bar.update(task, description=text, completed=fraction)

        rows = write(directory, progress=report)
    if as_json:
        terminal.print_json({"name": name, "folder": str(directory), "rows": rows})
        return
    counts = ", ".join(f"{count:,} {split}" for split, count in rows.items())
    terminal.print_lines(f"{name}: {counts}", str(directory))
