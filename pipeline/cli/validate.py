"""``regard validate``: check the configuration and read all its data once."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated

from regard.components.data.corpus_plan import CorpusPlan, SpanSummary, survey_corpus
from regard.components.example_validator.corpus_checks import check_corpus
from regard.components.example_validator.target_checks import TargetSettings
from regard.components.settings.data import paths_in
from regard.components.trainer.training_length import length_notes
from regard.core.formatting import format_count, format_rows
from regard.core.processor import describe_slow_precision, read_features
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import JsonOption, argument
from regard.pipeline.compare.matrix import read_comparison
from regard.pipeline.config import load
from regard.pipeline.config.load import is_comparison, read_document
from regard.pipeline.context import check_start, resolve_data
from regard.pipeline.doctor.machine import query_driver
from regard.pipeline.workspace import Workspace

_NOT_CHECKED = "Only a run checks vocab_size, vocabularies, drift, and that images can be decoded."


def validate(
    config: Annotated[Path, argument("CONFIG", "YAML file of a pipeline or of a comparison.")],
    as_json: JsonOption = False,
) -> None:
    """Check a YAML file, all its data, and the folders of a run. Nothing is written.

    Data checks with the action fail are carried out.

    [bold]Example[/bold]

      regard validate configs/quickstart.yaml

    [bold]Exit status[/bold]: 0 if everything is valid, 2 otherwise.
    """
    workspace = Workspace.from_environment()
    if is_comparison(read_document(config, workspace)):
        comparison = read_comparison([config], workspace)
        # All models of a comparison have the same data.
        name = comparison.name
        configs = [member.config for member in comparison.members]
        title = f"comparison {name} of {format_count(len(comparison.members), 'model')}"
    else:
        configs = [load(config)]
        name = configs[0].name
        title = f"pipeline {name}"
    checked = configs[0]
    check_start(checked, workspace)
    notes = _precision_notes({model.training.precision for model in configs})
    targets = TargetSettings.from_sections(checked.tokenizer, checked.evaluation)
    plan = CorpusPlan(resolve_data(checked, notes))
    with terminal.err().status("reading the data …") as status:
        summary = survey_corpus(plan, status.update)
        status.update("checking the rows …")
        check_corpus(plan, targets)
    notes = [*summary.problems.format_notes(), *notes, *summary.notes]
    training_notes: dict[str, None] = {}  # models of a comparison share most of them
    for model in configs:
        training_notes |= dict.fromkeys(length_notes(model.training, summary.rows["train"]))
    notes += training_notes
    terminal.err().print(_NOT_CHECKED, soft_wrap=True)
    files: dict[str, list[str]] = {}
    for split, groups in plan.groups.items():
        files[split] = list(itertools.chain.from_iterable(group.files for group in groups))
    if as_json:
        spans = [span.to_json() for span in summary.spans]
        content = {"config": str(config), "name": name, "files": files, "rows": summary.rows}
        first_rows = summary.problems.first_rows()
        terminal.print_json({**content, "first_rows": first_rows, "notes": notes, "spans": spans})
        return
    out = terminal.out()
    rows = ", ".join(f"{count:,} {split}" for split, count in summary.rows.items())
    file_count = format_count(sum(map(len, files.values())), "file")
    out.print(f"{config} is valid: {title}, {rows} from {file_count}.", soft_wrap=True)
    for span in summary.spans:
        for line in _span_lines(span, Path(checked.data.root)):
            out.print(line, soft_wrap=True)
    for note in notes:
        out.print(f"  {note}", soft_wrap=True)


def _precision_notes(precisions: Collection[str]) -> list[str]:
    """Return notes about precisions of trainings that are slow on this machine."""
    texts = [describe_slow_precision(name, read_features()) for name in sorted(precisions)]
    notes = [text for text in texts if text]
    gpus, _ = query_driver() if notes else ([], "")
    return [] if gpus else notes


def _span_lines(summary: SpanSummary, root: Path) -> Iterator[str]:
    """Yield the rows and the files of a span."""
    span = summary.span
    version = "" if span.version is None else f", version {span.version}"
    yield f"  span {span.name}{version}: {format_rows(summary.to_json())}"
    for files in span.files.values():
        yield from (f"    {os.path.relpath(path, root)}" for path in paths_in(files))
