"""The base of the checks of ``data.checks``: options, and which rows are affected.

The ExampleValidator reports affected rows, and the corpus filter drops them, with the same check.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import ClassVar, get_args

from typing_extensions import Self

from regard.components.settings.check_limits import CheckConfig
from regard.core.characters import is_blank
from regard.core.features import Feature

Texts = Sequence[str]


@dataclass(frozen=True)
class TextNames:
    """The names of the text features of a row, without extra ones.

    Attributes:
        inputs: Those that the model receives.
        references: Those that the model predicts.
        outputs: The references that the model writes; it copies others from an input.
    """

    inputs: Texts
    references: Texts
    outputs: Texts

    @classmethod
    def of(cls, features: Sequence[Feature]) -> Self:
        """Return the names of the text features among the features of a row."""
        texts = [feature for feature in features if feature.tokenized]
        references = [feature for feature in texts if feature.role == "reference"]
        return cls(
            inputs=[feature.name for feature in texts if feature.role == "input"],
            references=[feature.name for feature in references],
            outputs=[feature.name for feature in references if not feature.part_of],
        )


def _visible_length(text: str) -> int:
    return 0 if is_blank(text) else len(text.strip())


class RowTexts:
    """The texts of a row.

    Args:
        names: The names of the text features.
        by_name: The texts of each of them; a feature may have several texts, or none.

    Attributes:
        names: The same names.
        by_name: The same texts.
        sides: The texts of each feature that has some.
        all: All texts of the row.
        lengths: The characters of each text of ``sides``, without white space around it.
    """

    def __init__(self, names: TextNames, by_name: Mapping[str, Texts]):
        self.names, self.by_name = names, by_name
        sides = [by_name[name] for name in (*names.inputs, *names.references)]
        self.sides = [texts for texts in sides if texts]
        self.all = [text for texts in self.sides for text in texts]
        self.lengths = [list(map(_visible_length, texts)) for texts in self.sides]


@dataclass(frozen=True)
class CheckContext:
    """What checks know in addition to the row.

    Attributes:
        usual_scripts: The usual scripts of each feature; nothing is known about other features.
        normalization: ``tokenizer.normalization``.
    """

    usual_scripts: Mapping[str, Set[str]] = field(default_factory=dict)
    normalization: str = "identity"


class DataCheck(CheckConfig):
    """A check of rows; its fields are the options, and its key in ``data.checks`` is its name.

    The docstring of a check documents its key.
    """

    # What affected rows have or are, after their number: "have an empty side".
    summary: ClassVar[str]
    # What to do about all affected rows, if the name of the check does not say it.
    remedy: ClassVar[str] = ""
    # Another way to avoid a failure.
    alternative: ClassVar[str] = ""

    @classmethod
    def can_drop(cls) -> bool:
        """Return whether the check can leave out rows of train."""
        return "drop" in get_args(cls.model_fields["action"].annotation)

    @classmethod
    def examines(cls, split: str) -> bool:
        """Return whether rows of a split can be affected."""
        return True


class RowCheck(DataCheck):
    """A check that judges the texts of each row alone."""

    # Whether the result depends on the rows of train, so that all of them must be read before.
    needs_train: ClassVar[bool] = False
    # Whether a text takes so long that the other checks should come first.
    is_slow: ClassVar[bool] = False

    @abstractmethod
    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        """Return whether a row is affected."""

    def details(self, row: RowTexts, context: CheckContext) -> Iterator[str]:
        """Yield what is wrong with an affected row if the name of the check does not say it."""
        return iter(())
