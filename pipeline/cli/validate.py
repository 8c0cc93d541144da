"""``regard validate``: check the configuration and read all its data once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from regard.components.data.corpus_plan import SpanSummary
from regard.components.settings.data import paths_in
from regard.core.formatting import format_count, format_rows
from regard.pipeline import validation
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import JsonOption, SetOption, argument

_NOT_CHECKED = "Only a run checks vocab_size, vocabularies, drift, and that images can be decoded."


def validate(
    config: Annotated[Path, argument("CONFIG", "YAML file of a pipeline or of a comparison.")],
    values: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a YAML file, all its data, and the folders of a run. Nothing is written.

    Data checks with the action fail are carried out.

    [bold]Example[/bold]

      regard validate configs/quickstart.yaml

    [bold]Exit status[/bold]: 0 if everything is valid, 2 otherwise.
    """
    with terminal.err().status("reading the configuration …") as status:
        result = validation.validate(config, values or (), status.update)
    terminal.err().print(_NOT_CHECKED, soft_wrap=True)
    if as_json:
        spans = [span.to_json() for span in result.spans]
        facts = {"config": str(config), "name": result.name, "files": result.files}
        rows = {"rows": result.rows, "first_rows": result.first_rows}
        nodes = {"nodes": result.nodes, "notes": result.notes, "spans": spans}
        terminal.print_json({**facts, **rows, **nodes})
        return
    out = terminal.out()
    title = f"pipeline {result.name}"
    if result.models is not None:
        title = f"comparison {result.name} of {format_count(result.models, 'model')}"
    counts = ", ".join(f"{count:,} {split}" for split, count in result.rows.items())
    file_count = format_count(sum(map(len, result.files.values())), "file")
    out.print(f"{config} is valid: {title}, {counts} from {file_count}.", soft_wrap=True)
    for span in result.spans:
        for line in _span_lines(span, result.root):
            out.print(line, soft_wrap=True)
    if result.own_nodes:
        names = (f"{name} (own)" if name in result.own_nodes else name for name in result.nodes)
        out.print(f"  nodes: {' → '.join(names)}", soft_wrap=True)
    for note in result.notes:
        out.print(f"  {note}", soft_wrap=True)


def _span_lines(summary: SpanSummary, root: Path) -> Iterator[str]:
    """Yield the rows and the files of a span."""
    span = summary.span
    version = "" if span.version is None else f", version {span.version}"
    yield f"  span {span.name}{version}: {format_rows(summary.to_json())}"
    for files in span.files.values():
        yield from (f"    {os.path.relpath(path, root)}" for path in paths_in(files))
