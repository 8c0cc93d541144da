"""``regard config``: what may stand in a pipeline's YAML file."""

from __future__ import annotations

import sys

import typer

from pipeline.commands import terminal

app = typer.Typer(
    help="Show what may stand in a pipeline's YAML file.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command()
def reference() -> None:
    """Print every key with its meaning and its default, as YAML.

    [bold]Example[/bold]

      regard config reference > mine.yaml
    """
    from pipeline.config import reference as text

    sys.stdout.write(text().rstrip("\n") + "\n")


@app.command()
def schema() -> None:
    """Print the JSON schema, for editors that check and complete YAML.

    [bold]Example[/bold]

      regard config schema > regard.schema.json
    """
    from pipeline.config import schema as content

    terminal.print_json(content())
