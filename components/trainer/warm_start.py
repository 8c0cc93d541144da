"""The first weights of a training, from a model that has been trained before."""

from __future__ import annotations

import itertools
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from components import events
from components.errors import UserError
from components.files import atomic_write
from components.registry.publishing import content_digest
from components.trainer.checkpoint import Checkpoints
from components.trainer.kept import Kept, read
from components.trainer.moments import Ways, moments_for
from components.trainer.optimizer import go_on, rate_after
from components.trainer.pieces import Passage, passage
from components.trainer.pulse import NODE
from models.tasks.base import Task

KEY = "training.warm_start"
# Settings of a model that its weights do not depend on in what they mean.
_FREE = re.compile(r"dropout|^pretrained\b|^max_length$|^least$")
# Settings that an older Regard did not know, and what its models are like.
_BEFORE = {"encoder.positions": "none"}
_MOST_TOLD = 5
# What reading files raises that are not what they should be.
_BROKEN = (
    *(OSError, EOFError, ValueError, KeyError, TypeError),
    *(zipfile.BadZipFile, tf.errors.OpError),
)


def begin(
    model: keras.Model,
    task: Task,
    config: Mapping[str, Any],
    tokenizers: Mapping[str, bytes],
    checkpoints: Checkpoints,
) -> dict[str, Any]:
    """Gives a new training the weights that ``training.warm_start`` names.

    A training that has begun has its own weights in its checkpoints, and is left alone.

    Args:
        model: compiled.
        task: the model's.
        config: ``task``, the YAML's sections ``model`` and ``training``, and ``start``: what the
            ``model`` to start from is called, its ``path`` and its ``digest``; empty where there
            is none.
        tokenizers: the serialized SentencePiece model of each text feature.
        checkpoints: of this training.

    Returns:
        ``model`` and ``digest`` of the start and what ``apply`` gives; nothing without a start.

    Raises:
        UserError: the model cannot be read, has changed, or is of another architecture.
    """
    start = config["start"]
    if not config["training"]["warm_start"]:
        return {}
    told = checkpoints.folder / "warm_start.json"
    if checkpoints.begun():
        return _told_before(told)
    report, text = {}, "there is no model to start from yet: the first weights are random"
    if start:
        old = _read(Path(start["path"]), start["model"], start["digest"])
        done = apply(model, task, config, tokenizers, old, start["model"])
        report = {"model": start["model"], "digest": start["digest"], **done}
        text = _told(report)
        if config["training"]["warm_start"]["optimizer"]:
            text += f"; the optimizer {_told_of_optimizer(report, model, old)}"
    atomic_write(told, json.dumps(report))
    events.emit("note", node=NODE, text=text)
    return report


def apply(
    model: keras.Model,
    task: Task,
    config: Mapping[str, Any],
    tokenizers: Mapping[str, bytes],
    old: Kept,
    name: str,
) -> dict[str, Any]:
    """Gives a compiled model the weights of an old one, and on request its optimizer's state.

    Where a vocabulary is another one, the rows of the pieces that both have are copied, in
    embeddings and in the softmax; a new piece gets the mean of the rows of those that the old
    tokenizer cuts it into; what that does not know keeps its random row.

    Args:
        model: as in ``begin``, and so ``task``, ``config`` and ``tokenizers``.
        old: the old model.
        name: what it is called in messages.

    Returns:
        Whether with the ``optimizer``; and by text feature, for each of the ``vocabularies`` that
        is another one, how many of its pieces are copied, composed and new.

    Raises:
        UserError: it is of another architecture, or its tokenizers cannot be read; or the state of
            its optimizer is wanted, and other weights learn, or the schedule has ended.
    """
    _check_task(config["task"], old, name)
    passages = _passages(tokenizers, old, name)
    ways = {
        id(weight): (axis, passages[side])
        for weight, axis, side in task.by_piece(model)
        if side in passages
    }
    _check_architecture(model, config["model"], old, name, ways)
    wanted = config["training"]["warm_start"]["optimizer"]
    moments = moments_for(model, old, name, ways) if wanted else []
    for weight, value in zip(model.weights, old.weights, strict=True):
        if id(weight) in ways:
            axis, way = ways[id(weight)]
            value = way.along(axis, value, np.asarray(weight))
        weight.assign(value)
    if moments:
        go_on(model.optimizer, old.updates, moments)
    return {
        "optimizer": bool(moments),
        "vocabularies": {side: way.report() for side, way in passages.items()},
    }


def _told_before(path: Path) -> dict[str, Any]:
    """What was told of a training when it began; it goes on also where that is lost."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(report, dict):
            return report
    except (OSError, ValueError):
        pass
    events.emit("note", node=NODE, text=f"what it has started from is no longer told in {path}")
    return {}


def _read(path: Path, name: str, digest: str) -> Kept:
    if not path.is_dir():
        raise UserError(
            f"{name} is gone: there is no folder {str(path)!r} any more",
            where=KEY,
            remedy="Bring it back, or name another model to start from.",
        )
    try:
        old = read(path)
    except _BROKEN as error:
        raise UserError(
            f"the weights of {name} cannot be read: {error}",
            where=KEY,
            remedy=f"Is {path} a whole model? Otherwise name another one to start from.",
        ) from error
    if old is None:
        raise UserError(
            f"{name} keeps nothing for a later training: an older Regard exported it, or "
            "something else",
            where=KEY,
            remedy="Train and push once with training.warm_start: null; what follows can start "
            "from that.",
        )
    if content_digest(path) != digest:  # also if it changed while it was read
        raise UserError(
            f"the files of {name} are no longer those that its digest was taken of",
            where=KEY,
            remedy="If the model was exported anew meanwhile, start the run again. A version of "
            "the registry never changes: name another one to start from.",
        )
    for weight, value in zip(old.names, old.weights, strict=True):
        if not np.isfinite(value).all():
            raise UserError(
                f"{weight} of {name} is not finite: its training has gone wrong",
                where=KEY,
                remedy="Name another model to start from.",
            )
    return old


def _passages(tokenizers: Mapping[str, bytes], old: Kept, name: str) -> dict[str, Passage]:
    """What the new vocabularies have of the old ones, of those that are others."""
    found = {}
    for side, new in tokenizers.items():
        try:
            if new != old.tokenizers[side]:
                found[side] = passage(old.tokenizers[side], new)
        except (KeyError, RuntimeError) as error:  # SentencePiece's own
            raise UserError(
                f"the tokenizer of {side} that {name} keeps is not there or cannot be read",
                where=KEY,
                remedy="Name another model to start from.",
            ) from error
    return found


def _check_task(task: str, old: Kept, name: str) -> None:
    if task != old.task:
        raise UserError(
            f"{name} is a model for {old.task}, and this one is for {task}",
            where=KEY,
            remedy=f"Name a model for {task} to start from.",
        )


def _check_architecture(
    model: keras.Model,
    settings: Mapping[str, Any],
    old: Kept,
    name: str,
    ways: Ways,
) -> None:
    found = [*_differing(settings, old.model)]
    if len(found) > _MOST_TOLD:
        found[_MOST_TOLD:] = [f"{len(found) - _MOST_TOLD} settings more"]
    found += itertools.islice(_misfits(model, old, ways), 1)
    if found:
        raise UserError(
            f"{name} is of another architecture: {'; '.join(found)}",
            where=KEY,
            remedy="Give the section model the settings that it has there, name another model to "
            "start from, or use null to train from random weights.",
        )


def _differing(here: Any, there: Any, key: str = "") -> Iterator[str]:
    """The settings that both have, or that say what is new, and that differ."""
    if _FREE.search(key):
        return
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for name in here:
            path = f"{key}.{name}".lstrip(".")
            if name in there or path in _BEFORE:
                yield from _differing(here[name], there.get(name, _BEFORE.get(path)), path)
    elif here != there:
        yield f"model.{key} is {_plain(here)}, and there {_plain(there)}"


def _plain(value: Any) -> str:
    """A setting in a message; of a section, which it is."""
    value = value.get("type", "set") if isinstance(value, Mapping) else value
    return value if isinstance(value, str) else json.dumps(value)


def _misfits(model: keras.Model, old: Kept, ways: Ways) -> Iterator[str]:
    """The weights that one of the two has not, or in another shape."""
    pairs = itertools.zip_longest(model.weights, old.names, old.weights)
    for weight, path, value in pairs:
        if weight is None:
            yield f"there is {path} {value.shape}, which this model has not"
        elif value is None:
            yield f"{weight.path} {tuple(weight.shape)} is not there"
        else:
            shape = list(weight.shape)
            if id(weight) in ways:
                axis, way = ways[id(weight)]
                shape[axis] += way.before - len(way.parts)
            if _without_counters(weight.path) != _without_counters(path):
                yield f"{weight.path} {tuple(weight.shape)} is {path} {value.shape} there"
            elif tuple(shape) != value.shape:
                yield f"{weight.path} is {tuple(shape)}, and there {value.shape}"


def _without_counters(path: str) -> str:
    """A weight's name; Keras counts the layers of a kind that a process makes."""
    return re.sub(r"_\d+(?=/|$)", "", path)


def _told(report: Mapping[str, Any]) -> str:
    parts = [f"starts from the weights of {report['model']}"]
    for side, found in report["vocabularies"].items():
        parts.append(
            f"of {found['pieces']:,} pieces of the {side} {found['copied']:,} "
            f"({found['share']:.1%}) copied, {found['composed']:,} composed of old ones, "
            f"{found['new']:,} new"
        )
    return "; ".join(parts)


def _told_of_optimizer(report: Mapping[str, Any], model: keras.Model, old: Kept) -> str:
    if report["optimizer"]:
        rate = rate_after(model.optimizer, old.updates)
        return f"goes on after {old.updates:,} steps, with a learning rate of {rate:.2g}"
    if old.moments:
        return "begins anew: the vocabulary has other pieces"
    return "begins anew: no state of it was kept"
