"""The arguments of a component: checked when the graph is built, with all problems in one error."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from tfx.types.artifact import Artifact
from tfx.types.channel import BaseChannel

from regard.components.settings.data_section import data_class
from regard.components.settings.serving import ServingConfig
from regard.components.settings.tags import TagsConfig
from regard.components.settings.task_keys import find_inapplicable
from regard.components.settings.task_sections import section_defaults, task_sections
from regard.components.settings.trainer import TrainerConfig
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.files import sha256_file
from regard.core.kinds import TEXT
from regard.core.suggestions import suggest
from regard.models import tasks
from regard.models.settings.base import KeyPath, Problem, Section, find_problems
from regard.models.settings.protect import ProtectConfig
from regard.models.settings.validation_errors import validation_problems
from regard.models.tasks.description import Description

T = TypeVar("T")
# A section, or its keys as plain values.
Settings = Section | Mapping[str, Any]


class NodeArguments:
    """Converts arguments of a component to sections, and collects what is wrong with them.

    Args:
        node: the name of the component.
        task: the name of the task; None for a component that does not depend on one.
    """

    def __init__(self, node: str, task: str | None = None):
        self._node, self._task = node, task
        self._problems: list[Problem] = []
        self._sections: dict[str, Any] = {}
        self.description: Any = None  # before `check` it may be missing
        if isinstance(task, str) and task in tasks.TASKS:
            self.description = tasks.describe(task)
        elif task is not None:
            choices = suggest(task, tasks.TASKS)
            self.add(("task",), f"{task!r} is not the name of a task. {choices}.")

    def add(self, path: KeyPath, message: str) -> None:
        """Add a problem; the path begins with the name of the argument."""
        self._problems.append(Problem(path, message))

    def section(self, name: str, value: Settings | None) -> Any:
        """Return an argument as the section of this name, with the defaults of a YAML file.

        Args:
            name: the name of the argument, which is that of the section.
            value: the section, its keys as plain values, or None for the defaults. Relative paths
                are relative to the working directory.

        Returns:
            The section; None if the task has no such section, or if the value is invalid.
        """
        if self.description is None:  # the sections depend on the task
            return None
        sections = task_sections(self.description)
        if name not in sections:
            if value is not None:
                message = f"The task {self._task} has no section {name}. Remove the argument."
                self.add((name,), message)
            return None
        kind, default = sections[name]
        if value is None:
            value = default
        elif isinstance(value, Mapping):
            value = {**section_defaults(self.description).get(name, {}), **value}
        return self.parse(name, kind, value)

    def parse(self, name: str, kind: Any, value: Any) -> Any:
        """Return an argument as a section of some type; None if it is invalid."""
        try:
            section = TypeAdapter(kind).validate_python({} if value is None else value)
        except ValidationError as error:
            root = self._sections_with(name, kind)
            self._problems += validation_problems(error, root, section=name)
            return None
        section = _with_absolute_paths(section)
        self._problems += find_problems(section, (name,))
        self._sections[name] = section
        return section

    def trainer_config(
        self,
        model: Settings | None,
        training: Settings | None,
        search: Settings | None,
        serving: Settings | None,
        tags: Settings | None,
        protect: Settings | None = None,
    ) -> TrainerConfig | None:
        """Return the settings of a training from its sections; None if one is invalid."""
        sections = {
            "model": self.section("model", model),
            "training": self.section("training", training),
            "search": self.section("search", search),
            "serving": self.parse("serving", ServingConfig, serving),
            "tags": None if tags is None else self.parse("tags", TagsConfig, tags),
            "protect": None if protect is None else self.parse("protect", ProtectConfig, protect),
        }
        if self._problems:
            return None
        return TrainerConfig(task=str(self._task), **sections)

    def features_json(self, model: Section, extra: Sequence[Feature | str]) -> str:
        """Return the features of a raw row as JSON.

        Args:
            model: the section ``model``, which limits the features of some tasks.
            extra: features in addition to those of the task; a name stands for a text.

        Raises:
            UserError: ``extra`` is not a list of features and names.
        """
        if not isinstance(extra, list | tuple):
            self.add(("extra",), f"A list of features is expected; {extra!r} was given.")
        elif not all(isinstance(item, Feature | str) for item in extra):
            self.add(("extra",), f"Features or names are expected; {extra!r} was given.")
        self.check()
        features = list(self.description.row_features(model))
        for item in extra:
            features.append(Feature(item, TEXT, "extra") if isinstance(item, str) else item)
        return json.dumps([feature.to_json() for feature in features])

    def digests(self, path: KeyPath, files: Mapping[str, str]) -> dict[str, str]:
        """Return the digest of the content of each file of an argument, by its key."""
        digests = {}
        for key, file in files.items():
            try:
                digests[key] = sha256_file(file)
            except OSError as error:
                message = f"The file {file} cannot be read: {error.strerror}. Use another file."
                self.add((*path, key), message)
        return digests

    def check_channels(
        self, types: Mapping[str, type[Artifact]], values: Mapping[str, BaseChannel | None]
    ) -> None:
        """Check input channels.

        Args:
            types: the type of the artifacts of each input.
            values: the channel of each input.
        """
        for name, kind in types.items():
            value = values.get(name)
            expected = f"A channel of {kind.TYPE_NAME} is expected"
            example = f"Pass an output of a component, such as node.outputs[{name!r}]."
            if not isinstance(value, BaseChannel):
                self.add((name,), f"{expected}; {type(value).__name__} was given. {example}")
            elif value.type_name != kind.TYPE_NAME:
                self.add((name,), f"{expected}; one of {value.type_name} was given. {example}")

    def check(self, value: T | None = None) -> T:
        """Raise an error with all problems, if there are any.

        Valid sections are also checked as those of a YAML file are: for keys that have no effect on
        the task, and, those of a training, together.

        Args:
            value: a result of these checks, which exists if there are no problems.

        Returns:
            The value.

        Raises:
            UserError: lists every problem with the name of its argument.
        """
        if self.description is not None and not self._problems:
            self._problems += self._conflicts(self.description)
        if not self._problems:
            return cast(T, value)
        lines = (f"{'.'.join(map(str, p.path))}: {p.message}" for p in self._problems)
        title = "An argument is invalid:" if len(self._problems) == 1 else "Arguments are invalid:"
        name = self._task if self.description is not None else "TASK"
        command = f"`regard config reference --task {name}`"
        remedy = f"{command} prints the keys of all sections with their defaults."
        raise UserError("\n  ".join([title, *dict.fromkeys(lines)]), self._node, remedy)

    def _sections_with(self, name: str, kind: Any) -> type[BaseModel]:
        """Return a model of all sections of the task, and of one more."""
        known = task_sections(self.description) if self.description is not None else {}
        kinds = {known_name: known_kind for known_name, (known_kind, _) in known.items()}
        return create_model("Sections", **{**kinds, name: kind})

    def _conflicts(self, description: Description) -> Iterator[Problem]:
        """Yield keys without effect on the task, and what its own checks find in a training."""
        yield from find_inapplicable(description.name, self._sections)
        defaults = {name: default for name, (_, default) in task_sections(description).items()}
        if not {"model", "training", "search"} & defaults.keys() <= self._sections.keys():
            return
        sections: dict[str, Any] = {"search": None, "tokenizer": None, **defaults, **self._sections}
        # Another component knows the tokenizer. What needs a shared one is not refused here.
        if sections["tokenizer"] is not None:
            sections["tokenizer"] = sections["tokenizer"].model_copy(update={"shared": True})
        sections["data"] = data_class(description).model_construct()
        for problem in description.validate(SimpleNamespace(task=self._task, **sections)):
            if problem.path[0] in self._sections:
                yield problem


def _with_absolute_paths(section: Any) -> Any:
    """Return a section whose relative paths are relative to the working directory."""
    folder = Path.cwd()
    if hasattr(section, "resolved"):
        return section.resolved(folder)
    pretrained = getattr(section, "pretrained", None)
    if pretrained is not None:
        return section.model_copy(update={"pretrained": pretrained.resolved(folder)})
    return section
