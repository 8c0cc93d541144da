"""``regard predict``: run a model on arguments or on lines of standard input."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from regard.core.errors import UserError
from regard.core.formatting import format_count
from regard.pipeline.cli import options, terminal
from regard.pipeline.prediction import predict as prediction
from regard.pipeline.prediction.constraints import OutputConstraints, read_glossary
from regard.pipeline.workspace import Workspace

_LENGTH_KEYS = ("max_length_offset", "max_length_factor")  # of --max-length


def _search(name: str, metavar: str, help: str) -> Any:
    """Declare an option that replaces a value of the section ``search``."""
    panel = "Search (default: that of the model)"
    return options.option(name, metavar, help, rich_help_panel=panel)


def _with_options(message: str, values: Mapping[str, Any]) -> str:
    """Return a message with the options in place of the keys of the section ``search``."""

    def replace(match: re.Match[str]) -> str:
        name = "max_length" if match[1] in _LENGTH_KEYS else match[1]
        if name not in values:
            return match[0]
        option = "search" if name == "type" else name.replace("_", "-")
        return f"--{option} {values[name]}"

    message = message.replace("unknown key for this type; it goes with type:", "it needs --search")
    return re.sub(r"^search\.(\w+)", replace, message, flags=re.MULTILINE)


def predict(
    model: options.AnyModelArgument,
    texts: Annotated[
        list[str] | None,
        options.argument(
            "TEXT",
            "Inputs: a text, the path of an image, or points as JSON. A model with several "
            "inputs takes that many TEXTs for each row. Without TEXT, or with -, lines are read "
            "from standard input, with tabs between inputs; the first line may name the columns. "
            "Put -- before texts that start with a dash.",
        ),
    ] = None,
    align: Annotated[
        bool,
        options.flag(
            "--align",
            "Print the attention as a table: rows attend to columns. If it is too wide, each row "
            "lists its three highest weights, with the positions of their tokens in brackets.",
        ),
    ] = False,
    as_json: Annotated[bool, options.flag("--json", "Print one JSON object on each line.")] = False,
    picture: Annotated[
        Path | None,
        options.option(
            "--picture",
            "FILE",
            "Write the attention of all rows to an interactive page, FILE.html.",
        ),
    ] = None,
    prefix: Annotated[
        str, options.option("--prefix", "TEXT", "What every output begins with.", "none")
    ] = "",
    phrases: Annotated[
        list[str] | None,
        options.option("--phrase", "TEXT", "What every output contains; repeatable.", "none"),
    ] = None,
    glossary: Annotated[
        Path | None,
        options.option(
            "--glossary",
            "FILE",
            "Terms that are translated in one way: source term, tab, target term on each line.",
            "none",
        ),
    ] = None,
    with_score: Annotated[
        bool, options.flag("--score", "Print log-probabilities before outputs.")
    ] = False,
    search: Annotated[
        str | None, _search("--search", "TYPE", "Type: beam, greedy, sampling.")
    ] = None,
    n_best: Annotated[int | None, _search("--n-best", "N", "Print the N best outputs.")] = None,
    samples: Annotated[
        int | None, _search("--samples", "N", "Draw N samples and print them.")
    ] = None,
    beam_size: Annotated[
        int | None, _search("--beam-size", "N", "Number of hypotheses kept.")
    ] = None,
    length_penalty: Annotated[
        float | None, _search("--length-penalty", "ALPHA", "GNMT's alpha.")
    ] = None,
    max_length: Annotated[
        int | None, _search("--max-length", "N", "Maximum number of tokens.")
    ] = None,
    temperature: Annotated[
        float | None, _search("--temperature", "T", "Temperature of samples.")
    ] = None,
    top_k: Annotated[int | None, _search("--top-k", "K", "Sample from the top K tokens.")] = None,
    top_p: Annotated[float | None, _search("--top-p", "P", "Total probability of tokens.")] = None,
    seed: Annotated[int | None, _search("--seed", "N", "Random seed of the samples.")] = None,
    mbr: options.MbrOption = None,
    min_confidence: Annotated[
        float | None,
        options.option(
            "--min-confidence",
            "P",
            "Print an empty output where the model's confidence is lower.",
            "none",
            min=0,
            max=1,
        ),
    ] = None,
    tag: options.TagOption = None,
    registry: options.RegistryOption = None,
    server: options.ServerOption = None,
) -> None:
    """Run a model on the given inputs, or on standard input.

    Predictions are printed in order, one on each line. Lines that are typed in a terminal are run
    one by one; Ctrl-D ends. With --n-best or --samples, there is a line
    for each hypothesis: the input, a tab, and the output, which `regard score` reads. The options
    of the search replace those in the YAML file; the model is then built again in memory.

    [bold]Examples[/bold]

      regard predict quickstart "Friday, 20 November 2026"

      regard predict quickstart@1 "Friday, 20 November 2026" --align

      regard predict translation < in.txt > out.txt

      regard predict translation --glossary terms.tsv < in.txt > out.txt

      regard predict translation --n-best 5 < in.txt | regard score other

      regard predict translation --mbr chrf --samples 32 < in.txt > out.txt

      regard predict translation --min-confidence 0.6 --json < in.txt

      regard predict quickstart "20 November 2026" --server grpc://host:8500

      regard predict multi30k-en-de-fr-cs --tag fr "A dog runs."

      regard predict similarity "A man plays a guitar." "Someone makes music."

      regard predict captioning photo.jpg --picture attention.html

    [bold]Exit status[/bold]: 0 success, even if no output reaches --min-confidence; 2 user error.
    """
    root = registry or Workspace.from_environment().registry
    values: Any = {"type": search, "n_best": n_best, "samples": samples}
    values |= {"beam_size": beam_size, "length_penalty": length_penalty, "max_length": max_length}
    values |= {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    values = {name: value for name, value in values.items() if value is not None}
    terms = read_glossary(glossary) if glossary is not None else {}
    constraints = OutputConstraints(prefix, phrases or (), terms)
    width = terminal.out().width
    notes: list[str] = []
    chosen = prediction.PredictOptions(
        align, as_json, picture, width, constraints, values, with_score, server, tag
    )
    chosen = dataclasses.replace(
        chosen, mbr=mbr, min_confidence=min_confidence, on_note=notes.append
    )
    lines = [] if texts == ["-"] else list(texts or [])
    try:
        with terminal.input_progress(bool(lines)) as on_read:
            chosen = dataclasses.replace(chosen, on_read=on_read)
            counts = prediction.predict(model, root, lines, chosen)
    except UserError as error:
        message = _with_options(error.message, values)
        raise error.with_texts(message, error.where, error.remedy) from error
    if counts.truncated:
        inputs = format_count(counts.truncated, "input")
        notes.append(f"{inputs} truncated to search.max_source_length; --json shows by how much")
    if counts.uncertain:
        inputs = format_count(counts.uncertain, "input")
        notes.append(f"no output for {inputs} with a confidence below {min_confidence:g}")
    terminal.print_notes(notes)
