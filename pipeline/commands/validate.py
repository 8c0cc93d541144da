"""``regard validate``: the configuration and all its data, read once."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from components.words import rows_of
from pipeline.commands import terminal


def validate(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG",
            help="The YAML file of a pipeline, or of a comparison.",
            show_default=False,
        ),
    ],
    as_json: terminal.JsonOption = False,
) -> None:
    """Check a YAML file, and read all its data once. Nothing is written.

    [bold]Example[/bold]

      regard validate configs/quickstart.yaml

    [bold]Exit status[/bold]: 0 all is well; 2 something is wrong.
    """
    from components.corpus_gen.survey import survey
    from components.words import counted
    from pipeline.compare import matrix
    from pipeline.config import load, loading
    from pipeline.inputs import data_section
    from pipeline.workspace import Workspace

    workspace = Workspace.from_environment()
    if loading.holds_comparison(loading.read(config, workspace)):
        comparison = matrix.read([config], workspace)
        name, checked = comparison.name, comparison.members[0].config  # the data of all is the same
        what = f"comparison {name} of {counted(len(comparison.members), 'model')}"
    else:
        checked = load(config)
        name, what = checked.name, f"pipeline {checked.name}"
    notes: list[str] = []
    data = data_section(checked, notes)
    with terminal.err().status("reading the data …") as status:
        found = survey(data, status.update)
    found.notes[:0] = notes
    if as_json:
        content = {"config": str(config), "name": name, **dataclasses.asdict(found)}
        terminal.print_json(content)
        return
    out = terminal.out()
    rows = ", ".join(f"{count:,} {split}" for split, count in found.rows.items())
    files = counted(sum(len(names) for names in found.files.values()), "file")
    out.print(f"{config} is valid: {what}, {rows} from {files}.", soft_wrap=True)
    for span in found.spans:
        for line in _span(span, Path(data["root"])):
            out.print(line, soft_wrap=True)
    for note in found.notes:
        out.print(f"  {note}", soft_wrap=True)


def _span(span: dict[str, Any], root: Path) -> Iterator[str]:
    """A span that a run would take, and its files."""
    version = "" if span["version"] is None else f", version {span['version']}"
    yield f"  span {span['name']}{version}: {rows_of(span)}"
    for value in span["files"].values():
        for paths in value.values() if isinstance(value, dict) else [value]:
            yield from (f"    {os.path.relpath(path, root)}" for path in paths)
