"""``regard data``: data sets that are generated here or fetched from where they are published."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands import terminal
from pipeline.workspace import Workspace

if TYPE_CHECKING:
    from pipeline.datasets import Summary

app = typer.Typer(
    help="Generate or fetch the data of the examples.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The data set.", show_default=False)
]


@app.command()
def generate(
    name: NameArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where to.", show_default="$REGARD_HOME/data/NAME"
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="How many rows.", show_default="the data set's own")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed gives the same data.", show_default="17")
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="LOW-HIGH",
            help="How many points a row to train on has, for data sets of points.",
            show_default="the data set's own",
        ),
    ] = None,
    test_sizes: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="How many points the rows to test on have, equally many rows of each.",
            show_default="the data set's own",
        ),
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Generate a data set from a seed.

    [bold]Example[/bold]

      regard data generate quickstart
      regard data generate hull --sizes 5-20
    """
    from pipeline import datasets

    options = {"rows": rows, "seed": seed, "sizes": sizes, "test_sizes": test_sizes}
    options = {key: value for key, value in options.items() if value is not None}
    make = datasets.generator(name)
    _check_options(make, name, options)
    _make(make, name, out or Workspace.from_environment().data(name), as_json, options)


@app.command()
def fetch(
    name: NameArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where to.", show_default="$REGARD_DATA/NAME"),
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Download a data set; what is already there is checked and kept.

    Where REGARD_DATA is not set, it stands for $REGARD_HOME/data, here and in configurations.

    [bold]Example[/bold]

      regard data fetch multi30k
    """
    from pipeline import datasets

    make = datasets.fetcher(name)
    _make(make, name, out or _fetched_to(name), as_json, {})


@app.command("list")
def list_datasets(as_json: terminal.JsonOption = False) -> None:
    """List the data sets that can be generated or fetched."""
    from pipeline import datasets

    known = [{"name": name, "command": "generate"} for name in sorted(datasets.GENERATORS)]
    known += [{"name": name, "command": "fetch"} for name in sorted(datasets.FETCHERS)]
    if as_json:
        terminal.print_json(known)
        return
    for entry in known:
        terminal.out().print(f"regard data {entry['command']} {entry['name']}", soft_wrap=True)


def _check_options(make: Any, name: str, options: dict[str, Any]) -> None:
    """Refuses options that the data set does not have, such as sizes of what are no points."""
    from components.errors import UserError

    known = inspect.signature(make).parameters
    for key in options:
        if key not in known:
            option = f"--{key.replace('_', '-')}"
            remedy = f"Leave out {option}; it is for data sets of points: hull, sorting, tours."
            raise UserError(f"{name} has no sizes", where=option, remedy=remedy)


def _fetched_to(name: str) -> Path:
    """``$REGARD_DATA/NAME``; the workspace's own folder where that cannot be written."""
    from components.files import writable

    workspace = Workspace.from_environment()
    directory, own = workspace.data_root() / name, workspace.data(name)
    # A shared folder that may not be written is fine where it holds the data set already.
    if directory == own or directory.is_dir() or writable(directory):
        return directory
    terminal.err().print(
        f"REGARD_DATA cannot be written, so the data goes to the workspace. For configurations "
        f"to find it there: unset REGARD_DATA, or set it to {own.parent}",
        soft_wrap=True,
    )
    return own


def _make(make: Any, name: str, directory: Path, as_json: bool, options: dict[str, Any]) -> None:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = terminal.err()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=as_json) as bar:
        task = bar.add_task(name, total=1.0)

        def tell(text: str, fraction: float) -> None:
            bar.update(task, description=text, completed=fraction)

        made: Summary = make(directory, progress=tell, **options)
    if as_json:
        terminal.print_json(
            {
                "name": made.name,
                "directory": str(made.directory),
                "files": [str(path) for path in made.files],
                "rows": made.rows,
                "made": made.made,
            }
        )
        return
    rows = ", ".join(f"{count:,} {split}" for split, count in made.rows.items())
    terminal.out().print(f"{made.name}: {rows}", soft_wrap=True)
    terminal.out().print(f"{made.directory}", soft_wrap=True)
