"""The section ``data.checks``: the table of all checks of the data."""

import inspect
from typing import Any, Literal, get_args

from pydantic import Field
from pydantic.fields import FieldInfo

from regard.components.checks.base import DataCheck, RowCheck
from regard.components.checks.control_characters import ControlCharactersCheck
from regard.components.checks.empty_side import EmptySideCheck
from regard.components.checks.encoding import EncodingCheck
from regard.components.checks.html_entities import HtmlEntitiesCheck
from regard.components.checks.language import LanguageCheck
from regard.components.checks.length_ratio import LengthRatioCheck
from regard.components.checks.markup import MarkupCheck
from regard.components.checks.normalization import NormalizationCheck
from regard.components.checks.repeated_rows import (
    DuplicatesCheck,
    NearOverlapCheck,
    OverlapCheck,
    TargetOverlapCheck,
)
from regard.components.checks.same_sides import SameSidesCheck
from regard.components.checks.script import ScriptCheck
from regard.components.checks.tokenization import TokenizationCheck
from regard.components.checks.too_long import TooLongCheck
from regard.components.settings.check_limits import CheckSetConfig
from regard.core.bounds import Share
from regard.models.settings.base import Section


class DriftCheckConfig(Section):
    """A limit on the drift of train from the data of the model in production.

    Attributes:
        limit: Maximum drift.
        action: What happens above the limit.
    """

    limit: Share = 0.05
    action: Literal["warn", "fail"] = "warn"


def _row_check(check: type[DataCheck]) -> Any:
    """Return the field of a check, whose docstring begins with its description."""
    text = inspect.cleandoc(check.__doc__ or "").partition("\n\n")[0]
    return Field(default=check(), description=" ".join(text.split()))


class DataChecksConfig(CheckSetConfig):
    """Data checks, in addition to the anomalies of TensorFlow Data Validation.

    Attributes:
        language: Rows with a side that is confidently in another language than the one given for
            it; null: not checked.
        drift_words: Jensen-Shannon divergence, 0 to 1, of the words in train from those of the
            production model's data; the maximum of all sides.
        drift_oov: Share of words in train that are new since the production model, beyond the share
            expected for more text of the same kind.
        drift_lengths: Jensen-Shannon divergence, 0 to 1, of the lengths in train from those of the
            production model's data.
    """

    empty_side: EmptySideCheck | None = _row_check(EmptySideCheck)
    length_ratio: LengthRatioCheck | None = _row_check(LengthRatioCheck)
    too_long: TooLongCheck | None = _row_check(TooLongCheck)
    duplicates: DuplicatesCheck | None = _row_check(DuplicatesCheck)
    overlap: OverlapCheck | None = _row_check(OverlapCheck)
    near_overlap: NearOverlapCheck | None = _row_check(NearOverlapCheck)
    target_overlap: TargetOverlapCheck | None = _row_check(TargetOverlapCheck)
    same_sides: SameSidesCheck | None = _row_check(SameSidesCheck)
    script: ScriptCheck | None = _row_check(ScriptCheck)
    language: LanguageCheck | None = None
    control_characters: ControlCharactersCheck | None = _row_check(ControlCharactersCheck)
    encoding: EncodingCheck | None = _row_check(EncodingCheck)
    html_entities: HtmlEntitiesCheck | None = _row_check(HtmlEntitiesCheck)
    markup: MarkupCheck | None = _row_check(MarkupCheck)
    tokenization: TokenizationCheck | None = _row_check(TokenizationCheck)
    normalization: NormalizationCheck | None = _row_check(NormalizationCheck)
    drift_words: DriftCheckConfig | None = DriftCheckConfig(limit=0.03)
    drift_oov: DriftCheckConfig | None = DriftCheckConfig(limit=0.02)
    drift_lengths: DriftCheckConfig | None = DriftCheckConfig()

    def row_changes(self) -> dict[str, Any]:
        """Return plain data of the checks that drop or repair rows, without their limits."""
        changes = {n: check for n, check in self if check and check.action in ("drop", "repair")}
        return {n: check.model_dump(mode="json", exclude={"limit"}) for n, check in changes.items()}

    @property
    def data_checks(self) -> dict[str, DataCheck]:
        """The active checks of rows by name."""
        return {name: check for name, check in self if isinstance(check, DataCheck)}

    @property
    def row_checks(self) -> dict[str, RowCheck]:
        """The active checks that judge each row alone by name, slow ones last."""
        checks = {name: check for name, check in self if isinstance(check, RowCheck)}
        return dict(sorted(checks.items(), key=lambda item: item[1].is_slow))

    @property
    def drift_checks(self) -> dict[str, DriftCheckConfig]:
        """The active checks of drift by name."""
        return {name: check for name, check in self if isinstance(check, DriftCheckConfig)}


def row_check_names() -> list[str]:
    """Return the names of the checks that judge the texts of each row alone."""
    fields = DataChecksConfig.model_fields.items()
    return [name for name, field in fields if _classes(field, RowCheck)]


def check_class(name: str) -> type[DataCheck]:
    """Return the class of the check of rows with a name."""
    (check,) = _classes(DataChecksConfig.model_fields[name], DataCheck)
    return check


def _classes(field: FieldInfo, kind: type[DataCheck]) -> list[type[DataCheck]]:
    """Return the classes of a kind that the value of a field may have."""
    return [option for option in get_args(field.annotation) if issubclass(option, kind)]
