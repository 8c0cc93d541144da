"""``regard score``: log-probabilities of given outputs."""

from typing import Annotated

from regard.pipeline.cli import options, terminal
from regard.pipeline.prediction import predict
from regard.pipeline.workspace import Workspace


def score(
    model: options.AnyModelArgument,
    texts: Annotated[
        list[str] | None,
        options.argument(
            "TEXT",
            "Inputs and output of each row. Without TEXT, lines with tabs are read from standard "
            "input.",
        ),
    ] = None,
    as_json: Annotated[
        bool, options.flag("--json", "Print JSON objects, which include the scores of tokens.")
    ] = False,
    tag: options.TagOption = None,
    registry: options.RegistryOption = None,
    server: options.ServerOption = None,
) -> None:
    """Print the log-probability of given outputs, for example to rerank an n-best list.

    The score is the natural logarithm of the probability of the whole output, including its end.

    [bold]Examples[/bold]

      regard score multi30k "A dog runs." "Ein Hund läuft."

      paste sentences.en sentences.de | regard score multi30k --json

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    notes: list[str] = []
    root = registry or Workspace.from_environment().registry
    with terminal.input_progress(bool(texts)) as on_read:
        predict.score(
            model,
            root,
            list(texts or []),
            as_json=as_json,
            server=server,
            tag=tag,
            on_note=notes.append,
            on_read=on_read,
        )
    terminal.print_notes(notes)
