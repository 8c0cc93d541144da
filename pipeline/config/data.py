"""The section ``data``: which files, in what format, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from components.corpus_gen.sources import SUFFIXES
from components.corpus_gen.span_paths import places
from models.settings.base import Count, Listed, Positive, Section, Share, absolute

Format = Literal["parallel", "tsv", "jsonl", "parquet"]


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_paths(value: Any) -> bool:
    return _is_path(value) or (
        isinstance(value, list | tuple) and bool(value) and all(map(_is_path, value))
    )


def _files(value: Any) -> Any:
    """Checks that the value names files; the form stays as it was written."""
    if _is_paths(value) or (
        isinstance(value, dict) and value and all(map(_is_paths, value.values()))
    ):
        return value
    raise PydanticCustomError(
        "files",
        "a path, a list of paths, or a path for each side such as "
        "{source: train.en, target: train.de} is expected",
    )


_PATHS_SCHEMA = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
    ]
}
Files = Annotated[
    str | list[str] | dict[str, str | list[str]],
    PlainValidator(_files),
    WithJsonSchema(
        {
            "anyOf": [
                *_PATHS_SCHEMA["anyOf"],
                {"type": "object", "additionalProperties": _PATHS_SCHEMA, "minProperties": 1},
            ]
        }
    ),
]


class Split(Section):
    """How ``eval`` and ``test`` are made from ``train``: by the hash of one feature."""

    eval: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.05, description="Share of the rows for evaluation while training."
    )
    test: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.05, description="Share of the rows for the final test."
    )
    by: str | None = Field(
        default=None,
        description="The feature that decides: all rows with the same text, or image, there are "
        "in one split; null: the first of the task's.",
    )
    seed: Count = Field(default=0, description="Another seed gives another split of the same data.")


class Spans(Section):
    """Which spans of a corpus that grows a run takes."""

    window: Positive | None = Field(
        default=None, description="So many of the newest ones that are there; null: all of them."
    )
    first: int | str | None = Field(
        default=None,
        description="None before this number, or before this date, YYYY-MM-DD, where the paths "
        "have dates.",
    )
    last: int | str | None = Field(default=None, description="None after this number or date.")
    without: Listed[int | str] = Field(
        default=(),
        description="None of these numbers or dates, such as of a month whose data are bad.",
        examples=[[9]],
    )
    replay: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.0,
        description="Share of the train split that is made up of rows of the spans before the "
        "window, so that a model does not forget them: 0.2 is one replayed row for four others. "
        "They are drawn from all those spans alike, by a hash of the row: the same rows give the "
        "same sample, and a larger share holds a smaller one. They are trained on and nothing "
        "else.",
    )
    test_share: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.0,
        description="Share of the rows of the newest span that is tested on and not trained on, by "
        "the same hash as split, besides what test has. The rows carry their span as a feature of "
        "text, span, for evaluation.slices; those of files without a placeholder have the span "
        "fixed. Where it is over 0, the default of evaluation.production.slices is [span].",
    )
    marker: str | None = Field(
        default=None,
        description="What stands beside the files of a span, in the same folder, once they are "
        "whole; it may have placeholders, too. null: a span is whole when each pattern has a file.",
        examples=["_SUCCESS"],
    )


class Check(Section):
    """A limit on the share of rows with a fault, and what happens above it."""

    limit: Share = Field(
        default=0.0, description="Share of rows with the fault that is still fine."
    )
    action: Literal["warn", "fail"] = Field(
        default="warn", description="What a share above it leads to."
    )


class LengthRatioCheck(Check):
    """Rows of which one side is very much longer than the other."""

    ratio: Annotated[float, Field(ge=1.0)] = Field(
        default=9.0, description="Characters of the longer side for one of the shorter side."
    )
    limit: Share = Field(
        default=0.05, description="Share of rows above the ratio that is still fine."
    )


class TooLongCheck(Check):
    """Rows with a very long side."""

    characters: Annotated[int, Field(ge=1)] = Field(
        default=2000, description="A side with more characters is too long."
    )
    limit: Share = Field(default=0.01, description="Share of too long rows that is still fine.")


class NearOverlapCheck(Check):
    """Rows of other splits whose input is nearly that of a row of train."""

    similarity: Annotated[float, Field(ge=0.5, le=1.0)] = Field(
        default=0.8,
        description="Jaccard's coefficient of their sequences of four characters, from which on "
        "two inputs are nearly the same; case and spaces do not count.",
    )
    limit: Share = Field(default=0.05, description="Share of such rows that is still fine.")


class ScriptCheck(Check):
    """Rows with many letters of a script that their side hardly ever has."""

    share: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.3, description="More than this share of a side's letters are many."
    )
    usual: Share = Field(
        default=0.001,
        description="A script with at least this share of all letters of the side in train is "
        "usual there.",
    )
    limit: Share = Field(default=0.001, description="Share of such rows that is still fine.")


class DriftCheck(Section):
    """A limit on how far train is from what the model in production learned from."""

    limit: Share = Field(default=0.05, description="How much is still fine.")
    action: Literal["warn", "fail"] = Field(default="warn", description="What more leads to.")


class CheckSet(Section):
    """Checks by name, each with limits of its own."""

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, value: Any) -> Any:
        # A check given in part keeps its own default for the rest, not that of its class.
        if not isinstance(value, dict):
            return value
        filled = dict(value)
        for name, field in cls.model_fields.items():
            given = value.get(name)
            if isinstance(given, dict):
                filled[name] = {**field.default.model_dump(), **given}
        return filled


class Checks(CheckSet):
    """What is looked for in the rows besides TensorFlow Data Validation's anomalies."""

    empty_side: Check | None = Field(
        default=Check(limit=0.01, action="fail"),
        description="Rows with an empty side; null leaves this check out, as it does the others.",
    )
    length_ratio: LengthRatioCheck | None = Field(
        default=LengthRatioCheck(),
        description="Rows of which one side is much longer than the other.",
    )
    too_long: TooLongCheck | None = Field(
        default=TooLongCheck(), description="Rows with a very long side."
    )
    duplicates: Check | None = Field(
        default=Check(limit=0.2),
        description="Rows of train that were there before, both sides alike.",
    )
    overlap: Check | None = Field(
        default=Check(limit=0.0), description="Rows of eval and test whose source is in train."
    )
    near_overlap: NearOverlapCheck | None = Field(
        default=NearOverlapCheck(),
        description="Rows of eval and test whose source is nearly the same as one in train; those "
        "of overlap are not counted again.",
    )
    target_overlap: Check | None = Field(
        default=Check(limit=0.05),
        description="Rows of eval and test of which a target, where it is a text, is one of train "
        "too; evaluation.slices.seen scores those of test apart.",
    )
    same_sides: Check | None = Field(
        default=Check(limit=0.01),
        description="Rows whose source is their target too, and has letters.",
    )
    script: ScriptCheck | None = Field(
        default=ScriptCheck(), description="Rows in a script that is unusual for their side."
    )
    control_characters: Check | None = Field(
        default=Check(limit=0.01),
        description="Rows with characters that show nothing: controls, zero-width ones, marks of "
        "direction, U+FFFD, private ones.",
    )
    encoding: Check | None = Field(
        default=Check(limit=0.001),
        description="Rows that were decoded by the wrong encoding, such as schÃ¶n for schön; they "
        "are shown as they should be, and stay as they are.",
    )
    drift_words: DriftCheck | None = Field(
        default=DriftCheck(limit=0.03),
        description="Jensen-Shannon divergence of the words of train, 0 to 1, from those of the "
        "model in production, where it is compared with one; of a side, the one that differs more.",
    )
    drift_oov: DriftCheck | None = Field(
        default=DriftCheck(limit=0.02),
        description="Share of train's running words that were not there for the model in "
        "production, less what more text of the same kind would have.",
    )
    drift_lengths: DriftCheck | None = Field(
        default=DriftCheck(),
        description="Jensen-Shannon divergence of the lengths in train, 0 to 1, from those of the "
        "model in production.",
    )


class Data(Section):
    """The files with the text."""

    root: str = Field(
        default=".",
        description="Folder of the files below, relative to this file. ${VAR} and "
        "${VAR:-default} stand for environment variables, here and everywhere; REGARD_HOME "
        "is always defined, and REGARD_DATA is ${REGARD_HOME}/data where it is not set.",
        examples=["${REGARD_HOME}/data/quickstart"],
    )
    format: Format | None = Field(
        default=None,
        description="How the files are read: two files with one line a sentence each, columns "
        "with tabs, a JSON object a line, or Parquet; null: by the file name (.tsv, .jsonl, "
        ".parquet, also with .gz; one path for each side is parallel).",
    )
    train: Files = Field(
        description="Files to train on: {source: path, target: path} for parallel files (or a "
        "list of paths for each, in the same order), else a path, a glob or a list of them. With "
        "{SPAN}, {SPAN:3} for three digits, or {YYYY}, {MM} and {DD} in a path, and perhaps "
        "{VERSION}, it stands for the spans of a growing corpus, in their newest versions.",
        examples=[{"source": "train.en.gz", "target": "train.de.gz"}],
    )
    eval: Files | None = Field(
        default=None, description="Files to evaluate on while training; null: split off train."
    )
    test: Files | None = Field(
        default=None, description="Files for the final test; null: split off train."
    )
    split: Split | None = Field(
        default=Split(),
        description="How eval and test are made where train is all there is; what stands in the "
        "feature `by` is never in two splits. Not to be given together with eval and test.",
    )
    spans: Spans = Field(
        default=Spans(),
        description="Which spans are taken where paths have placeholders. Paths of eval and test "
        "with placeholders follow the spans of train; without, they are the same in every run.",
    )
    columns: dict[str, int | str] | None = Field(
        default=None,
        description="Where each feature stands: a column number from 1 (tsv), a column name (tsv "
        "with header, parquet) or a key (jsonl). null: in the task's order for tsv without header "
        "(source, target for translation), else the columns or keys called like the features.",
    )
    extra: Listed[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]] = Field(
        default=(),
        description="Columns of text that only the evaluation reads, for evaluation.slices; in a "
        "tsv file without header they follow the task's own. All files have them; a row may leave "
        "them empty.",
        examples=[["domain"]],
    )
    images: str | None = Field(
        default=None,
        description="Folder of the images that rows name, relative to root; null: root itself. "
        "Only for tasks that read images.",
    )
    header: bool = Field(
        default=False, description="Whether the first line of a tsv file names columns."
    )
    encoding_errors: Literal["fail", "replace", "skip"] = Field(
        default="fail",
        description="What a line that is not UTF-8 leads to; replaced and skipped lines are "
        "counted.",
    )
    bad_rows: Literal["fail", "skip"] = Field(
        default="fail",
        description="What a row with missing or surplus columns, missing keys, broken JSON, or a "
        "value that cannot be used (no number, out of range, an unreadable image) leads to; "
        "skipped rows are counted.",
    )
    bad_rows_limit: Share = Field(
        default=0.1,
        description="Share of the rows that may be skipped, for whatever reason; more is an error.",
    )
    checks: Checks = Field(default=Checks(), description="Limits on faults of the text.")

    @model_validator(mode="before")
    @classmethod
    def _no_split_of_explicit_files(cls, value: Any) -> Any:
        given = isinstance(value, dict) and (value.get("eval") or value.get("test"))
        return {"split": None, **value} if given else value

    def parts(self) -> dict[str, Any]:
        """The files of every split that is given: ``train``, ``eval``, ``test``."""
        named = {"train": self.train, "eval": self.eval, "test": self.test}
        return {name: files for name, files in named.items() if files is not None}

    @property
    def has_spans(self) -> bool:
        """Whether paths have placeholders for spans."""
        return bool(places(self.parts()))

    def resolved(self, base: Path) -> Data:
        """A copy whose ``root`` is an absolute path; the files stay relative to it."""
        return self.model_copy(update={"root": absolute(base, self.root)})


def format_of(files: Any) -> Format | None:
    """The format that the file names tell, or None."""
    if isinstance(files, dict):
        return "parallel"
    formats = set()
    for path in [files] if isinstance(files, str) else files:
        stem = path.lower().removesuffix(".gz")
        formats.add(next((f for end, f in SUFFIXES.items() if stem.endswith(end)), None))
    return cast("Format | None", formats.pop()) if len(formats) == 1 else None
