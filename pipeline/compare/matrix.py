"""Reads what to compare: several configurations, or one file with a base and its variants."""

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field, JsonValue, ValidationError

from regard.core.errors import ConfigError, UserError
from regard.models.settings.base import KeyPath, Problem, Section
from regard.models.settings.validation_errors import validation_problems
from regard.pipeline.config import Config, load
from regard.pipeline.config.document import Document
from regard.pipeline.config.load import (
    absolute_paths,
    is_comparison,
    read_document,
    validate_references,
    validate_values,
    with_options,
)
from regard.pipeline.config.located import LocatedMapping, located, mask_references, merge, whole
from regard.pipeline.config.reference import JSON_SCHEMA
from regard.pipeline.workspace import Workspace

DEFAULT_NAME = "comparison"
SHARED_SECTIONS = ("task", "data", "tokenizer", "evaluation")
_NAME = r"[a-z][a-z0-9-]*"
_REMEDY = "`regard compare --help` shows both forms, `regard config reference` all keys."


class MatrixConfig(Section):
    """A file that describes a whole comparison."""

    name: str = Field(description="the name of the comparison")
    base: JsonValue = Field(description="the shared configuration, or the path of one")
    models: dict[str, dict[str, JsonValue] | None] = Field(
        description="a label for each model, with its changes"
    )


def comparison_schema() -> dict[str, JsonValue]:
    """Return the JSON schema of a comparison's file, which leaves the changes of a model open."""
    schema = MatrixConfig.model_json_schema()
    return {"$schema": JSON_SCHEMA, **schema, "title": "Regard comparison"}


@dataclasses.dataclass(frozen=True)
class Member:
    """One model of a comparison: its label, its pipeline, and where its keys were written."""

    label: str
    config: Config
    source: LocatedMapping


@dataclasses.dataclass(frozen=True)
class ModelComparison:
    """Models that differ only in model, training and search, in the order of the files."""

    name: str
    members: tuple[Member, ...]

    @property
    def labels(self) -> list[str]:
        """The labels, in order."""
        return [member.label for member in self.members]

    @property
    def assignments(self) -> list[str]:
        """The values of ``--set`` for the models, as far as they count."""
        sources = (source for member in self.members for source in member.source.sources)
        return list(dict.fromkeys(one.assignment for one in sources if one.assignment))


def read_comparison(
    configs: Sequence[Path | Config],
    workspace: Workspace,
    name: str | None = None,
    options: Sequence[str] = (),
) -> ModelComparison:
    """Read several configurations, or one file with a matrix.

    Args:
        configs: the files, or loaded configurations.
        workspace: gives the values of ``${REGARD_HOME}`` and ``${REGARD_DATA}``.
        name: name of the comparison; default: that of the matrix, or ``comparison``.
        options: the values of ``--set``, ``KEY=VALUE``, for every model.

    Raises:
        UserError: lists every problem with file, line and key.
    """
    if name is not None and not re.fullmatch(_NAME, name):
        rule = "Use a lowercase letter, then lowercase letters, digits and hyphens."
        raise UserError(f"Invalid name {name!r}.", "--name", rule)
    if len(configs) == 1 and isinstance(configs[0], Path):
        return _read_matrix(configs[0], workspace, name, options)
    sources: dict[str, LocatedMapping] = {}
    for source in configs:
        config = source if isinstance(source, Config) else load(source, workspace.home, options)
        if config.name in sources:
            message = f"The name {config.name} is used by two configurations."
            where = f"{config.origin.file}: name".removeprefix(": ")
            raise UserError(message, where, "Give every configuration its own name.")
        sources[config.name] = config.origin.mapping
    if len(sources) < 2:
        raise UserError("A comparison needs at least two configurations.", remedy=_REMEDY)
    return _comparison(name or DEFAULT_NAME, sources)


def _read_matrix(
    path: Path, workspace: Workspace, name: str | None, options: Sequence[str]
) -> ModelComparison:
    document = _read_mapping(path, workspace)
    if not is_comparison(document):
        remedy = "Pass another one, or a file with name, base and models."
        raise UserError("A comparison needs at least two configurations.", str(path), remedy)
    value = document.value if name is None else {**document.value, "name": name}
    try:
        matrix = MatrixConfig.model_validate(value)
    except ValidationError as error:
        invalid = validation_problems(error, MatrixConfig)
        raise whole(document, str(path)).error(invalid, _REMEDY) from None
    if invalid := list(_matrix_problems(matrix, path.parent)):
        raise whole(document, str(path)).error(invalid, _REMEDY)
    if isinstance(matrix.base, str):
        other = path.parent / os.path.expanduser(matrix.base)
        base, duplicates = located(_read_mapping(other, workspace), str(other))
    else:
        base, duplicates = located(document, str(path), ("base",))
    sources = {}
    for label in matrix.models:
        changes, more = located(document, str(path), ("models", label))
        duplicates += more
        sources[label] = merge(base, changes)
    if duplicates:
        raise _error("\n".join(duplicates))
    sources = {label: with_options(one, options, workspace) for label, one in sources.items()}
    return _comparison(matrix.name, sources)


def _matrix_problems(matrix: MatrixConfig, folder: Path) -> Iterator[Problem]:
    if isinstance(matrix.base, str):
        base = folder / os.path.expanduser(matrix.base)
        if not os.path.isfile(base):  # unlike Path.is_file, also false for an impossible path
            yield Problem(("base",), f"the file {os.fspath(base)!r} does not exist")
    elif not isinstance(matrix.base, dict):
        yield Problem(("base",), "must be a whole configuration, or the path of one")
    if len(matrix.models) < 2:
        yield Problem(("models",), "a comparison needs at least two models")
    for label, change in matrix.models.items():
        if change and "name" in change:
            yield Problem(("models", label, "name"), "remove it; the label names the model")


def _comparison(name: str, sources: Mapping[str, LocatedMapping]) -> ModelComparison:
    lines: dict[str, None] = {}  # a problem of the base concerns all models, but is listed once
    members = []
    for label, source in sources.items():
        config, invalid = validate_values({**source.value, "name": f"{name}-{label}"})
        if config is not None:
            invalid += validate_references(config, source.references)
        for problem in invalid:
            location = source.location(problem.path)
            if problem.path == ("name",):  # consists of the comparison's and the label
                *_, changes = (part for part in source.sources if not part.assignment)
                line = changes.document.line(changes.root)
                location = f"{changes.file}:{line}: {label}: name: "
            lines[f"{location}{mask_references(problem, source.references)}"] = None
        if config is not None:
            members.append(Member(label, _resolve(config, source), source))
    if not lines:
        lines.update(dict.fromkeys(_differences(members)))
    if lines:
        raise _error("\n".join(lines))
    return ModelComparison(name, tuple(members))


def _differences(members: Sequence[Member]) -> Iterator[str]:
    """Yield the keys in which models differ although the scores depend on them."""
    first = members[0]
    if first.config.data.has_spans and first.config.data.spans.last is None:
        location = first.source.location(("data", "spans"))
        yield f"{location}set last; otherwise models that train later may use more spans"
    for member in members[1:]:
        for section in SHARED_SECTIONS:
            expected = first.config.model_dump(mode="json")[section]
            value = member.config.model_dump(mode="json")[section]
            path = _first_difference(expected, value, (section,))
            if path is not None:
                key = ".".join(map(str, path))
                location = member.source.location(path)
                yield f"{location}differs from {first.label}; all models must have the same {key}"


def _first_difference(first: JsonValue, second: JsonValue, path: KeyPath) -> KeyPath | None:
    """Return the path of the first difference of two values; None if they are equal."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in {**first, **second}:
            difference = _first_difference(first.get(key), second.get(key), (*path, key))
            if difference is not None:
                return difference
        return None
    return None if first == second else path


def _resolve(config: Config, source: LocatedMapping) -> Config:
    """Return the configuration to run: with absolute paths, and without the gate of a push."""
    config = absolute_paths(config.with_references(source.references), source.folder)
    gate: dict[str, object] = {"thresholds": {}, "production": None}
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update=gate)})


def _read_mapping(path: Path, workspace: Workspace) -> Document:
    """Read a YAML file that must contain a mapping."""
    document = read_document(path, workspace)
    if not document.problems and not isinstance(document.value, dict):
        message = "must be a mapping (name: ..., base: ..., models: ...)"
        document.problems.append(Problem((), message))
    if document.problems:
        raise whole(document, str(path)).error(document.problems, _REMEDY)
    return document


def _error(lines: str) -> ConfigError:
    return ConfigError(lines, remedy=_REMEDY)
