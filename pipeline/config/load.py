"""Load a YAML file as a configuration, or raise one error with all of its problems."""

import functools
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from regard.components.common.references import References, resolve_references
from regard.core.errors import ConfigError, NotFoundError, UserError
from regard.core.files import check_no_special_file
from regard.core.modules import importable, is_missing, module_of
from regard.core.storage import is_uri
from regard.models.settings.base import KeyPath, Problem, absolute
from regard.models.settings.validation_errors import unknown, validation_problems
from regard.models.tasks import TASKS
from regard.pipeline import workspace as workspaces
from regard.pipeline.config.changes import OPTION, split_option, with_value
from regard.pipeline.config.config import DEFAULT_TASK, Config, ConfigOrigin, config_class
from regard.pipeline.config.cross_checks import validate
from regard.pipeline.config.document import MAX_CHARACTERS, ConfigSource, Document, parse
from regard.pipeline.config.located import LocatedMapping, whole
from regard.pipeline.config.metadata import validate_file, validate_password
from regard.pipeline.config.other_toolkits import PAGES, KeyExplainer
from regard.pipeline.config.own_nodes import validate_parameters
from regard.pipeline.workspace import Workspace

_REMEDY = "`regard config reference` prints all options with their defaults."
_MODULE_REMEDY = "Put it there, install its package, or set pipeline.folder."


def load(
    source: ConfigSource,
    home: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (),
) -> Config:
    """Load a pipeline's YAML file; the paths in the result are absolute.

    Args:
        source: The YAML file, or its content as a mapping with paths relative to the working
            directory.
        home: The value of ``${REGARD_HOME}``; by default the environment variable, or else
            ``./workspace``. ``${REGARD_DATA}`` is ``${REGARD_HOME}/data`` if it is not set.
        options: The values of ``--set``, ``KEY=VALUE``, which replace those of the file.

    Raises:
        UserError: The file is invalid. The message names every problem with its line and key.
    """
    workspace = Workspace(Path(os.path.abspath(home))) if home else Workspace.from_environment()
    path = None if isinstance(source, Mapping) else source
    document = read_document(source, workspace)
    if is_comparison(document):
        message = "The file describes a comparison of several models, not one pipeline."
        remedy = f"`regard compare {shlex.quote(str(path or 'FILE'))}` trains and compares them."
        raise UserError(message, str(path) if path else None, remedy)
    mapping = whole(document, "" if path is None else os.fspath(path))
    if not isinstance(document.value, dict):
        problem = Problem((), "the file must contain a mapping (name: ..., data: ...)")
        raise mapping.error(document.problems or [problem], _REMEDY)
    changed = with_options(mapping, options, workspace)
    replaced = document.unset - changed.unset
    remaining = [problem for problem in document.problems if problem.path not in replaced]
    return _build(changed, workspace, remaining)


def with_options(
    mapping: LocatedMapping, options: Sequence[str], workspace: Workspace
) -> LocatedMapping:
    """Return a mapping with the values of ``--set``.

    Raises:
        UserError: An option is not ``KEY=VALUE``, or its value is not YAML.
    """
    for option in options:
        key, text = split_option(option)
        mapping = with_value(mapping, key, text, functools.partial(_parse, workspace), OPTION)
    return mapping


def _build(
    mapping: LocatedMapping, workspace: Workspace | None, all_problems: Sequence[Problem] = ()
) -> Config:
    """Return a valid configuration, or raise an error with all problems."""
    config, more = validate_values(mapping.value)
    if config is not None:
        more += validate_references(config, mapping.references)
        pipelines = (workspace or Workspace.from_environment()).pipelines
        more += validate_file(config.metadata.resolved(mapping.folder), pipelines)
    # Errors that follow from an invalid value would only confuse.
    broken = {problem.path for problem in all_problems}
    if config is None or not broken:
        all_problems = [*all_problems, *(one for one in more if one.path not in broken)]
    if all_problems or config is None:
        raise mapping.error(all_problems, _remedy(mapping.value))
    config = absolute_paths(config.with_references(mapping.references), mapping.folder)
    if missing := list(_missing_modules(config)):
        raise mapping.error(missing, _MODULE_REMEDY)
    return config.with_origin(
        ConfigOrigin(mapping, functools.partial(_with_values, mapping, workspace))
    )


def validate_references(config: Config, references: References) -> Iterator[Problem]:
    """Yield secrets that a file would have, and references whose values a run would record."""
    yield from validate_password(config.metadata, references)
    yield from validate_parameters(references)


def _missing_modules(config: Config) -> Iterator[Problem]:
    """Yield the modules of the user's own that do not exist; they are not imported."""
    with importable(config.pipeline.folder):
        for path, reference in config.own_code.items():
            module = module_of(reference)
            if is_missing(module):
                yield Problem(path, f"there is no module {module} in {config.pipeline.folder}")


def _with_values(
    mapping: LocatedMapping, workspace: Workspace | None, values: Mapping[str, Any]
) -> Config:
    """Return the configuration of a mapping with other values; see `Config.with_values`."""
    for key, value in values.items():
        text = json.dumps(value, ensure_ascii=False, default=str)
        mapping = with_value(mapping, key, text, functools.partial(_parse, workspace))
    return _build(mapping, workspace)


def _remedy(value: Any) -> str:
    """Return the remedy for an invalid file; for one of another toolkit, with the page about it."""
    task = value.get("task", DEFAULT_TASK) if isinstance(value, Mapping) else DEFAULT_TASK
    root = config_class(task if str(task) in TASKS else DEFAULT_TASK)
    toolkit = KeyExplainer(value, root).toolkit
    if toolkit is None:
        return _REMEDY
    page = f"docs/coming-from/{PAGES[toolkit]}"
    return f"The file is a configuration of {toolkit}: {page} compares its keys. {_REMEDY}"


def validate_values(value: Mapping[str, Any]) -> tuple[Config | None, list[Problem]]:
    """Return the configuration of plain values, and its problems."""
    task = value.get("task", DEFAULT_TASK)
    if isinstance(task, Mapping):
        return None, _section_task_problems(value, task)
    if str(task) not in TASKS:  # the valid keys depend on the task
        return None, [Problem(("task",), unknown(task, TASKS))]
    try:
        config = config_class(task).model_validate(value)
    except ValidationError as error:
        return None, _explained_problems(error, config_class(task), value)
    return config, list(validate(config))


def _section_task_problems(value: Mapping[str, Any], task: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of a file whose task is a section, as in files of fairseq."""
    root = config_class(DEFAULT_TASK)
    hints = KeyExplainer(value, root).explain_section(("task",), task)
    result = [Problem(("task",), unknown(task, TASKS))]
    result += [Problem(path, f"unknown key{hint}") for path, hint in hints]
    try:
        root.model_validate({**value, "task": DEFAULT_TASK})
    except ValidationError as error:
        result += _explained_problems(error, root, value)
    return result


def _explained_problems(error: ValidationError, root: type[Config], value: Any) -> list[Problem]:
    """Return pydantic's problems; those of unknown keys name the keys of other toolkits."""
    return validation_problems(error, root, KeyExplainer(value, root).explain_all)


def config_from_values(value: Mapping[str, JsonValue]) -> Config:
    """Return the configuration of recorded values, which have absolute paths.

    Raises:
        ValueError, LookupError: The values are not valid in this version of Regard, or an
            environment variable that they refer to is not set.
    """
    references: References = {}
    resolved = resolve_references(value, os.environ, references)
    config = config_class(str(resolved["task"])).model_validate(resolved)
    config = config.with_references(references)
    mapping = whole(Document(resolved, references=references))
    return config.with_origin(ConfigOrigin(mapping, functools.partial(_with_values, mapping, None)))


def read_document(source: ConfigSource, workspace: Workspace) -> Document:
    """Return the values of a YAML file, or of its content, with variables replaced; and problems.

    Raises:
        UserError: The file cannot be read, or is not UTF-8.
    """
    if isinstance(source, Mapping):  # JSON is YAML
        text = json.dumps(source, ensure_ascii=False, default=str)
    else:
        text = _read(Path(source))
    return _parse(workspace, text)


def _parse(workspace: Workspace | None, text: str, key: KeyPath = ()) -> Document:
    """Parse YAML whose variables are those of the environment and the folders of a workspace.

    Args:
        workspace: The workspace; None: that of the environment.
        text: The YAML.
        key: The key whose value it is; empty for a file.
    """
    workspace = workspace or Workspace.from_environment()
    data = os.environ.get(workspaces.DATA_VARIABLE) or ""
    folders = {
        workspaces.VARIABLE: str(workspace.home),
        workspaces.DATA_VARIABLE: data if is_uri(data) else str(workspace.data_root()),
    }
    document = parse(text, {**os.environ, **folders}, key)
    for variables in document.references.values():
        for name in folders:  # they differ by place, and a run needs those that it had
            variables.pop(name, None)
    return document


def _read(path: Path) -> str:
    try:
        check_no_special_file(path)
        with path.open(encoding="utf-8-sig") as file:
            return file.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError("The file is not UTF-8.", f"{path}:{line}", "Save it as UTF-8.") from None
    except OSError as error:
        folder = path if path.is_dir() else path.parent
        names = sorted(str(file) for file in folder.glob("*.y*ml"))[:10]
        remedy = f"YAML files in {folder}: {', '.join(names) or 'none'}."
        message = f"The configuration cannot be read: {error.strerror}."
        raise NotFoundError(message, str(path), remedy) from None


def is_comparison(document: Document) -> bool:
    """Return whether a file, valid or not, is for ``regard compare``: it has a base, or models."""
    return isinstance(document.value, dict) and bool({"base", "models"} & set(document.value))


def absolute_paths(config: Config, folder: Callable[..., Path]) -> Config:
    """Return a configuration with absolute paths.

    Args:
        config: The configuration.
        folder: Returns the folder that the path under a key is relative to.
    """
    model = config.model
    tokenizer = config.tokenizer
    serving = config.serving
    if getattr(model, "pretrained", None) is not None:
        pretrained = model.pretrained.resolved(folder("model", "pretrained", "source"))
        model = model.model_copy(update={"pretrained": pretrained})
    if tokenizer is not None:
        model_folder = folder("tokenizer", "model")
        tokenizer = tokenizer.resolved(folder("tokenizer", "word_list"), model_folder)
    if serving.registry is not None:
        registry = absolute(folder("serving", "registry"), serving.registry)
        serving = serving.model_copy(update={"registry": registry})
    pipeline = config.pipeline
    if config.own_code:
        pipeline = pipeline.resolved(folder("pipeline", "folder"))
    resolved = {
        "pipeline": pipeline,
        "data": config.data.resolved(folder("data", "root")),
        "tokenizer": tokenizer,
        "model": model,
        "training": config.training.resolved(folder("training", "warm_start", "model")),
        "serving": serving,
        "metadata": config.metadata.resolved(folder),
    }
    return config.model_copy(update=resolved)
