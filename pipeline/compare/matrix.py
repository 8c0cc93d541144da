"""Reads what to compare: several configurations, or one file with a base and its variants."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue, ValidationError

from regard.components.common.errors import UserError
from regard.models.settings.base import Path as KeyPath
from regard.models.settings.base import Section
from regard.pipeline.compare.merge import LocatedMapping, located, merge
from regard.pipeline.config import Config, load
from regard.pipeline.config.document import Document
from regard.pipeline.config.errors import problems
from regard.pipeline.config.load import is_comparison, read_document, validate_values
from regard.pipeline.workspace import Workspace

DEFAULT_NAME = "comparison"
SHARED_SECTIONS = ("task", "data", "tokenizer", "evaluation")
_NAME = r"[a-z][a-z0-9-]*"
_REMEDY = "`regard compare --help` shows both forms, `regard config reference` all keys."


class MatrixConfig(Section):
    """A file that describes a whole comparison."""

    name: str = Field(description="the name of the comparison")
    base: Any = Field(description="the shared configuration, or the path of one")
    models: dict[str, Any] = Field(description="a label for each model, with its changes")


@dataclasses.dataclass(frozen=True)
class Member:
    """One model of a comparison: its label, its pipeline, and where its keys were written."""

    label: str
    config: Config
    source: LocatedMapping


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Models that differ only in model, training and search, in the order of the files."""

    name: str
    members: tuple[Member, ...]

    @property
    def labels(self) -> list[str]:
        """The labels, in order."""
        return [member.label for member in self.members]


def read_comparison(
    paths: Sequence[Path], workspace: Workspace, name: str | None = None
) -> Comparison:
    """Read several configurations, or one file with a matrix.

    Args:
        paths: the files.
        workspace: gives the values of ``${REGARD_HOME}`` and ``${REGARD_DATA}``.
        name: name of the comparison; default: that of the matrix, or ``comparison``.

    Raises:
        UserError: lists every problem with file, line and key.
    """
    if name is not None and not re.fullmatch(_NAME, name):
        rule = "Use a lowercase letter, then lowercase letters, digits and hyphens."
        raise UserError(f"Invalid name {name!r}.", "--name", rule)
    if len(paths) == 1:
        return _read_matrix(paths[0], workspace, name)
    sources: dict[str, LocatedMapping] = {}
    for path in paths:
        config = load(path, workspace.home)
        if config.name in sources:
            message = f"The name {config.name} is used by two configurations."
            raise UserError(message, f"{path}: name", "Give every configuration its own name.")
        sources[config.name], _ = located(_read_mapping(path, workspace), str(path))
    return _comparison(name or DEFAULT_NAME, sources, workspace)


def _read_matrix(path: Path, workspace: Workspace, name: str | None) -> Comparison:
    document = _read_mapping(path, workspace)
    if not is_comparison(document):
        raise UserError(
            "A comparison needs at least two configurations.",
            where=str(path),
            remedy="Pass another one, or a file with name, base and models.",
        )
    source, _ = located(document, str(path))
    value = document.value if name is None else {**document.value, "name": name}
    try:
        matrix = MatrixConfig.model_validate(value)
    except ValidationError as error:
        invalid = problems(error, MatrixConfig, value)
        raise _error(f"{source.location(p.path)}{p.message}" for p in invalid) from None
    base, lines = _read_base(matrix, document, path, workspace)
    sources = {}
    for label, change in matrix.models.items():
        if change is not None and not isinstance(change, dict):
            location = source.location(("models", label))
            lines.append(f"{location}must be a mapping of the keys that change")
            continue
        if change is not None and "name" in change:
            location = source.location(("models", label, "name"))
            lines.append(f"{location}remove it; the label names the model")
        changes, duplicates = located(document, str(path), ("models", label))
        lines += duplicates
        sources[label] = merge(base, changes)
    if len(matrix.models) < 2:
        lines.append(f"{source.location(('models',))}a comparison needs at least two models")
    if lines:
        raise _error(lines)
    return _comparison(matrix.name, sources, workspace)


def _read_base(
    matrix: MatrixConfig, document: Document, path: Path, workspace: Workspace
) -> tuple[LocatedMapping, list[str]]:
    if isinstance(matrix.base, dict):
        return located(document, str(path), ("base",))
    location = f"{path}:{document.line(('base',))}: base: "
    if not isinstance(matrix.base, str) or not matrix.base.strip():
        raise _error([f"{location}must be a whole configuration, or the path of one"])
    other = path.parent / os.path.expanduser(matrix.base)
    if not other.is_file():
        raise _error([f"{location}the file {other} does not exist"])
    return located(_read_mapping(other, workspace), str(other))


def _comparison(
    name: str, sources: Mapping[str, LocatedMapping], workspace: Workspace
) -> Comparison:
    lines: dict[str, None] = {}  # a problem of the base concerns all models, but is listed once
    members = []
    for label, source in sources.items():
        config, invalid = validate_values({**source.value, "name": f"{name}-{label}"})
        for problem in invalid:
            is_name = problem.path == ("name",)  # consists of the comparison's and the label
            location = f"{label}: name: " if is_name else source.location(problem.path)
            lines[f"{location}{problem.message}"] = None
        if config is not None:
            members.append(Member(label, _resolve(config, source, workspace), source))
    if not lines:
        lines.update(dict.fromkeys(_differences(members)))
    if lines:
        raise _error(lines)
    return Comparison(name, tuple(members))


def _differences(members: Sequence[Member]) -> Iterator[str]:
    """Yield the keys in which models differ although the scores depend on them."""
    first = members[0]
    if first.config.data.has_spans and first.config.data.spans.last is None:
        location = first.source.location(("data", "spans"))
        yield f"{location}set last; otherwise models that train later may use more spans"
    for member in members[1:]:
        for section in SHARED_SECTIONS:
            one, other = (m.config.model_dump(mode="json")[section] for m in (first, member))
            path = _first_difference(one, other, (section,))
            if path is not None:
                key = ".".join(map(str, path))
                location = member.source.location(path)
                yield f"{location}differs from {first.label}; all models must have the same {key}"


def _first_difference(one: JsonValue, other: JsonValue, path: KeyPath) -> KeyPath | None:
    """Return the path of the first difference of two values; None if they are equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        inner = (_first_difference(one.get(k), other.get(k), (*path, k)) for k in {**one, **other})
        return next((difference for difference in inner if difference is not None), None)
    return None if one == other else path


def _resolve(config: Config, source: LocatedMapping, workspace: Workspace) -> Config:
    """Return the configuration to run: with absolute paths, and without the gate of a push."""

    def folder(*path: str) -> Path:
        return source.folder(path)

    model, tokenizer = config.model, config.tokenizer
    if getattr(model, "pretrained", None) is not None:
        pretrained = model.pretrained.resolved(folder("model", "pretrained"))
        model = model.model_copy(update={"pretrained": pretrained})
    if tokenizer is not None:
        tokenizer = tokenizer.resolved(folder("tokenizer", "word_list"))
    gate: dict[str, Any] = {"thresholds": {}, "production": None}
    return config.model_copy(
        update={
            "data": config.data.resolved(folder("data", "root")),
            "tokenizer": tokenizer,
            "model": model,
            "training": config.training.resolved(folder("training", "warm_start")),
            "evaluation": config.evaluation.model_copy(update=gate),
            "serving": config.serving.model_copy(update={"registry": str(workspace.registry)}),
        }
    )


def _read_mapping(path: Path, workspace: Workspace) -> Document:
    """Read a YAML file that must contain a mapping."""
    document = read_document(path, workspace)
    if document.problems:
        raise _error(
            f"{path}:{p.line}: {'.'.join(map(str, p.path))}{': ' if p.path else ''}{p.message}"
            for p in document.problems
        )
    if not isinstance(document.value, dict):
        raise _error([f"{path}:1: must be a mapping (name: ..., base: ..., models: ...)"])
    return document


def _error(lines: Iterable[str]) -> UserError:
    return UserError("\n".join(lines), remedy=_REMEDY)
