"""Check configurations with all their data, and the folders of a run; nothing is written."""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.components.data.corpus_plan import CorpusPlan, SpanSummary, survey_corpus
from regard.components.example_validator.corpus_checks import check_corpus
from regard.components.example_validator.target_checks import TargetSettings
from regard.components.trainer.training_length import length_notes
from regard.core.native_output import silence_output
from regard.core.processor import describe_slow_precision, read_features
from regard.pipeline.compare.matrix import read_comparison
from regard.pipeline.config import Config, load
from regard.pipeline.config.load import is_comparison, read_document
from regard.pipeline.context import check_start, resolve_data
from regard.pipeline.doctor.machine import query_driver
from regard.pipeline.tokenizer_models import describe_tokenizer_models
from regard.pipeline.workspace import Workspace


@dataclass(frozen=True)
class Validation:
    """The data of a valid configuration, or of a comparison.

    Attributes:
        name: The name of the pipeline, or of the comparison.
        models: The number of models of a comparison; None for a pipeline.
        rows: The number of rows of each split.
        files: The files of each split.
        notes: Sentences about what differs from the usual.
        first_rows: The first rows as they are read: the columns, and the texts in them.
        spans: The spans with their rows and files.
        root: The folder of the data.
        nodes: The names of the nodes, in the order in which they run.
        own_nodes: Those of the section ``pipeline``.
    """

    name: str
    models: int | None
    rows: Mapping[str, int]
    files: Mapping[str, Sequence[str]] = field(repr=False)
    notes: Sequence[str]
    first_rows: Sequence[Mapping[str, Any]] = field(repr=False)
    spans: Sequence[SpanSummary] = field(repr=False)
    root: Path = field(repr=False)
    nodes: Sequence[str] = field(repr=False)
    own_nodes: Sequence[str] = field(repr=False)


def validate(
    config: Config | Path,
    options: Sequence[str] = (),
    on_progress: Callable[[str], None] = lambda text: None,
) -> Validation:
    """Check a configuration or a comparison, all its data, and the folders of a run.

    Data checks with the action fail are carried out.

    Args:
        config: The configuration, or the YAML file of a pipeline or of a comparison.
        options: The values of ``--set``, ``KEY=VALUE``, for a file.
        on_progress: Called with a text while the data is read.

    Raises:
        UserError: The configuration, a row, or a folder is invalid.
    """
    workspace = Workspace.from_environment()
    if isinstance(config, Path) and is_comparison(read_document(config, workspace)):
        comparison = read_comparison([config], workspace, options=options)
        configs = [member.config for member in comparison.members]
        name, models = comparison.name, len(configs)
    else:
        configs = [config if isinstance(config, Config) else load(config, options=options)]
        name, models = configs[0].name, None
    checked = configs[0]  # all models of a comparison have the same data
    tokenizers = check_start(checked, workspace)
    for model in configs:
        if model.own_code:
            on_progress("importing your own code …")
            with silence_output():
                from regard.pipeline.own_nodes import check_own_code  # imports TFX

                check_own_code(model)
    notes = _precision_notes({model.training.precision for model in configs})
    notes += describe_tokenizer_models(tokenizers)
    targets = TargetSettings.from_sections(checked.tokenizer, checked.evaluation)
    plan = CorpusPlan(resolve_data(checked, notes))
    on_progress("reading the data …")
    summary = survey_corpus(plan, on_progress)
    on_progress("checking the rows …")
    check_corpus(plan, targets)
    training_notes: dict[str, None] = {}  # models of a comparison share most of them
    for model in configs:
        training_notes |= dict.fromkeys(length_notes(model.training, summary.rows["train"]))
    files = {}
    for split, groups in plan.groups.items():
        files[split] = list(itertools.chain.from_iterable(group.files for group in groups))
    return Validation(
        name=name,
        models=models,
        rows=summary.rows,
        files=files,
        notes=[
            *summary.problems.format_notes(),
            *summary.problems.first_row_notes(),
            *notes,
            *summary.notes,
            *training_notes,
        ],
        first_rows=summary.problems.first_rows(),
        spans=summary.spans,
        root=Path(checked.data.root),
        nodes=checked.nodes,
        own_nodes=[node.id for node in checked.pipeline.nodes],
    )


def _precision_notes(precisions: Collection[str]) -> list[str]:
    """Return notes about precisions of trainings that are slow on this machine."""
    texts = [describe_slow_precision(name, read_features()) for name in sorted(precisions)]
    notes = [text for text in texts if text]
    gpus, _ = query_driver() if notes else ([], "")
    return [] if gpus else notes
