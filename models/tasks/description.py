"""Descriptions of tasks, without TensorFlow."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.core.features import Feature, Kind
from regard.models.settings.base import Problem, Section


@dataclass(frozen=True)
class Parts:
    """The classes of a task. Each is in a module of its own, so that a node imports only its own.

    Attributes:
        package: The package with the modules ``preprocess``, ``network`` and ``served``.
        preprocessing: The name of the ``Preprocessing`` in ``preprocess``.
        network: The name of the ``Network`` in ``network``, which imports no TensorFlow.
        served: The name of the ``ServedModule`` in ``served``.
    """

    package: str
    preprocessing: str
    network: str
    served: str


@dataclass(frozen=True)
class Description:
    """What a task declares about itself.

    Attributes:
        name: The name in the YAML file.
        summary: A short phrase, for example "translate text".
        about: A sentence about a model of the task, for its web page.
        parts: The classes of the task.
        output: The name of the exported model's output.
        features: The features of a raw row, in the order of a table's columns; one is the
            reference.
        model: The class of the section ``model``.
        metrics: The default metrics; the first one is also computed during training.
        other_outputs: The names of the other outputs in the table of predictions; no column of the
            data may have one of them.
        example_files: An example of ``data.train``.
        search: The type of the section ``search`` and its default; None for a task without search.
        defaults: Defaults of other sections that differ from those of other tasks.
        data_checks: Values of ``data.checks`` that differ from those of other tasks; None switches
            a check off.
        validate: Yields the problems of a whole configuration.
        has_input_length: Whether the length of an input is known, which allows slices by length.
        limit_features: Returns the features with the limits of a section ``model``, such as the
            range of a number.
        preprocessing_section: The settings of the sections ``model``, ``training`` and ``data``
            that the preprocessing depends on, as a section with fields of the same names.
        has_independent_sentences: Whether the output of a text consists of those of its sentences.
        unused_keys: Keys of sections of all tasks, such as ``search.max_length_factor``, that do
            not apply to this task, each with the reason as the end of a sentence, such as "which
            reads no text". `components/settings/task_keys.py` has those that follow from the
            other attributes.
    """

    name: str
    summary: str
    parts: Parts
    output: str
    features: tuple[Feature, ...]
    model: type[Section]
    metrics: tuple[str, ...]
    about: str = ""
    other_outputs: tuple[str, ...] = ()
    example_files: str | dict[str, str] = "train.tsv"
    search: tuple[Any, Section] | None = None
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    data_checks: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    validate: Callable[[Any], Iterator[Problem]] = lambda config: iter(())
    has_input_length: bool = True
    limit_features: Callable[[Any], tuple[Feature, ...]] | None = None
    preprocessing_section: type[Section] = Section
    has_independent_sentences: bool = False
    unused_keys: Mapping[str, str] = field(default_factory=dict)

    def preprocessing_settings(self, *sections: Section) -> Section:
        """Return the settings that the preprocessing depends on.

        Args:
            sections: The sections ``model``, ``training`` and ``data``.
        """
        names = self.preprocessing_section.model_fields
        values = {name: _first_value(name, sections) for name in names}
        # Without the fields of subclasses of its sections.
        section = self.preprocessing_section
        return section.model_validate(section(**values).model_dump())

    def row_features(self, model: Section) -> tuple[Feature, ...]:
        """Return the features of a raw row, with the limits of a section ``model``."""
        return self.limit_features(model) if self.limit_features else self.features

    @property
    def text_features(self) -> tuple[str, ...]:
        """The names of the features that a tokenizer is trained for."""
        return tuple(feature.name for feature in self.features if feature.tokenized)

    @property
    def trained_features(self) -> tuple[str, ...]:
        """The names of the features that a training reads."""
        return tuple(f.name for f in self.features if f.role != "extra" or f.begins)

    @property
    def reference(self) -> Feature:
        """The feature with the references."""
        return next(feature for feature in self.features if feature.role == "reference")

    @property
    def output_kind(self) -> Kind:
        """The kind of an output, which is that of the references."""
        return self.reference.kind


def _first_value(name: str, sections: Iterable[Section]) -> Any:
    """Return a value of the first section that has it, as a key or as a property."""
    return next(getattr(section, name) for section in sections if hasattr(section, name))
