"""What a task says of itself without TensorFlow: to configurations, to components, to people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from models.settings.base import Problem, Section
from models.tasks.features import Feature


def _nothing(config: Any) -> Iterator[Problem]:
    yield from ()


@dataclass(frozen=True)
class Description:
    """One task.

    Attributes:
        name: as in the YAML.
        summary: what it does, in a few words.
        features: of a raw row, in the order of a table's columns; one is the reference.
        model: the YAML's section ``model``.
        example_files: what ``data.train`` may look like.
        metrics: what is measured where the YAML does not say, the first one also while training.
        search: the type of the YAML's section ``search``, and its default; None for a task that
            looks for nothing.
        defaults: of other sections, where they differ from other tasks'.
        problems: what of a whole configuration cannot work together.
        sized: whether its models' contracts tell how long a row is, which makes slices by length.
        limited: the features as a section ``model`` limits them, such as the range of a number.
        preprocessing: what of a section ``model`` the preprocessing depends on, as plain data.
    """

    name: str
    summary: str
    features: tuple[Feature, ...]
    model: type[Section]
    metrics: tuple[str, ...]
    example_files: Any = "train.tsv"
    search: tuple[Any, Section] | None = None
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: Callable[[Any], Iterator[Problem]] = _nothing
    sized: bool = True
    limited: Callable[[Any], tuple[Feature, ...]] | None = None
    preprocessing: Callable[[Mapping[str, Any]], dict[str, Any]] = field(default=lambda model: {})

    @property
    def text_features(self) -> tuple[str, ...]:
        """Those that a tokenizer is trained for."""
        return tuple(feature.name for feature in self.features if feature.tokenized)

    @property
    def trained_features(self) -> tuple[str, ...]:
        """Those that a training reads."""
        return tuple(feature.name for feature in self.features if feature.role != "extra")

    @property
    def reference(self) -> Feature:
        """The feature with the right answer."""
        return next(feature for feature in self.features if feature.role == "reference")

    @property
    def answers(self) -> str:
        """The kind of an answer: ``text``, ``number`` or ``positions``."""
        return self.reference.kind
