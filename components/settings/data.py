"""The section ``data``: the files, their format, and the checks of their rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from regard.components.data.span_patterns import is_pattern
from regard.models.settings.base import (
    Count,
    Fraction,
    Listed,
    NotInTrainingKey,
    Positive,
    Rate,
    Section,
    Share,
    absolute,
    option,
)

Format = Literal["parallel", "tsv", "jsonl", "parquet"]
SPLITS = ("train", "eval", "test")
# The formats that file names give; ``.gz`` may follow.
_FORMATS: dict[str, Format] = {".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_FORMATS[".parquet"] = "parquet"


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


class SplitConfig(Section):
    """How eval and test are split off train: by the hash of one feature."""

    eval: Fraction = option(0.05, "Share of rows for the eval split.")
    test: Fraction = option(0.05, "Share of rows for the test split.")
    by: str | None = option(
        None,
        "Feature whose hash decides: rows with the same value are always in the same split; null: "
        "the first text or image of the task.",
    )
    seed: Count = option(0, "Seed of the hash; another seed gives another split.")


class SpansConfig(Section):
    """Which spans of a growing corpus a run uses."""

    window: Positive | None = option(None, "Number of newest spans to use; null: all.")
    first: int | str | None = option(
        None, "First span to use: a number, or a date YYYY-MM-DD if the paths contain dates."
    )
    last: int | str | None = option(None, "Last span to use.")
    exclude: Listed[int | str] = option(
        (), "Spans to leave out, for example a month with bad data.", examples=[[9]]
    )
    replay: Rate = option(
        0.0,
        "Share of the train split that is sampled from spans before the window, to prevent "
        "forgetting: 0.2 adds one row for every four. Rows are sampled by hash, so equal data give "
        "equal samples, and a larger share contains a smaller one. Replayed rows are only trained "
        "on.",
    )
    test_share: Rate = option(
        0.0,
        "Share of rows of the newest span that is added to the test split instead of train. Rows "
        "carry their span as the text feature span, for evaluation.slices (fixed: rows of files "
        "without a placeholder). Above 0, the default of evaluation.production.slices is [span].",
    )
    marker: str | None = option(
        None,
        "File name that marks a span as complete, in the same folder; may contain placeholders. "
        "null: a span is complete if each pattern has a file.",
        examples=["_SUCCESS"],
    )


class CheckConfig(Section):
    """A limit on the share of affected rows, and the action above it."""

    limit: Share = option(0.0, "Maximum share of affected rows.")
    action: Literal["warn", "fail", "drop"] = option(
        "warn", "What happens above the limit; drop: leaves out all affected rows of train."
    )


class LengthRatioCheckConfig(CheckConfig):
    """Rows with one side much longer than the other."""

    ratio: Annotated[float, Field(ge=1.0)] = option(
        9.0, "Maximum ratio of the lengths of both sides, in characters."
    )
    limit: Share = option(0.05, "Maximum share of rows above the ratio.")


class TooLongCheckConfig(CheckConfig):
    """Rows with a very long side."""

    characters: Positive = option(2000, "Maximum length of a side in characters.")
    limit: Share = option(0.01, "Maximum share of rows that are too long.")


class NearOverlapCheckConfig(CheckConfig):
    """Rows of eval and test whose input is a near-duplicate of one in train."""

    similarity: Annotated[float, Field(ge=0.5, le=1.0)] = option(
        0.8,
        "Minimum Jaccard similarity of character 4-grams, ignoring case and spaces, for two inputs "
        "to be near-duplicates.",
    )
    limit: Share = option(0.05, "Maximum share of affected rows.")


class TargetOverlapCheckConfig(CheckConfig):
    """Rows of eval and test with a target that is also in train."""

    action: Literal["warn", "fail"] = option("warn", "What happens above the limit.")


class EncodingCheckConfig(CheckConfig):
    """Rows decoded with the wrong encoding."""

    action: Literal["warn", "fail", "drop", "repair"] = option(  # type: ignore[assignment]
        "warn", "What happens above the limit; drop, repair: changes all affected rows of train."
    )


class DriftCheckConfig(Section):
    """A limit on the drift of train from the data of the model in production."""

    limit: Share = option(0.05, "Maximum drift.")
    action: Literal["warn", "fail"] = option("warn", "What happens above the limit.")


class CheckSetConfig(Section):
    """Checks by name, each with its own limits."""

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, value: Any) -> Any:
        # A partial check keeps the defaults of its field, not those of its class.
        if not isinstance(value, dict):
            return value
        filled = dict(value)
        for name, field in cls.model_fields.items():
            check = value.get(name)
            if isinstance(check, dict):
                filled[name] = {**field.default.model_dump(), **check}
        return filled


class DataChecksConfig(CheckSetConfig):
    """Data checks, in addition to the anomalies of TensorFlow Data Validation."""

    empty_side: CheckConfig | None = option(
        CheckConfig(limit=0.01, action="fail"),
        "Rows with an empty side. null disables a check, here and below.",
    )
    length_ratio: LengthRatioCheckConfig | None = option(
        LengthRatioCheckConfig(), "Rows with one side much longer than the other."
    )
    too_long: TooLongCheckConfig | None = option(
        TooLongCheckConfig(), "Rows with a very long side."
    )
    duplicates: CheckConfig | None = option(
        CheckConfig(limit=0.2), "Rows of train that repeat an earlier row."
    )
    overlap: CheckConfig | None = option(
        CheckConfig(limit=0.0),
        "Rows of eval and test whose source is also in train; drop removes those of train.",
    )
    near_overlap: NearOverlapCheckConfig | None = option(
        NearOverlapCheckConfig(),
        "Rows of eval and test whose source is a near-duplicate of one in train, without those of "
        "overlap; drop removes those of train, exact copies too.",
    )
    target_overlap: TargetOverlapCheckConfig | None = option(
        TargetOverlapCheckConfig(limit=0.05),
        "Rows of eval and test with a target text that is also a target in train; "
        "evaluation.slices.target_overlap scores those of test separately.",
    )
    same_sides: CheckConfig | None = option(
        CheckConfig(limit=0.01), "Rows with equal source and target that contain letters."
    )
    script: CheckConfig | None = option(
        CheckConfig(limit=0.001),
        "Rows with many letters of a script that is unexpected for their side: one with less than "
        "0.1 % of the letters of the side in train.",
    )
    control_characters: CheckConfig | None = option(
        CheckConfig(limit=0.01),
        "Rows with invisible characters: control, zero-width, directional and private-use "
        "characters, U+FFFD.",
    )
    encoding: EncodingCheckConfig | None = option(
        EncodingCheckConfig(limit=0.001),
        "Rows decoded with the wrong encoding, for example schÃ¶n for schön. They are reported "
        "with the probable text, and changed only by the action repair.",
    )
    drift_words: DriftCheckConfig | None = option(
        DriftCheckConfig(limit=0.03),
        "Jensen-Shannon divergence, 0 to 1, of the words in train from those of the production "
        "model's data; the maximum of all sides.",
    )
    drift_oov: DriftCheckConfig | None = option(
        DriftCheckConfig(limit=0.02),
        "Share of words in train that are new since the production model, beyond the share "
        "expected for more text of the same kind.",
    )
    drift_lengths: DriftCheckConfig | None = option(
        DriftCheckConfig(),
        "Jensen-Shannon divergence, 0 to 1, of the lengths in train from those of the production "
        "model's data.",
    )

    def row_changes(self) -> dict[str, Any]:
        """Return plain data of the checks that drop or repair rows, without their limits."""
        changes = {n: check for n, check in self if check and check.action in ("drop", "repair")}
        return {n: check.model_dump(mode="json", exclude={"limit"}) for n, check in changes.items()}

    @property
    def drift_checks(self) -> dict[str, DriftCheckConfig]:
        """The active checks of drift by name."""
        return {name: check for name, check in self if isinstance(check, DriftCheckConfig)}


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a deprecated method of pydantic has the name of the field

    class PinnedSchemaConfig(Section):
        """The schema of the data, in a file that people review."""

        schema: Annotated[str | None, NotInTrainingKey] = option(  # type: ignore[assignment]
            None,
            "A schema.pbtxt of TensorFlow Data Validation, relative to this file: the run fails "
            "if the data have anomalies. null: the schema of each run is inferred, and anomalies "
            "of eval and test warn.",
            examples=["schema.pbtxt"],
        )


class DataConfig(PinnedSchemaConfig):
    """The data files."""

    root: Annotated[str, NotInTrainingKey] = option(
        ".",
        "Folder of the files below, relative to this file. ${VAR} and ${VAR:-default} are "
        "environment variables, here and everywhere. REGARD_HOME is always defined; the default of "
        "REGARD_DATA is ${REGARD_HOME}/data.",
        examples=["${REGARD_HOME}/data/quickstart"],
    )
    format: Format | None = option(
        None,
        "File format: parallel files with one sentence per line, tab-separated columns, one JSON "
        "object per line, or Parquet; null: by file name (.tsv, .jsonl, .parquet, each also with "
        ".gz; one path per side is parallel).",
    )
    train: Annotated[Files, NotInTrainingKey] = Field(
        description="Files to train on: {source: path, target: path} for parallel files (or lists "
        "of paths in the same order), otherwise a path, a glob or a list of them. The "
        "placeholders {SPAN}, {SPAN:3} (three digits), {YYYY}, {MM}, {DD} and "
        "{VERSION} match the spans of a growing corpus in their newest versions.",
        examples=[{"source": "train.en.gz", "target": "train.de.gz"}],
    )
    eval: Annotated[Files | None, NotInTrainingKey] = option(
        None, "Files of the eval split; null: split off train."
    )
    test: Annotated[Files | None, NotInTrainingKey] = option(
        None, "Files of the test split; null: split off train."
    )
    split: SplitConfig | None = option(
        SplitConfig(),
        "How eval and test are split off train. Cannot be combined with eval and test.",
    )
    spans: Annotated[SpansConfig, NotInTrainingKey] = option(
        SpansConfig(),
        "Which spans to use if paths have placeholders. Paths of eval and test with placeholders "
        "follow the spans of train; paths without are the same in every run.",
    )
    columns: dict[str, int | str] | None = option(
        None,
        "Column of each feature: a number from 1 (tsv), a name (tsv with header, parquet) or a key "
        "(jsonl). null: the order of the task's features for tsv without header (source, target "
        "for translation), otherwise the columns or keys with the names of the features.",
    )
    extra: Listed[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]] = option(
        (),
        "Additional text columns for evaluation.slices; in a tsv file without header they follow "
        "the columns of the task. All files need them; a row may leave them empty.",
        examples=[["domain"]],
    )
    images: str | None = option(
        None,
        "Folder of the images that rows refer to, relative to root; null: root. Only for tasks "
        "with images.",
    )
    header: bool = option(False, "The first line of a tsv file contains column names.")
    bad_rows: Literal["fail", "skip"] = option(
        "fail",
        "What to do with invalid rows: not UTF-8, missing or surplus columns, missing keys, broken "
        "JSON, invalid numbers or unreadable images. Skipped rows are counted.",
    )
    bad_rows_limit: Annotated[Share, NotInTrainingKey] = option(
        0.1, "Maximum share of rows that are skipped or dropped; above it the run fails."
    )
    checks: Annotated[DataChecksConfig, NotInTrainingKey] = option(
        DataChecksConfig(),
        "Quality checks. The actions drop and repair change rows of the files of train, before "
        "they are split; at most bad_rows_limit are dropped. Files of eval and test do not change.",
    )

    def training_json(self) -> str:
        """Return also the checks that change rows."""
        return super().training_json() + json.dumps(self.checks.row_changes(), sort_keys=True)

    @model_validator(mode="before")
    @classmethod
    def _no_split_of_explicit_files(cls, value: Any) -> Any:
        has_files = isinstance(value, dict) and (value.get("eval") or value.get("test"))
        return {"split": None, **value} if has_files else value

    def files_by_split(self) -> dict[str, Files]:
        """Return the files of every split that has its own: ``train``, ``eval``, ``test``."""
        files = {"train": self.train, "eval": self.eval, "test": self.test}
        return {split: value for split, value in files.items() if value is not None}

    def format_of(self, files: Files) -> Format | None:
        """Return the format of files: the one that is set, else the one of their names."""
        if self.format is not None:
            return self.format
        if isinstance(files, dict):
            return "parallel"
        names = [path.lower().removesuffix(".gz") for path in paths_in(files)]
        formats = {_FORMATS.get(Path(name).suffix) for name in names}
        return formats.pop() if len(formats) == 1 else None

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
