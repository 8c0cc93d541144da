"""``regard predict``: run a model on arguments or on lines of standard input."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import (
    AnyModelArgument,
    RegistryOption,
    ServerOption,
    argument,
    flag,
    option,
)
from regard.pipeline.workspace import Workspace


def predict(
    model: AnyModelArgument,
    texts: Annotated[
        list[str] | None,
        argument(
            "TEXT",
            "Inputs: a text, the path of an image, or points as JSON. A model with several "
            "inputs takes that many TEXTs for each row. Without TEXT, or with -, lines are read "
            "from standard input, with tabs between inputs. Put -- before texts that start with "
            "a dash.",
        ),
    ] = None,
    align: Annotated[bool, flag("--align", "Print the attention as a table.")] = False,
    as_json: Annotated[bool, flag("--json", "Print one JSON object on each line.")] = False,
    picture: Annotated[
        Path | None,
        option(
            "--picture",
            "FILE",
            "Write the attention of all rows to an interactive page, FILE.html.",
        ),
    ] = None,
    prefix: Annotated[
        str, option("--prefix", "TEXT", "What every output begins with.", "none")
    ] = "",
    phrases: Annotated[
        list[str] | None,
        option("--phrase", "TEXT", "What every output contains; repeatable.", "none"),
    ] = None,
    glossary: Annotated[
        Path | None,
        option(
            "--glossary",
            "FILE",
            "Terms that are translated in one way: source term, tab, target term on each line.",
            "none",
        ),
    ] = None,
    registry: RegistryOption = None,
    server: ServerOption = None,
) -> None:
    """Run a model on the given inputs, or on standard input.

    Predictions are printed in order, one on each line.

    [bold]Examples[/bold]

      regard predict quickstart "Friday, 20 November 2026"

      regard predict quickstart@1 "Friday, 20 November 2026" --align

      regard predict translation < sentences.en > sentences.de

      regard predict translation --glossary terms.tsv < sentences.en > sentences.de

      regard predict quickstart "Friday, 20 November 2026" --server grpc://localhost:8500

      regard predict similarity "A man plays a guitar." "Someone makes music."

      regard predict captioning photo.jpg --picture attention.html
    """
    from regard.components.common.formatting import format_count
    from regard.pipeline.prediction import predict as prediction
    from regard.pipeline.prediction.constraints import Constraints, read_glossary

    root = registry or Workspace.from_environment().registry
    terms = read_glossary(glossary) if glossary is not None else {}
    constraints = Constraints(prefix, phrases or (), terms)
    options = prediction.PredictOptions(
        align, as_json, picture, terminal.out().width, constraints, server
    )
    lines = [] if texts == ["-"] else list(texts or [])
    truncated = prediction.predict(model, root, lines, options)
    if truncated:
        inputs = format_count(truncated, "input")
        terminal.print_notes(
            [f"{inputs} truncated to search.max_source_length; --json shows by how much"]
        )
