"""The sections ``data.checks`` and ``evaluation.checks``: limits, and what happens above them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from regard.models.settings.base import Positive, Section, Share, option


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
    max_rows: Positive = option(
        100_000,
        "Maximum rows of eval and test to compare with train; of more, a sample. Each takes about "
        "2 kB of every worker's memory. The action drop compares all.",
    )


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
