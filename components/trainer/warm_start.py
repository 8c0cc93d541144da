"""Warm start: initial weights from a model that was trained and exported before."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
import pydantic

from regard.components.settings.trainer import NODE, TrainerConfig
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.optimizer_state import (
    check_optimizer_state,
    learning_rate_after,
    restore_optimizer_state,
    unwrap,
)
from regard.components.trainer.vocabulary_mapping import VocabularyMapping, map_vocabulary
from regard.components.trainer.warm_start_checkpoint import WarmStartCheckpoint
from regard.core import events
from regard.core.errors import UserError
from regard.core.files import read_json_object, write_json
from regard.models.settings.base import Section
from regard.models.tasks.network import Network

KEY = "training.warm_start"
# Settings of a model that may differ: its weights mean the same.
_IRRELEVANT = re.compile(r"dropout|^pretrained\b|^max_length$|^min_points$")
_MAX_DIFFERENCES = 5
_OTHER_MODEL = "Check that the model is complete, or name another one."

# By the id of a weight with a row per token: the axis of the rows, and their mapping.
RowMappings = Mapping[int, tuple[int, VocabularyMapping]]


def initialize_weights(
    model: keras.Model,
    network: Network,
    config: TrainerConfig,
    start: WarmStartCheckpoint | None,
    tokenizers: Mapping[str, bytes],
    checkpoints: Checkpoints,
) -> dict[str, Any]:
    """Load the weights that ``training.warm_start`` names into a new training's model.

    A training with a checkpoint keeps its own weights.

    Args:
        model: the compiled model.
        network: what the task trains.
        config: the settings of the training.
        start: the model to start from; None for random weights.
        tokenizers: the serialized SentencePiece model of each text feature.
        checkpoints: the files of this training.

    Returns:
        ``model`` and ``digest`` of the start and what ``load_weights`` returns; empty without one.

    Raises:
        UserError: the model has another architecture.
    """
    if not config.training.warm_start:
        return {}
    path = checkpoints.folder / "warm_start.json"
    if checkpoints.exists():
        return read_json_object(path)
    report: dict[str, Any] = {}
    text = "there is no model to start from yet: the initial weights are random"
    if start:
        details = load_weights(model, network, config, tokenizers, start)
        report = {"model": start.name, "digest": start.digest, **details}
        text = _describe(report, model, start, _wants_optimizer(config))
    write_json(path, report)
    events.emit("note", node=NODE, text=text)
    return report


def load_weights(
    model: keras.Model,
    network: Network,
    config: TrainerConfig,
    tokenizers: Mapping[str, bytes],
    old: WarmStartCheckpoint,
) -> dict[str, Any]:
    """Load the weights of an old model, and its optimizer state on request.

    If a vocabulary differs, tokens in both keep their rows in embeddings and softmax; a new token
    gets the mean of the rows of the tokens that the old tokenizer splits it into, or a random row.
    The optimizer state is not taken over then.

    Args:
        model: the compiled model.
        network: what the task trains.
        config: the settings of the training.
        tokenizers: the serialized SentencePiece model of each text feature.
        old: the old model.

    Returns:
        ``optimizer``, whether its state is taken over; and ``vocabularies``, a
        ``VocabularyMapping.report`` for each text feature whose vocabulary differs.

    Raises:
        UserError: the architecture differs, a tokenizer cannot be read, or the optimizer state
            cannot be continued.
    """
    if config.task != old.task:
        raise start_error(
            f"{old.name} is a model for {old.task}, but this pipeline is for {config.task}.",
            f"Name a model for {config.task} to start from.",
        )
    mappings = _map_vocabularies(tokenizers, old)
    row_mappings = {
        id(weight): (axis, mappings[feature])
        for weight, axis, feature in network.vocab_weights(model)
        if feature in mappings
    }
    _check_architecture(model, config, old, row_mappings)
    with_optimizer = _wants_optimizer(config) and bool(old.adam_moments) and not mappings
    if with_optimizer:
        check_optimizer_state(model.optimizer, old.updates, old.adam_moments, old.name)
    for weight, value in zip(model.weights, old.weights, strict=True):
        if id(weight) in row_mappings:
            axis, mapping = row_mappings[id(weight)]
            value = mapping.map_rows(value, np.asarray(weight), axis)
        weight.assign(value)
    if adapters := unwrap(model.optimizer).adapters:
        adapters.start()
    if with_optimizer:
        restore_optimizer_state(model.optimizer, old.updates, old.adam_moments)
    return {
        "optimizer": with_optimizer,
        "vocabularies": {feature: mapping.report() for feature, mapping in mappings.items()},
    }


def start_error(message: str, remedy: str = _OTHER_MODEL) -> UserError:
    """Return the error of a model that a training cannot start from."""
    return UserError(message, where=KEY, remedy=remedy)


def _wants_optimizer(config: TrainerConfig) -> bool:
    start: Any = config.training.warm_start
    return bool(start and start.optimizer)


def _map_vocabularies(
    tokenizers: Mapping[str, bytes], old: WarmStartCheckpoint
) -> dict[str, VocabularyMapping]:
    """The mappings of the text features whose tokenizers differ."""
    mappings = {}
    for feature, tokenizer in tokenizers.items():
        try:
            if tokenizer != old.tokenizers[feature]:
                mappings[feature] = map_vocabulary(old.tokenizers[feature], tokenizer)
        except (KeyError, RuntimeError) as error:  # RuntimeError is SentencePiece's
            message = f"The {feature} tokenizer of {old.name} is missing or cannot be read."
            raise start_error(message) from error
    return mappings


def _check_architecture(
    model: keras.Model, config: TrainerConfig, old: WarmStartCheckpoint, row_mappings: RowMappings
) -> None:
    old_settings = _with_defaults(type(config.model), old.model)
    settings = _setting_differences(config.model_settings, old_settings)
    differences = [*itertools.islice(settings, _MAX_DIFFERENCES)]
    differences += itertools.islice(_weight_differences(model, old, row_mappings), 1)
    if differences:
        raise start_error(
            f"{old.name} has another architecture: {'; '.join(differences)}",
            "Give the section model the settings of that model, name another model to "
            "start from, or set training.warm_start to null to train from random weights.",
        )


def _with_defaults(section: type[Section], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the section ``model`` of an older version of Regard with the keys that came later."""
    try:
        return section.model_validate(dict(settings)).model_dump(mode="json")
    except pydantic.ValidationError:  # it has keys that no longer exist
        return settings


def _setting_differences(new: Any, old: Any, key: str = "") -> Iterator[str]:
    """Yield the settings of both sides that differ."""
    if _IRRELEVANT.search(key):
        return
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        new, old = (dict(enumerate(items)) for items in (new, old))
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        for name in (name for name in new if name in old):
            yield from _setting_differences(new[name], old[name], f"{key}.{name}".lstrip("."))
    elif new != old:
        yield f"model.{key} is {_format_setting(new)} here and {_format_setting(old)} there"


def _format_setting(value: Any) -> str:
    """A setting as text; a section as its type."""
    value = value.get("type", "set") if isinstance(value, Mapping) else value
    return value if isinstance(value, str) else json.dumps(value)


def _weight_differences(
    model: keras.Model, old: WarmStartCheckpoint, row_mappings: RowMappings
) -> Iterator[str]:
    """Yield the weights that one model lacks, or that differ in name or shape."""
    here = []
    for weight in model.weights:
        shape = list(weight.shape)
        if id(weight) in row_mappings:
            axis, mapping = row_mappings[id(weight)]
            shape[axis] += mapping.old_size - len(mapping.sources)
        here.append(f"{_strip_counters(weight.path)} {tuple(shape)}")
    pairs = zip(old.weight_names, old.weights, strict=True)
    there = [f"{_strip_counters(path)} {value.shape}" for path, value in pairs]
    for ours, theirs in itertools.zip_longest(here, there, fillvalue="missing"):
        if ours != theirs:
            yield f"the weight {ours} here is {theirs} there"


def _strip_counters(path: str) -> str:
    """A weight's name without Keras's counters of the layers in a process."""
    return re.sub(r"_\d+(?=/|$)", "", path)


def _describe(
    report: Mapping[str, Any], model: keras.Model, old: WarmStartCheckpoint, with_optimizer: bool
) -> str:
    parts = [f"starts from the weights of {old.name}"]
    for feature, counts in report["vocabularies"].items():
        parts.append(
            f"of {counts['tokens']:,} {feature} tokens {counts['copied']:,} "
            f"({counts['share']:.1%}) copied, {counts['composed']:,} composed of old ones, "
            f"{counts['new']:,} new"
        )
    if report["optimizer"]:
        rate = learning_rate_after(model.optimizer, old.updates)
        parts.append(
            f"the optimizer continues after {old.updates:,} steps at a learning rate of {rate:.2g}"
        )
    elif with_optimizer:
        reason = "the vocabulary differs" if old.adam_moments else "there is no stored state"
        parts.append(f"the optimizer starts afresh: {reason}")
    return "; ".join(parts)
