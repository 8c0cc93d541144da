"""The section ``data``: the files, their format, and the checks of their rows."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from regard.components.data import formats
from regard.components.data.span_patterns import is_pattern
from regard.components.settings.data_checks import DataChecksConfig
from regard.components.settings.tags import TagsConfig
from regard.core.bounds import Count, Fraction, Positive, Rate, Share
from regard.models.settings.base import Listed, NotInTrainingKey, ReadByTrainer, Section, absolute
from regard.models.settings.protect import ProtectConfig

if TYPE_CHECKING:
    Format = str
else:
    Format = Literal[formats.NAMES]
SPLITS = ("train", "eval", "test")


def _name_files(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Replace the errors of all forms of a value by one."""
    try:
        return handler(value)
    except ValidationError:
        raise PydanticCustomError(
            "files",
            "a path, a list of paths, or a path for each side such as "
            "{source: train.en, target: train.de} is expected",
        ) from None


_Path = Annotated[str, Field(pattern=r"\S")]
_Paths = _Path | Annotated[list[_Path], Field(min_length=1)]
Files = Annotated[
    _Paths | Annotated[dict[str, _Paths], Field(min_length=1)], WrapValidator(_name_files)
]


def paths_in(files: Files) -> Iterator[str]:
    """Yield the paths of a value of ``train``, ``eval`` or ``test``, one side after another."""
    for value in files.values() if isinstance(files, dict) else [files]:
        yield from [value] if isinstance(value, str) else value


def _add_suffixes(paths: Sequence[str], suffix: int | str) -> list[str]:
    """Return the paths of a language: ``corpus.gz`` becomes ``corpus.en.gz``."""
    stems = [path.removesuffix(".gz") for path in paths]
    return [f"{stem}.{suffix}{path[len(stem) :]}" for stem, path in zip(stems, paths, strict=True)]


class SplitConfig(Section):
    """How eval and test are split off train: by the hash of one feature.

    Attributes:
        eval: Share of rows for the eval split.
        test: Share of rows for the test split.
        by: Feature whose hash decides: rows with the same value are always in the same split; null:
            the first text or image of the task.
        seed: Seed of the hash; another seed gives another split.
    """

    eval: Fraction = 0.05
    test: Fraction = 0.05
    by: str | None = None
    seed: Count = 0


class SpansConfig(Section):
    """Which spans of a growing corpus a run uses.

    Attributes:
        window: Number of newest spans to use; null: all.
        first: First span to use: a number, or a date YYYY-MM-DD if the paths contain dates.
        last: Last span to use.
        exclude: Spans to leave out, for example a month with bad data.
        replay: Share of the train split that is sampled from spans before the window, to prevent
            forgetting: 0.2 adds one row for every four. Rows are sampled by hash, so equal data
            give equal samples, and a larger share contains a smaller one. Replayed rows are only
            trained on.
        test_share: Share of rows of the newest span that is added to the test split instead of
            train. Rows carry their span as the text feature span, for evaluation.slices (fixed:
            rows of files without a placeholder). Above 0, the default of
            evaluation.production.slices is [span].
        marker: File name that marks a span as complete, in the same folder; may contain
            placeholders. null: a span is complete if each pattern has a file.
    """

    window: Positive | None = None
    first: int | str | None = None
    last: int | str | None = None
    exclude: Annotated[Listed[int | str], Field(examples=[[9]])] = ()
    replay: Rate = 0.0
    test_share: Rate = 0.0
    marker: Annotated[str | None, Field(examples=["_SUCCESS"])] = None


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a deprecated method of pydantic has the name of the field

    class PinnedSchemaConfig(Section):
        """The schema of the data, in a file that people review.

        Attributes:
            schema: A schema.pbtxt of TensorFlow Data Validation, relative to this file: the run
                fails if the data have anomalies. null: the schema of each run is inferred, and
                anomalies of eval and test warn.
        """

        schema: Annotated[str | None, NotInTrainingKey, Field(examples=["schema.pbtxt"])] = None  # type: ignore[assignment]


class DataConfig(PinnedSchemaConfig):
    """The data files.

    Attributes:
        root: Folder of the files below, relative to this file. ${VAR} and ${VAR:-default} are
            environment variables, here and everywhere. REGARD_HOME is always defined; the default
            of REGARD_DATA is ${REGARD_HOME}/data.
        format: File format; null: by the endings of file names, after which .gz may follow in
            formats of text. A folder that Hugging Face Datasets saved is arrow; one path per side
            is parallel.
        train: Files to train on: {source: path, target: path} for parallel files (or lists of paths
            in the same order), otherwise a path, a glob or a list of them. With columns {source:
            en, target: fr}, corpus stands for the parallel files corpus.en and corpus.fr. The
            placeholders {SPAN}, {SPAN:3} (three digits), {YYYY}, {MM}, {DD} and {VERSION} match the
            spans of a growing corpus in their newest versions.
        eval: Files of the eval split; null: split off train.
        test: Files of the test split; null: split off train.
        monolingual: Text files in the target language, one text per line (.gz is unpacked), for
            augmentation.back_translation. They should not contain targets of eval and test.
        split: How eval and test are split off train. Cannot be combined with eval and test.
        spans: Which spans to use if paths have placeholders. Paths of eval and test with
            placeholders follow the spans of train; paths without are the same in every run.
        columns: Column of each feature. null: the columns or keys with the names of the features or
            other common names (src, tgt, text, summary); without a header the order of the features
            (source, target for translation).
        extra: Additional text columns for evaluation.slices; in a table without header they follow
            the columns of the task. All files need them; a row may leave them empty.
        tags: Tags that begin the source, for one model with several target languages, domains or
            styles; null: none. Only for tasks with pairs of texts.
        protect: Spans that outputs repeat unchanged, such as URLs and tags; null: none. Only for
            tasks with pairs of texts.
        images: Folder of the images that rows refer to, relative to root; null: root. Only for
            tasks with images.
        header: Whether the first row of a file holds column names; auto: if its cells are common
            names of columns, or a column of numbers begins with a word.
        delimiter: Character between columns.
        encoding: Encoding of text files, for example cp1252, also of monolingual; null: UTF-8.
        bad_rows: What to do with invalid rows: not UTF-8, missing or surplus columns, missing keys,
            broken JSON, invalid numbers or unreadable images. Skipped rows are counted.
        bad_rows_limit: Maximum share of rows that are skipped or dropped; above it the run fails.
        checks: Quality checks. The actions drop and repair change rows of the files of train,
            before they are split; at most bad_rows_limit are dropped. Files of eval and test do not
            change.
    """

    root: Annotated[str, NotInTrainingKey, Field(examples=["${REGARD_HOME}/data/quickstart"])] = "."
    format: Format | None = None
    train: Annotated[
        Files,
        NotInTrainingKey,
        Field(examples=[{"source": "train.en.gz", "target": "train.de.gz"}]),
    ]
    eval: Annotated[Files | None, NotInTrainingKey] = None
    test: Annotated[Files | None, NotInTrainingKey] = None
    monolingual: Annotated[Listed[_Path], NotInTrainingKey, Field(examples=[["news.de.gz"]])] = ()
    split: SplitConfig | None = SplitConfig()
    spans: Annotated[SpansConfig, NotInTrainingKey] = SpansConfig()
    columns: dict[str, int | str] | None = None
    extra: Annotated[
        Listed[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]], Field(examples=[["domain"]])
    ] = ()
    tags: Annotated[TagsConfig | None, ReadByTrainer] = None
    protect: Annotated[ProtectConfig | None, ReadByTrainer] = None
    images: str | None = None
    header: bool | Literal["auto"] = "auto"
    delimiter: Annotated[str, Field(pattern=r'^[^"\r\n\x00]$')] | None = None
    encoding: str | None = None
    bad_rows: Literal["fail", "skip"] = "fail"
    bad_rows_limit: Annotated[Share, NotInTrainingKey] = 0.1
    checks: Annotated[DataChecksConfig, NotInTrainingKey] = DataChecksConfig()

    def for_trainer(self) -> dict[str, Any]:
        """Return the fields that the Trainer reads; which file has which tag is not among them."""
        values = super().for_trainer()
        if self.tags is not None:
            values["tags"] = {"names": list(self.tags.known), "temperature": self.tags.temperature}
        return values

    def key_json(self) -> str:
        """Return also the checks that change rows."""
        return super().key_json() + json.dumps(self.checks.row_changes(), sort_keys=True)

    @model_validator(mode="before")
    @classmethod
    def _no_split_of_explicit_files(cls, value: Any) -> Any:
        has_files = isinstance(value, dict) and (value.get("eval") or value.get("test"))
        return {"split": None, **value} if has_files else value

    def files_by_split(self) -> dict[str, Files]:
        """Return the files of every split that has its own: ``train``, ``eval``, ``test``."""
        files = {"train": self.train, "eval": self.eval, "test": self.test}
        return {split: self._sides(value) for split, value in files.items() if value is not None}

    def _sides(self, files: Files) -> Files:
        """Return the parallel files that a path without a suffix and languages stand for."""
        languages, paths = self.columns or {}, [*paths_in(files)]
        if self.format is None:
            is_stem = not any(map(self._has_format, paths))
        else:
            is_stem = formats.get_format(self.format).is_parallel
        has_languages = languages and all(isinstance(code, str) for code in languages.values())
        if isinstance(files, dict) or not is_stem or not has_languages:
            return files
        return {side: _add_suffixes(paths, language) for side, language in languages.items()}

    def _has_format(self, path: str) -> bool:
        suffix = Path(path.removesuffix(".gz")).suffix.lower()
        is_known = bool(suffix) and formats.format_of_ending(suffix) is not None
        return is_known or os.path.exists(os.path.join(self.root, path))

    def format_of(self, files: Files) -> Format | None:
        """Return the format of files: the one that is set, else the one of their names."""
        if self.format is not None:
            return self.format
        if isinstance(self._sides(files), dict):
            return formats.parallel_format()
        names = [path.lower().removesuffix(".gz") for path in paths_in(files)]
        candidates = {formats.format_of_ending(Path(name).suffix) for name in names}
        return candidates.pop() if len(candidates) == 1 else None

    @property
    def tag_feature(self) -> str | None:
        """The feature that holds the tag of a row; None without tags."""
        return self.tags.feature if self.tags else None

    @property
    def tag_names(self) -> tuple[str, ...]:
        """All tags; none without ``tags``."""
        return self.tags.known if self.tags else ()

    @property
    def has_spans(self) -> bool:
        """Whether paths have placeholders for spans."""
        return any(
            is_pattern(path) for files in self.files_by_split().values() for path in paths_in(files)
        )

    def resolved(self, base: Path) -> DataConfig:
        """Return a copy with absolute ``root`` and ``schema``; the files stay relative to root."""
        schema = self.schema and absolute(base, self.schema)
        return self.model_copy(update={"root": absolute(base, self.root), "schema": schema})
