"""The sections ``data.checks`` and ``evaluation.checks``: limits, and what happens above them."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from regard.core.bounds import Positive, Share
from regard.models.settings.base import Section


class CheckConfig(Section):
    """A limit on the share of affected rows, and the action above it.

    Attributes:
        limit: Maximum share of affected rows.
        action: What happens above the limit; drop: leaves out all affected rows of train.
    """

    limit: Share = 0.0
    action: Literal["warn", "fail", "drop"] = "warn"


class LengthRatioCheckConfig(CheckConfig):
    """Rows with one side much longer than the other.

    Attributes:
        ratio: Maximum ratio of the lengths of both sides, in characters.
        limit: Maximum share of rows above the ratio.
    """

    ratio: Annotated[float, Field(ge=1.0)] = 9.0
    limit: Share = 0.05


class TooLongCheckConfig(CheckConfig):
    """Rows with a very long side.

    Attributes:
        characters: Maximum length of a side in characters.
        limit: Maximum share of rows that are too long.
    """

    characters: Positive = 2000
    limit: Share = 0.01


class NearOverlapCheckConfig(CheckConfig):
    """Rows of eval and test whose input is a near-duplicate of one in train.

    Attributes:
        similarity: Minimum Jaccard similarity of character 4-grams, ignoring case and spaces, for
            two inputs to be near-duplicates.
        limit: Maximum share of affected rows.
        max_rows: Maximum rows of eval and test to compare with train; of more, a sample. Each takes
            about 2 kB of every worker's memory. The action drop compares all.
    """

    similarity: Annotated[float, Field(ge=0.5, le=1.0)] = 0.8
    limit: Share = 0.05
    max_rows: Positive = 100_000


class TargetOverlapCheckConfig(CheckConfig):
    """Rows of eval and test with a target that is also in train.

    Attributes:
        action: What happens above the limit.
    """

    action: Literal["warn", "fail"] = "warn"


class NormalizationCheckConfig(CheckConfig):
    """Rows with a target that the normalization of the tokenizer changes.

    Attributes:
        action: What happens above the limit.
    """

    action: Literal["warn", "fail"] = "warn"


class EncodingCheckConfig(CheckConfig):
    """Rows decoded with the wrong encoding.

    Attributes:
        action: What happens above the limit; drop, repair: changes all affected rows of train.
    """

    action: Literal["warn", "fail", "drop", "repair"] = "warn"  # type: ignore[assignment]


class LanguageCheckConfig(CheckConfig):
    """Rows with a side that is confidently in another language; needs the extra regard[language].

    Attributes:
        languages: ISO 639-1 code of the language of each side. Sides without one are not checked.
        confidence: Minimum probability of another language.
        min_characters: Shorter sides are not checked.
        limit: Maximum share of rows in another language.
    """

    languages: Annotated[
        dict[str, str], Field(min_length=1, examples=[{"source": "en", "target": "de"}])
    ]
    confidence: Annotated[float, Field(gt=0.5, le=1.0)] = 0.8
    min_characters: Positive = 10
    limit: Share = 0.01


class DriftCheckConfig(Section):
    """A limit on the drift of train from the data of the model in production.

    Attributes:
        limit: Maximum drift.
        action: What happens above the limit.
    """

    limit: Share = 0.05
    action: Literal["warn", "fail"] = "warn"


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
            if isinstance(check, dict) and field.default is not None:
                filled[name] = {**field.default.model_dump(), **check}
        return filled


class DataChecksConfig(CheckSetConfig):
    """Data checks, in addition to the anomalies of TensorFlow Data Validation.

    Attributes:
        empty_side: Rows with an empty side. null disables a check, here and below.
        length_ratio: Rows with one side much longer than the other.
        too_long: Rows with a very long side.
        duplicates: Rows of train that repeat an earlier row.
        overlap: Rows of eval and test whose source is also in train; drop removes those of train.
        near_overlap: Rows of eval and test whose source is a near-duplicate of one in train,
            without those of overlap; drop removes those of train, exact copies too.
        target_overlap: Rows of eval and test with a target text that is also a target in train;
            evaluation.slices.target_overlap scores those of test separately.
        same_sides: Rows with equal source and target that contain letters.
        script: Rows with many letters of a script that is unexpected for their side: one with less
            than 0.1 % of the letters of the side in train.
        language: Rows with a side that is confidently in another language than the one given for
            it; null: not checked.
        control_characters: Rows with invisible characters: control, zero-width, directional and
            private-use characters, line separators, U+FFFD.
        encoding: Rows decoded with the wrong encoding, for example schÃ¶n for schön. They are
            reported with the probable text, and changed only by the action repair.
        html_entities: Rows with HTML entities, for example &quot; for a quotation mark.
        tokenization: Rows that were tokenized before, by Moses for example: spaces before commas,
            periods and 's, or @-@ for a hyphen.
        normalization: Rows with a target that tokenizer.normalization changes, for example a hard
            space, … or full-width signs, so that a model cannot write it. Case and the number of
            spaces do not count.
        drift_words: Jensen-Shannon divergence, 0 to 1, of the words in train from those of the
            production model's data; the maximum of all sides.
        drift_oov: Share of words in train that are new since the production model, beyond the share
            expected for more text of the same kind.
        drift_lengths: Jensen-Shannon divergence, 0 to 1, of the lengths in train from those of the
            production model's data.
    """

    empty_side: CheckConfig | None = CheckConfig(limit=0.01, action="fail")
    length_ratio: LengthRatioCheckConfig | None = LengthRatioCheckConfig()
    too_long: TooLongCheckConfig | None = TooLongCheckConfig()
    duplicates: CheckConfig | None = CheckConfig(limit=0.2)
    overlap: CheckConfig | None = CheckConfig(limit=0.0)
    near_overlap: NearOverlapCheckConfig | None = NearOverlapCheckConfig()
    target_overlap: TargetOverlapCheckConfig | None = TargetOverlapCheckConfig(limit=0.05)
    same_sides: CheckConfig | None = CheckConfig(limit=0.01)
    script: CheckConfig | None = CheckConfig(limit=0.001)
    language: LanguageCheckConfig | None = None
    control_characters: CheckConfig | None = CheckConfig(limit=0.01)
    encoding: EncodingCheckConfig | None = EncodingCheckConfig(limit=0.001)
    html_entities: CheckConfig | None = CheckConfig(limit=0.01)
    tokenization: CheckConfig | None = CheckConfig(limit=0.1)
    normalization: NormalizationCheckConfig | None = NormalizationCheckConfig(limit=0.05)
    drift_words: DriftCheckConfig | None = DriftCheckConfig(limit=0.03)
    drift_oov: DriftCheckConfig | None = DriftCheckConfig(limit=0.02)
    drift_lengths: DriftCheckConfig | None = DriftCheckConfig()

    def row_changes(self) -> dict[str, Any]:
        """Return plain data of the checks that drop or repair rows, without their limits."""
        changes = {n: check for n, check in self if check and check.action in ("drop", "repair")}
        return {n: check.model_dump(mode="json", exclude={"limit"}) for n, check in changes.items()}

    @property
    def drift_checks(self) -> dict[str, DriftCheckConfig]:
        """The active checks of drift by name."""
        return {name: check for name, check in self if isinstance(check, DriftCheckConfig)}
