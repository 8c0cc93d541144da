"""``regard evaluate``: score a finished model on any data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from regard.components.evaluator.results import Comparison, Evaluation, MetricResult
from regard.core.errors import UserError
from regard.core.formatting import (
    format_count,
    metric_digits,
    score_with_loss,
    value_with_interval,
)
from regard.core.native_output import silence_output
from regard.pipeline.cli import terminal
from regard.pipeline.cli.completion import complete_version
from regard.pipeline.cli.options import (
    JsonOption,
    MbrOption,
    RegistryOption,
    TagOption,
    argument,
    flag,
    option,
)
from regard.pipeline.prediction import evaluate as evaluation
from regard.pipeline.workspace import Workspace


def evaluate(
    models: Annotated[
        list[str],
        argument(
            "MODEL [MODEL]",
            "NAME or NAME@VERSION in the registry, a folder with a SavedModel, or the address of a "
            "served model, grpc://HOST:PORT/NAME. A second model is compared with the first, "
            "and --mbr applies to the first alone.",
            autocompletion=complete_version,
        ),
    ],
    data: Annotated[
        list[Path] | None,
        option(
            "--data",
            "FILE",
            "File with inputs and references in any format of data.train; repeatable.",
        ),
    ] = None,
    source: Annotated[
        Path | None, option("--source", "FILE", "Sources, one on a line; needs --target.")
    ] = None,
    target: Annotated[Path | None, option("--target", "FILE", "References, one on a line.")] = None,
    metrics: Annotated[
        str, option("--metrics", "NAMES", "Metrics, for example bleu,chrf.", "those of the run")
    ] = "",
    columns: Annotated[
        str,
        option(
            "--columns", "FEATURE=COLUMN", "Columns of a table, for example source=en,target=fr."
        ),
    ] = "",
    out: Annotated[
        Path | None,
        option("--out -o", "DIR", "Folder for outputs, metrics and report.html.", "none"),
    ] = None,
    explore: Annotated[
        Path | None,
        option(
            "--explore",
            "FILE",
            "HTML page about the rows on which two models differ, with the likely errors.",
        ),
    ] = None,
    mbr: MbrOption = None,
    samples: Annotated[
        int | None, option("--samples", "N", "Number of samples of --mbr.", "32", min=2)
    ] = None,
    temperature: Annotated[
        float | None, option("--temperature", "T", "Temperature of these samples.", "0.5")
    ] = None,
    tag: TagOption = None,
    robustness: Annotated[
        bool,
        flag(
            "--robustness",
            "Score the first model also with changed inputs: other case, accents and punctuation, "
            "typing errors, spaces.",
        ),
    ] = False,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score one or two finished models on any data, with 95% confidence intervals.

    [bold]Examples[/bold]

      regard evaluate multi30k --source test_2017.en --target test_2017.de

      regard evaluate multi30k-en-de-fr-cs --tag fr --source a.en --target a.fr

      regard evaluate multi30k multi30k --mbr chrf --source a.en --target a.de

      regard evaluate quickstart@2 quickstart@1 --data test.tsv --out evaluation

      regard evaluate quickstart@2 quickstart@1 --data a.tsv --explore a.html

      regard evaluate multi30k --source a.en --target a.de --robustness

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    sides = {"source": source, "target": target}
    if bool(data) == any(sides.values()) or not (data or all(sides.values())):
        remedy = "Give --data FILE, or --source FILE and --target FILE."
        raise UserError("The data are missing or ambiguous.", "--data", remedy)
    sampling = {"samples": samples, "temperature": temperature}
    if mbr is None and any(value is not None for value in sampling.values()):
        problem = "--samples and --temperature need --mbr."
        raise UserError(problem, "--samples", "Add --mbr chrf.")
    files = [str(path.absolute()) for path in data or ()]
    root = registry or Workspace.from_environment().registry
    notes: list[str] = []
    with terminal.working("Loading …") as update, silence_output():
        result = evaluation.evaluate(
            models,
            root,
            files or {name: str(path.absolute()) for name, path in sides.items() if path},
            [name.strip() for name in metrics.split(",") if name.strip()],
            _parse_columns(columns) if columns else None,
            out,
            on_progress=update,
            tag=tag,
            notes=notes,
            explore=explore,
            robustness=robustness,
            search={name: value for name, value in sampling.items() if value is not None},
            mbr=mbr,
        )
    if as_json:
        terminal.print_json({"models": models, "notes": notes, **result.model_dump()})
        return
    terminal.print_notes(notes)
    _print_table(result, models)
    _print_robustness(result)
    if out is not None:
        terminal.print_lines(f"report  {(out / evaluation.REPORT).absolute()}")
    if explore is not None:
        terminal.print_lines(f"differences  {explore.absolute()}")


def _print_table(result: Evaluation, models: Sequence[str]) -> None:
    """Print a line for each metric; with two models also the p-value of the compared metric."""
    other = result.production
    comparison = other.comparison if other else None
    headings = ["metric", *models]
    if other:
        headings += ["difference", "p"]
    lines = []
    for name, metric in result.metrics.items():
        cells = [metric.label, value_with_interval(metric.model_dump(), metric.scale)]
        if other:
            other_metric = other.metrics[name]
            cells.append(value_with_interval(other_metric.model_dump(), other_metric.scale))
            cells += _comparison_cells(comparison, metric) if comparison else ["", ""]
        lines.append([*cells, metric.signature])
    terminal.print_lines(format_count(result.rows, "row"))
    terminal.print_table([*headings, "signature"], lines, terminal.out())


def _print_robustness(result: Evaluation) -> None:
    """Print the scores of each kind of changed inputs, with the loss from the clean ones."""
    if not result.robustness:
        return
    names = list(result.robustness[0].scores)
    lines = [
        [
            entry.label,
            f"{entry.rows:,}",
            *(
                score_with_loss(entry.model_dump(), name, result.metrics[name].scale)
                for name in names
            ),
        ]
        for entry in result.robustness
    ]
    labels = [result.metrics[name].label for name in names]
    headings = ["changed inputs", "rows", *(f"{label} (loss)" for label in labels)]
    terminal.print_table(headings, lines, terminal.out())


def _comparison_cells(comparison: Comparison, metric: MetricResult) -> list[str]:
    """Return the 95% interval of the difference and its p-value, for the compared metric."""
    if comparison.metric != metric.name:
        return ["", ""]
    interval, digits = comparison.difference, metric_digits(metric.scale)
    bounds = f"{interval.low:+.{digits}f} to {interval.high:+.{digits}f}" if interval else ""
    return [bounds, f"{comparison.p_value:.3f}" if comparison.p_value else ""]


def _parse_columns(text: str) -> dict[str, int | str]:
    columns: dict[str, int | str] = {}
    for part in text.split(","):
        name, separator, column = part.strip().partition("=")
        if not (name and separator and column):
            remedy = "Write for example source=en,target=fr or source=2,target=1."
            raise UserError(f"{part.strip()!r} is not FEATURE=COLUMN.", "--columns", remedy)
        columns[name] = int(column) if column.isdigit() else column
    return columns
