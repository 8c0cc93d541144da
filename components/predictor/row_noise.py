"""Changed inputs of rows, for the robustness of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from regard.components.common.prediction_table import Row
from regard.components.settings.evaluation import RobustnessConfig
from regard.core.text_noise import NoiseOptions, change_text, kind_label


def changes_of_rows(
    config: RobustnessConfig, features: Sequence[str], symbols: Sequence[str], tags: Sequence[str]
) -> list[RowNoise]:
    """Return the changes of inputs that a model is decoded with, one of each kind.

    Args:
        config: the section ``evaluation.robustness``.
        features: the names of the inputs that change.
        symbols: the user-defined symbols of the tokenizer, which no change touches.
        tags: the tags of the model, without their brackets.
    """
    options = config.options((*symbols, *(f"<{tag}>" for tag in tags)))
    return [RowNoise(kind, tuple(features), options, config.seed) for kind in config.measured_kinds]


@dataclasses.dataclass(frozen=True)
class RowNoise:
    """Changes the text inputs of rows, in the same way for every model.

    Attributes:
        kind: the kind of change.
        features: the names of the inputs that change.
        options: what the change depends on; its symbols do not change.
        seed: the seed of what is random.
    """

    kind: str
    features: tuple[str, ...]
    options: NoiseOptions
    seed: int

    @property
    def label(self) -> str:
        """The kind in words."""
        return kind_label(self.kind)

    def __call__(self, row: Row, number: int) -> Row:
        """Return a row with changed inputs.

        Args:
            row: the row.
            number: its number in the split, by which its change is random.
        """
        values = {
            name: change_text(row.inputs[name], self.kind, self.options, (self.seed, number, index))
            for index, name in enumerate(self.features)
        }
        return dataclasses.replace(row, inputs={**row.inputs, **values})
