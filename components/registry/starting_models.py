"""Find the models that a training starts from, exports together with its own, or learns from.

On one machine they are found when the graph is built; on Kubeflow Pipelines by the nodes.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from regard.components.registry.publish import recorded_digest  # imports NumPy
from regard.components.registry.records import read_record, read_record_or_empty
from regard.components.registry.store import Registry
from regard.components.settings.augmentation import AugmentationConfig
from regard.core.errors import UserError
from regard.core.suggestions import suggest
from regard.models.settings.fine_tuning import PRODUCTION
from regard.models.settings.training import TrainingConfig
from regard.serving.contract import TRAINING, SavedModelError, read_contract

_NO_SETTINGS = "is an ensemble, or was exported without its settings"


def find_warm_start(
    training: TrainingConfig, registry: Registry, name: str, training_key: str = ""
) -> dict[str, str]:
    """Return the model of ``training.warm_start.model``; an empty mapping without one.

    A version that this training itself has produced is not its own start: the start is then the
    model that this version started from, so that a second run finds everything in the cache. The
    same applies to a start that an earlier version of this training is recorded with: a withdrawn
    model is recognized, and not trained a second time.

    Args:
        training: The section ``training``.
        registry: The registry of its models.
        name: The name of the pipeline's models.
        training_key: The key of this training, see ``cache_keys.training_key``.

    Returns:
        The name of the ``model``, its ``path``, and the ``digest`` of its content.

    Raises:
        UserError: The model does not exist.
    """
    if training.warm_start is None:
        return {}
    source = training.warm_start.model
    if source == PRODUCTION:
        newest = registry.latest(name)
        if newest is None:
            return {}
        source = f"{name}@{newest}"
    path = _resolve(registry, source, "training.warm_start.model")
    recorded = read_record(path).warm_start
    if training_key and recorded.training == training_key:
        return _on_this_host(registry, recorded.start)

    digest = recorded_digest(path)
    for version in reversed(registry.versions(name)):
        # After a rollback, production is the same model with another number.
        recorded = read_record_or_empty(registry.path(name, version)).warm_start
        start = recorded.start
        if recorded.training == training_key and start.get("digest") == digest:
            start = _on_this_host(registry, start)
            if (folder := start.get("path")) and Path(folder).is_dir():
                return start
    is_published = path.parent.parent == registry.root
    model = f"{path.parent.name}@{path.name}" if is_published else str(path)
    return {"model": model, "path": str(path), "digest": digest}


def _on_this_host(registry: Registry, start: dict[str, str]) -> dict[str, str]:
    """Return a start with the complete local copy of a version in object storage, if it exists."""
    if registry.mirror is None or not start:
        return start
    with contextlib.suppress(UserError):  # it was pruned, and is needed only to train again
        return {**start, "path": str(registry.resolve(start["model"]))}
    return start


def find_ensemble(training: TrainingConfig, registry: Registry, task: str) -> list[dict[str, str]]:
    """Return the models of ``training.ensemble``, each as ``find_warm_start`` does.

    Raises:
        UserError: A model does not exist, is for another task, or cannot be part of an ensemble.
    """
    members, key = [], "training.ensemble"
    for model in training.ensemble:
        member = _find(registry, model, key, task)
        members.append(member)
        if not Path(member["path"], TRAINING).is_file():
            raise UserError(f"{model} {_NO_SETTINGS}.", key)
    return members


def find_teachers(
    augmentation: AugmentationConfig | None,
    registry: Registry,
    task: str,
    row_tags: Sequence[str] = (),
) -> dict[str, dict[str, str]]:
    """Return the models of the section ``augmentation`` by their keys, as ``find_warm_start`` does.

    The models exchange texts, so their vocabularies may differ.

    Args:
        augmentation: The section.
        registry: The registry of the models.
        task: The task of the training.
        row_tags: The tags of the rows, of ``data.tags``.

    Raises:
        UserError: A model does not exist, is for another task, has not the tag of its key or those
            of the rows, or cannot sample.
    """
    if augmentation is None:
        return {}
    teachers: dict[str, dict[str, str]] = {}
    for name, model in augmentation.models().items():
        key = f"augmentation.{name}"
        teachers[name] = _find(registry, model, key, task)
        path, section = Path(teachers[name]["path"]), getattr(augmentation, name.split(".")[0])
        tags = read_contract(path).get("tags", [])
        _check_tags(model, tags, augmentation.tags()[name], row_tags, key)
        if getattr(section, "search", "") == "sampling" and not (path / TRAINING).is_file():
            raise UserError(f"{model} {_NO_SETTINGS}, so it cannot sample.", key)
    return teachers


def _check_tags(
    model: str, tags: Sequence[str], tag: str | None, row_tags: Sequence[str], key: str
) -> None:
    """Check that a model has the tag of its key, or else those of the rows.

    Args:
        model: The model.
        tags: Its tags.
        tag: The tag of its key ``<key>_tag``; None without one.
        row_tags: The tags of the rows.
        key: The key that names the model.

    Raises:
        UserError: It has not.
    """
    tag_key, listed = f"{key}_tag", f"its tags are {', '.join(tags)}"
    if tag is not None:
        if not tags:
            raise UserError(f"{model} has no tags.", tag_key, "Remove the key.")
        if tag not in tags:
            message = f"{model} has no tag {tag!r}: {listed}."
            raise UserError(message, tag_key, f"{suggest(tag, tags)}.")
    elif row_tags and not tags:
        message = f"{model} has no tags, but the rows have those of data.tags."
        raise UserError(message, key, "Use a model with these tags.")
    elif missing := [name for name in row_tags if name not in tags]:
        message = f"{model} has no tag {missing[0]!r} of data.tags: {listed}."
        raise UserError(message, key, f"Name one tag for all rows in {tag_key}.")
    elif tags and not row_tags:
        message = f"{model} needs a tag before each text: {listed}."
        raise UserError(message, key, f"Name the tag in {tag_key}.")


def _find(registry: Registry, model: str, key: str, task: str) -> dict[str, str]:
    path = _resolve(registry, model, key)
    try:
        other = read_contract(path)["task"]
    except SavedModelError as error:
        raise UserError(f"{model} cannot be used: {error}", key) from None
    if other != task:
        raise UserError(f"{model} is a model for {other}, not {task}.", key)
    return {"model": model, "path": str(path), "digest": recorded_digest(path)}


def _resolve(registry: Registry, model: str, where: str) -> Path:
    try:
        return registry.resolve(model)
    except UserError as error:
        raise error.with_texts(error.message, where, error.remedy) from None
