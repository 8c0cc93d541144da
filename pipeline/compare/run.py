"""Train the models of a comparison, and write their results after each one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from regard.core.errors import UserError
from regard.core.suggestions import suggest
from regard.pipeline.compare.folder import ComparisonFolder
from regard.pipeline.compare.gather import gather
from regard.pipeline.compare.jobs import ComparisonOutcome, train_models
from regard.pipeline.compare.matrix import ModelComparison
from regard.pipeline.compare.results import ComparisonResults
from regard.pipeline.context import resolve_data
from regard.pipeline.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import Console


def run_comparison(
    comparison: ModelComparison,
    workspace: Workspace,
    console: Console,
    on_message: Callable[[str], None],
    *,
    only: Iterable[str] = (),
    jobs: int = 1,
    command: str = "",
    verbose: bool = False,
) -> tuple[ComparisonResults, ComparisonOutcome]:
    """Train and evaluate models on the same data; finished steps are cached.

    Args:
        comparison: the models.
        workspace: contains the pipelines and the folder of the comparison.
        console: where to report starts and ends.
        on_message: called with notes on the data, and with errors that do not stop the models.
        only: the labels of the models to train; none: all.
        jobs: how many models to train at a time; they share the cores.
        command: the command that repeats the comparison, for the results.
        verbose: whether to report the logs of the models, too.

    Raises:
        UserError: the data cannot be read, or there is no model with a label.
    """
    labels = _select(only, comparison.labels)
    folder = ComparisonFolder.of(workspace, comparison.name)

    def write() -> ComparisonResults:
        results = gather(comparison, workspace)
        folder.write(results, command)
        return results

    def write_after_model() -> None:
        try:
            write()
        # Must not stop the models that follow; the last call, at the end, raises it.
        except Exception as error:
            on_message(f"The results cannot be written: {type(error).__name__}: {error}")

    notes: list[str] = []
    resolve_data(comparison.members[0].config, notes)  # the data of all models is the same
    for note in notes:
        on_message(f"data: {note}")
    outcome = train_models(comparison, labels, jobs, workspace, console, write_after_model, verbose)
    return write().model_copy(update={"directory": str(folder.root)}), outcome


def _select(only: Iterable[str], labels: Sequence[str]) -> list[str]:
    """Return the selected labels, or all, in the order of the file."""
    selected = [label.strip() for label in ",".join(only).split(",") if label.strip()]
    for label in selected:
        if label not in labels:
            raise UserError(f"Unknown model {label!r}", "--only", f"{suggest(label, labels)}.")
    return [label for label in labels if label in selected or not selected]
