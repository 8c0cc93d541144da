"""Read the data of an evaluation from the columns that the model was trained with."""

import contextlib
import dataclasses
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.common.prediction_table import Row
from regard.components.data import config_rules, formats
from regard.components.data.columns import MissingColumn
from regard.components.data.corpus_plan import CorpusPlan
from regard.components.data.example_rows import ExampleRow
from regard.components.data.images import Images
from regard.components.data.layouts import check_agreement
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import read_rows
from regard.components.data.row_values import value_lists
from regard.components.data.sources import Corpus, FileGroup, extra_features, find_files
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.predictor.split_reader import to_row
from regard.components.registry.records import VersionRecord
from regard.components.settings.data import DataConfig, Files, paths_in
from regard.core.errors import DataError, UserError
from regard.core.features import Feature
from regard.models.tasks.description import Description

_OPTIONS = {
    "data.train": "--data",
    "data.train.source": "--source",
    "data.train.target": "--target",
}
# What depends on the files of the training.
_NOT_INHERITED = ("root", "format", "train", "eval", "test", "split", "spans", "checks", "schema")


def read_data(
    description: Description,
    record: VersionRecord,
    files: Files,
    columns: Mapping[str, int | str] | None,
) -> tuple[Corpus, list[Row], list[str]]:
    """Read all rows, as a run would read its test split.

    Only the columns of the task are necessary. Those of ``data.extra`` make slices; if no file has
    one, it is left out.

    Args:
        description: the description of the model's task.
        record: the record of the model.
        files: one file, several, or one for each side, as in ``data.train``.
        columns: the columns of the features; None: those of the model's configuration.

    Returns:
        The files and their features, the rows, and notes about the columns for the user.

    Raises:
        UserError: the files do not fit the task, or a file or a row cannot be used.
    """
    with _option_names():
        corpus = _corpus(description, record, files, columns)
        rows, problems = _read_rows(corpus)
    notes = [
        *problems.format_notes(),
        *problems.first_row_notes(),
        *problems.notes(),
        *_absent_notes(record, corpus.features),
    ]
    return corpus, rows, notes


@contextlib.contextmanager
def _option_names() -> Iterator[None]:
    """Name the options of the command in errors, instead of the keys of a configuration."""
    try:
        yield
    except UserError as error:
        remedy = re.sub(r"`data\.columns: \{(.*?)\}`", _columns_option, error.remedy or "")
        remedy = remedy.replace("`data.columns`", "`--columns`")
        where = _OPTIONS.get(error.where or "", error.where)
        raise error.with_texts(error.message, where, remedy or None) from None


def _columns_option(match: re.Match[str]) -> str:
    """Return the option for columns in YAML's flow style."""
    columns = match[1].replace(": ", "=").replace(", ", ",")
    return f"`--columns {columns}`"


def _corpus(
    description: Description,
    record: VersionRecord,
    files: Files,
    columns: Mapping[str, int | str] | None,
) -> Corpus:
    """Return the files with the columns that the model was trained with, if the format is equal.

    Extra columns of the training that no file has are left out.

    Raises:
        UserError: the files do not fit the task.
    """
    root = str(Path(next(paths_in(files))).absolute().parent)  # images are relative to it
    settings: dict[str, Any] = {"root": root, "train": files, "split": None}
    recorded = record.config.get("data") or {}
    trained = DataConfig.model_validate(recorded) if recorded else None
    kind = DataConfig.model_validate(settings).format_of(files)
    data_format = None if kind is None else formats.get_format(kind)
    is_equal = trained is not None and kind == trained.format_of(trained.train)
    if trained is not None and data_format is not None and is_equal and not data_format.is_parallel:
        unused = set(formats.FILE_KEYS).difference(data_format.keys)  # of files of other formats
        omitted = unused.union(_NOT_INHERITED)
        settings |= {key: value for key, value in trained if key not in omitted}
        if trained.tags and not trained.tags.column:
            del settings["tags"]
    if columns is not None:
        settings |= {"columns": dict(columns), "header": "auto"}
        settings["extra"] = [name for name in settings.get("extra", ()) if name in columns]
    data = DataConfig.model_validate(settings)
    # Only the tags of a model are necessary; others make slices.
    extras = [
        dataclasses.replace(feature, optional=not feature.tags) for feature in extra_features(data)
    ]
    features = (*description.features, *extras)
    for problem in config_rules.validate_data(data, features):
        if problem.path != ("data", "split"):
            raise UserError(problem.message, "--data")
    corpus = Corpus(data, features, spans=())
    absent = _absent_columns(corpus)
    return dataclasses.replace(corpus, features=tuple(f for f in features if f.name not in absent))


def _absent_columns(corpus: Corpus) -> set[str]:
    """Return the extra columns that no file has, by the first row of each."""
    optional = [feature for feature in corpus.features if feature.optional]
    extras = {feature.name for feature in optional if feature.role == "extra"}
    present: set[str] = set()
    for group in itertools.chain.from_iterable(find_files(corpus).values()):
        attempt = corpus
        while (missing := _missing_column(group, attempt, present)) in extras:
            features = tuple(feature for feature in attempt.features if feature.name != missing)
            attempt = dataclasses.replace(attempt, features=features)
    return extras - present


def _missing_column(group: FileGroup, corpus: Corpus, present: set[str]) -> str | None:
    """Return a feature whose column is missing; otherwise add those that have one."""
    problems = ReadProblems()
    try:
        next(read_rows(group, corpus, problems), None)
    except MissingColumn as error:
        return error.feature
    except UnreadableFile:  # reported when all rows are read
        return None
    for layout in problems.layouts:
        present.update(layout.columns)
    return None


def _absent_notes(record: VersionRecord, features: Sequence[Feature]) -> Iterator[str]:
    """Yield a sentence about the extra columns of the training that the files lack."""
    trained = (record.config.get("data") or {}).get("extra") or ()
    present = {feature.name for feature in features}
    absent = [name for name in trained if name not in present]
    if absent:
        yield f"The files have no columns {', '.join(absent)}, so slices by them are left out."


def _read_rows(corpus: Corpus) -> tuple[list[Row], ReadProblems]:
    """Read all rows, as a run would read its test split.

    Raises:
        UserError: a file or a row cannot be used, or there are no rows.
    """
    images = Images.of(corpus.config)
    rows: list[Row] = []
    total = ReadProblems()
    for job in CorpusPlan(corpus).jobs:
        problems = ReadProblems()
        file = job.group.files[0]
        for line, values in job.rows(corpus, problems, images):
            lists = value_lists(corpus.features, values, images)
            example = ExampleRow(lists, os.path.basename(file), line)
            rows.append(to_row(example, corpus.features))
        problems.raise_if_unusable(corpus.config)
        total.merge(problems)
    check_agreement(total.layouts)
    if not rows:
        raise DataError("The files have no rows to evaluate.", "--data")
    return rows, total
