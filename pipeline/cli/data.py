"""``regard data``: generate or download the data sets of the examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.pipeline.cli import terminal
from regard.pipeline.workspace import Workspace

if TYPE_CHECKING:
    from regard.pipeline.datasets import Dataset, Progress

app = typer.Typer(
    help="Generate or download the data of the examples.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Data set.", show_default=False)]


@app.command()
def generate(
    name: NameArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Output folder.", show_default="$REGARD_HOME/data/NAME"
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Number of rows.", show_default="depends on the data set")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed; it determines all data.")] = 17,
    as_json: terminal.JsonOption = False,
) -> None:
    """Generate a data set from a seed.

    [bold]Example[/bold]

      regard data generate quickstart
    """
    from regard.pipeline import datasets

    generator = datasets.generator(name)
    options = {"seed": seed} if rows is None else {"seed": seed, "rows": rows}

    def write(directory: Path, progress: Progress) -> Dataset:
        return generator(directory, progress=progress, **options)

    _write(write, name, out or Workspace.from_environment().data(name), as_json)


@app.command()
def fetch(
    name: NameArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Output folder.", show_default="$REGARD_DATA/NAME"
        ),
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Download a data set and verify its checksums; existing files are verified and kept.

    REGARD_DATA defaults to $REGARD_HOME/data, here and in configurations.

    [bold]Example[/bold]

      regard data fetch multi30k
    """
    from regard.pipeline import datasets

    fetcher = datasets.fetcher(name)
    _write(fetcher, name, out or _download_folder(name), as_json)


@app.command("list")
def list_datasets(as_json: terminal.JsonOption = False) -> None:
    """List the data sets that can be generated or downloaded."""
    from regard.pipeline import datasets

    entries = [{"name": name, "command": "generate"} for name in sorted(datasets.GENERATORS)]
    entries += [{"name": name, "command": "fetch"} for name in sorted(datasets.FETCHERS)]
    if as_json:
        terminal.print_json(entries)
        return
    for entry in entries:
        terminal.out().print(f"regard data {entry['command']} {entry['name']}", soft_wrap=True)


def _download_folder(name: str) -> Path:
    """Return ``$REGARD_DATA/NAME``, or a folder of the workspace if that is read-only."""
    from regard.components.common.files import is_writable

    workspace = Workspace.from_environment()
    directory, own = workspace.data_root() / name, workspace.data(name)
    # A read-only folder is fine if it already contains the data set.
    if directory == own or directory.is_dir() or is_writable(directory):
        return directory
    terminal.err().print(
        "REGARD_DATA is read-only, so the data is written to the workspace. To use it in "
        f"configurations, unset REGARD_DATA or set it to {own.parent}.",
        soft_wrap=True,
    )
    return own


def _write(
    write: Callable[[Path, Progress], Dataset], name: str, directory: Path, as_json: bool
) -> None:
    """Write a data set with a progress bar, and print what was written."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as ProgressBar

    console = terminal.err()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with ProgressBar(*columns, console=console, transient=True, disable=as_json) as bar:
        task = bar.add_task(name, total=1.0)

        def report(text: str, fraction: float) -> None:
            bar.update(task, description=text, completed=fraction)

        dataset = write(directory, report)
    if as_json:
        terminal.print_json(
            {
                "name": dataset.name,
                "directory": str(dataset.directory),
                "files": [str(path) for path in dataset.files],
                "rows": dataset.rows,
                "files_written": dataset.files_written,
            }
        )
        return
    rows = ", ".join(f"{count:,} {split}" for split, count in dataset.rows.items())
    terminal.out().print(f"{dataset.name}: {rows}", soft_wrap=True)
    terminal.out().print(f"{dataset.directory}", soft_wrap=True)
