"""From YAML files to the configurations that are compared, or one error with all that is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from components.errors import UserError
from models.settings.base import Section
from pipeline.compare.agreement import disagreements
from pipeline.compare.members import Comparison, Member
from pipeline.compare.tree import Tree, expanded, merged, part
from pipeline.config import Config, load, loading
from pipeline.config.document import Document
from pipeline.config.errors import problems
from pipeline.config.loading import checked
from pipeline.workspace import Workspace

DEFAULT_NAME = "comparison"
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_LONGEST = 63  # what a pipeline's name may have
_REMEDY = "`regard compare --help` shows both forms, `regard config reference` every key."


class Matrix(Section):
    """A file that holds a whole comparison."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")] = Field(
        description="a small letter, then small letters, digits and hyphens"
    )
    base: Any = Field(
        description="what all models share: a whole configuration, or the path of one"
    )
    models: dict[str, Any] = Field(description="a label for each model, and what it changes")


def read(paths: Sequence[Path], workspace: Workspace, name: str | None = None) -> Comparison:
    """Reads several configurations, or one file with a matrix.

    Args:
        paths: the files.
        workspace: what ``${REGARD_HOME}`` and ``${REGARD_DATA}`` stand for.
        name: the comparison's name; by default the matrix's own, or ``comparison``.

    Raises:
        UserError: names every problem with file, line and key.
    """
    if name is not None and not _NAME.fullmatch(name):
        rule = "A small letter, then small letters, digits and hyphens."
        raise UserError(f"{name!r} is not possible", "--name", rule)
    if len(paths) == 1:
        return _matrix(paths[0], workspace, name)
    name = name or DEFAULT_NAME
    trees: dict[str, Tree] = {}
    for path in paths:
        config = load(path, workspace.home)
        if config.name in trees:
            other = trees[config.name].places[()].file
            message = f"{config.name} is also the name of {other}"
            raise UserError(message, f"{path}: name", "Give every configuration its own name.")
        if long := _too_long(name, config.name):
            raise UserError(long, f"{path}: name", "Use a shorter one, or a shorter --name.")
        trees[config.name] = part(_document(path, workspace), str(path))
    return _comparison(name, trees, workspace)


def _matrix(path: Path, workspace: Workspace, name: str | None) -> Comparison:
    document = _document(path, workspace)
    if not loading.holds_comparison(document):
        raise UserError(
            "one configuration alone cannot be compared",
            where=str(path),
            remedy="Give at least two, or a file with a matrix: name, base and models.",
        )
    tree = part(document, str(path))
    value = document.value if name is None else {**document.value, "name": name}
    found: list[str] = []
    try:
        matrix = Matrix.model_validate(value)
    except ValidationError as error:
        found = [f"{tree.place(p.path)}{p.message}" for p in problems(error, Matrix, value)]
        raise _refusal(found) from None
    base, twice = expanded(_base(matrix, document, path, workspace))
    found += [f"{base.place(p.path)}{p.message}" for p in twice]
    trees = {}
    for label, change in matrix.models.items():
        at = ("models", label)
        if not _LABEL.fullmatch(label):
            found.append(f"{tree.place(at)}a label has small letters, digits and, inside, hyphens")
        elif change is not None and not isinstance(change, dict):
            found.append(f"{tree.place(at)}a mapping of the keys that change is expected")
        elif change is not None and "name" in change:
            place = tree.place((*at, "name"))
            found.append(f"{place}the pipeline of a model is named by the matrix and its label")
        elif long := _too_long(matrix.name, label):
            found.append(f"{tree.place(at)}{long}")
        else:
            written = part(document, str(path), at)
            nested, twice = expanded(written)
            found += [f"{written.place(p.path)}{p.message}" for p in twice]
            trees[label] = merged(base, nested)
    if len(matrix.models) < 2:
        found.append(f"{tree.place(('models',))}a comparison needs two models or more")
    if found:
        raise _refusal(found)
    return _comparison(matrix.name, trees, workspace)


def _too_long(name: str, label: str) -> str:
    pipeline = f"{name}-{label}"
    if len(pipeline) <= _LONGEST:
        return ""
    return f"the pipeline's name, {pipeline}, has more than {_LONGEST} characters"


def _base(matrix: Matrix, document: Document, path: Path, workspace: Workspace) -> Tree:
    if isinstance(matrix.base, dict):
        return part(document, str(path), ("base",))
    if not isinstance(matrix.base, str) or not matrix.base.strip():
        place = part(document, str(path)).place(("base",))
        message = "a whole configuration, or the path of one, is expected"
        raise _refusal([f"{place}{message}"])
    other = path.parent / os.path.expanduser(matrix.base)
    if not other.is_file():
        place = part(document, str(path)).place(("base",))
        raise _refusal([f"{place}there is no file {other}"])
    return part(_document(other, workspace), str(other))


def _comparison(name: str, trees: dict[str, Tree], workspace: Workspace) -> Comparison:
    found: dict[str, None] = {}  # what is wrong with the base is wrong with all, but told once
    members = []
    for label, tree in trees.items():
        config, wrong = _checked(tree)
        found.update(dict.fromkeys(wrong))
        if config is not None:
            ready = _ready(config, tree, f"{name}-{label}", workspace)
            members.append(Member(label, ready, tree))
    if not found:
        found.update(dict.fromkeys(disagreements(members)))
    if found:
        raise _refusal(found)
    return Comparison(name, tuple(members))


def _checked(tree: Tree) -> tuple[Config | None, list[str]]:
    value = {**tree.value, "name": "x"}  # a base needs no name, and the pipeline gets another
    config, wrong = checked(value)
    return config, [f"{tree.place(p.path)}{p.message}" for p in wrong]


def _ready(config: Config, tree: Tree, pipeline: str, workspace: Workspace) -> Config:
    """The configuration as it will run: paths absolute, and nothing that only a push needs."""

    def folder(*path: str) -> Path:
        return Path(os.path.abspath(tree.place(path).file)).parent

    model, pretrained = config.model, getattr(config.model, "pretrained", None)
    if pretrained is not None:
        resolved = pretrained.resolved(folder("model", "pretrained"))
        model = model.model_copy(update={"pretrained": resolved})
    tokenizer = config.tokenizer
    if tokenizer is not None:
        tokenizer = tokenizer.resolved(folder("tokenizer", "words"))
    gate: dict[str, Any] = {"floors": {}, "production": None}
    return config.model_copy(
        update={
            "name": pipeline,
            "data": config.data.resolved(folder("data", "root")),
            "tokenizer": tokenizer,
            "model": model,
            "training": config.training.resolved(folder("training", "warm_start")),
            "evaluation": config.evaluation.model_copy(update=gate),
            "serving": config.serving.model_copy(update={"registry": str(workspace.registry)}),
        }
    )


def _document(path: Path, workspace: Workspace) -> Document:
    """The values of a YAML file that holds a mapping."""
    document = loading.read(path, workspace)
    if document.problems:
        rows = [
            f"{path}:{p.line}: {'.'.join(map(str, p.path))}{': ' if p.path else ''}{p.message}"
            for p in document.problems
        ]
        raise _refusal(rows)
    if not isinstance(document.value, dict):
        raise _refusal([f"{path}:1: a mapping (name: ..., base: ..., models: ...) is expected"])
    return document


def _refusal(lines: Iterable[str]) -> UserError:
    return UserError("\n".join(lines), remedy=_REMEDY)
