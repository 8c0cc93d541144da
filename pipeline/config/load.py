"""Load a YAML file as a configuration, or raise one error with all of its problems."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from regard.components.common.errors import UserError
from regard.models.settings.base import Problem, absolute
from regard.models.tasks import TASKS
from regard.pipeline import workspace as workspaces
from regard.pipeline.config.config import DEFAULT_TASK, Config, config_class
from regard.pipeline.config.cross_checks import validate
from regard.pipeline.config.document import Document, parse
from regard.pipeline.config.errors import problems, show, suggest
from regard.pipeline.workspace import Workspace

_REMEDY = "`regard config reference` prints all options with their defaults."


def load(path: str | os.PathLike[str], home: str | os.PathLike[str] | None = None) -> Config:
    """Load a pipeline's YAML file; the paths in the result are absolute.

    Args:
        path: the YAML file.
        home: what ``${REGARD_HOME}`` stands for; default: the environment variable, or else
            ``./workspace``. ``${REGARD_DATA}`` is ``${REGARD_HOME}/data`` where it is not set.

    Raises:
        UserError: names every problem of the file with its line and key.
    """
    workspace = Workspace(Path(os.path.abspath(home))) if home else Workspace.from_environment()
    document = read_document(path, workspace)
    if is_comparison(document):
        raise UserError(
            "this file holds a comparison of several models, not one pipeline",
            where=str(path),
            remedy=f"`regard compare {shlex.quote(str(path))}` trains and compares them.",
        )
    if not document.problems:
        _check_is_mapping(document, path)
    all_problems, config = list(document.problems), None
    if isinstance(document.value, dict):
        config, more = validate_values(document.value)
        # Errors that follow from an invalid value would only confuse.
        broken = {problem.path for problem in all_problems}
        if config is None or not broken:
            all_problems += [problem for problem in more if problem.path not in broken]
    if all_problems or config is None:
        raise UserError(problem_lines(all_problems, document, path), remedy=_REMEDY)
    folder = Path(os.path.abspath(path)).parent
    return absolute_paths(config, lambda *_: folder, str(workspace.home))


def validate_values(value: dict[str, Any]) -> tuple[Config | None, list[Problem]]:
    """Return the configuration of plain values, and its problems."""
    task = value.get("task", DEFAULT_TASK)
    if task not in TASKS:
        # The valid keys depend on the task, so nothing else can be checked.
        message = f"{show(task)} is not a choice{suggest(task, TASKS)}"
        return None, [Problem(("task",), message)]
    kind = config_class(task)
    try:
        config = kind.model_validate(value)
    except ValidationError as error:
        return None, problems(error, kind, value)
    return config, list(validate(config))


def config_from_values(value: dict[str, Any]) -> Config:
    """Return the configuration of plain values with resolved paths and variables.

    Raises:
        ValueError, LookupError: it is none of this version of Regard.
    """
    return config_class(value["task"]).model_validate(value)


def read_document(path: str | os.PathLike[str], workspace: Workspace) -> Document:
    """Return the values of a YAML file with variables replaced, and its problems.

    Raises:
        UserError: the file cannot be read, or is not UTF-8.
    """
    folders = {
        workspaces.VARIABLE: str(workspace.home),
        workspaces.DATA_VARIABLE: str(workspace.data_root()),
    }
    return parse(_read(path), {**os.environ, **folders})


def _read(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError("there is no such file", where=str(path), remedy=_nearby(path)) from None
    except IsADirectoryError:
        raise UserError(
            "this is a folder, not a YAML file", where=str(path), remedy=_nearby(path, inside=True)
        ) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(
            "the file is not UTF-8", where=f"{path}:{line}", remedy="Save it as UTF-8."
        ) from None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _nearby(path: str | os.PathLike[str], inside: bool = False) -> str:
    folder = Path(path) if inside else Path(path).parent
    names = sorted(str(file) for end in ("yaml", "yml") for file in folder.glob(f"*.{end}"))
    if names:
        return f"There is: {', '.join(names[:10])}"
    return "Give the path of a pipeline's YAML file, such as configs/quickstart.yaml."


def is_comparison(document: Document) -> bool:
    """Return whether a file, valid or not, is for ``regard compare``: it has a base, or models."""
    return isinstance(document.value, dict) and bool({"base", "models"} & set(document.value))


def _check_is_mapping(document: Document, path: str | os.PathLike[str]) -> None:
    if document.value is None:
        document.problems.append(Problem((), "the file is empty; it needs name and data"))
    elif not isinstance(document.value, dict):
        what = "a list" if isinstance(document.value, list) else f"{document.value!r}"
        message = f"a mapping (name: ..., data: ...) is expected, the file holds {what}"
        document.problems.append(Problem((), message))


def problem_lines(all_problems: Iterable[Problem], document: Document, path: Any) -> str:
    """Return a line for each problem of a file, with the file, the line and the key."""
    rows = []
    for problem in all_problems:
        line = problem.line or document.line(problem.path)
        key = ".".join(str(part) for part in problem.path)
        rows.append((line, f"{path}:{line}: {f'{key}: ' if key else ''}{problem.message}"))
    return "\n".join(row for _, row in sorted(rows, key=lambda row: row[0]))


def absolute_paths(config: Config, folder: Callable[..., Path], home: str) -> Config:
    """Return a configuration with absolute paths.

    Args:
        config: the configuration.
        folder: returns the folder that the path under a key is relative to.
        home: the workspace, which contains the default registry.
    """
    model, tokenizer, serving = config.model, config.tokenizer, config.serving
    if getattr(model, "pretrained", None) is not None:
        pretrained = model.pretrained.resolved(folder("model", "pretrained", "source"))
        model = model.model_copy(update={"pretrained": pretrained})
    if tokenizer is not None:
        tokenizer = tokenizer.resolved(folder("tokenizer", "word_list"))
    registry = serving.registry or os.path.join(home, "registry")
    registry = absolute(folder("serving", "registry"), registry)
    resolved = {
        "data": config.data.resolved(folder("data", "root")),
        "tokenizer": tokenizer,
        "model": model,
        "training": config.training.resolved(folder("training", "warm_start", "model")),
        "serving": serving.model_copy(update={"registry": registry}),
    }
    return config.model_copy(update=resolved)
