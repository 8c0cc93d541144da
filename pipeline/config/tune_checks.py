"""Searches that cannot work, found before any trial: each value is tried on the whole file."""

from __future__ import annotations

import random
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from components.tuner.space import Dimension, with_values
from components.words import counted
from models.settings.base import Path, Problem
from pipeline.config.annotations import models_in
from pipeline.config.errors import problems, show, suggest
from pipeline.config.sections import Config
from pipeline.config.training_checks import unmeasured
from pipeline.config.tune import FACTOR, Range, Tune

Others = Callable[[Config], Iterator[Problem]]

_TUNED = ("model", "training")
_COMPARE = "write the few that matter into a file for `regard compare`"
_LIMIT = "ends a training; tune.epochs and tune.minutes say how long a trial lasts"
_MEASURE = "decides what trials are compared by, so their scores would not be comparable"
_REFUSED = {
    "tokenizer": "each value needs another tokenizer and all data preprocessed anew, and gives "
    f"losses of other pieces; {_COMPARE}",
    "search": f"is for answers and no part of the training; {_COMPARE}",
    "training.max_epochs": _LIMIT,
    "training.max_steps": _LIMIT,
    "training.max_minutes": _LIMIT,
    "training.max_length": "rows that are longer are measured in no trial, so scores would not be "
    f"comparable; {_COMPARE}",
    "training.early_stop.metric": _MEASURE,
    "training.validation_rows": _MEASURE,
    "training.validation_tokenize": _MEASURE,
    "training.checkpoint_seconds": "changes nothing about the model",
    "training.deterministic": "changes nothing about the model",
    "training.devices": "changes nothing about the model; a trial trains on one",
    "training.warm_start": f"a search starts from one model; {_COMPARE}",
    "model.pretrained": f"files are looked up before the search; {_COMPARE}",
}
_COMBINATIONS = 48  # drawn at random beside each value alone


def impossible_tuning(config: Config, others: Others) -> Iterator[Problem]:
    """Yields what of ``tune`` cannot work.

    Args:
        config: has nothing else that cannot work.
        others: what checks all but this section.
    """
    tune = config.tune
    assert tune is not None
    yield from _algorithm(tune, config)
    if tune.objective is not None:
        yield from unmeasured(tune.objective, config, ("tune", "objective"))
    found = [problem for key in tune.over for problem in _range(key, tune, config)]
    yield from found
    if not found:
        yield from _values(config, others)


def dimensions(config: Config) -> tuple[Dimension, ...]:
    """What the section ``tune`` searches; it has been checked."""
    assert config.tune is not None
    made = []
    for key, given in config.tune.over.items():
        dimension = _dimension(key, given, config)
        if dimension.choices:
            read = [_at(_plain(_with(config, {key: value})), key) for value in dimension.choices]
            dimension = Dimension(key, choices=dimension.choices, meanings=read)
        made.append(dimension)
    return tuple(made)


def _algorithm(tune: Tune, config: Config) -> Iterator[Problem]:
    most = config.training.max_epochs
    if tune.algorithm == "hyperband":
        if tune.trials is not None:
            message = "hyperband's follow from epochs, factor and iterations; leave it out, or use "
            yield Problem(("tune", "trials"), f"{message}algorithm: bayesian or random")
        if tune.epochs is None and most is None:
            message = "hyperband divides epochs, and training.max_epochs is null; give them here"
            yield Problem(("tune", "epochs"), message)
        epochs, factor = tune.epochs or most, tune.factor or FACTOR
        if epochs is not None and epochs < factor:
            message = f"trials of {counted(epochs, 'epoch')} cannot be divided by factor: {factor}"
            name = "epochs" if tune.factor is None else "factor"
            remedy = "use more epochs, a smaller factor, or algorithm: random"
            yield Problem(("tune", name), f"{message}; {remedy}")
    else:
        for name in ("factor", "iterations"):
            if getattr(tune, name) is not None:
                message = f"is for hyperband, not for {tune.algorithm}; leave it out"
                yield Problem(("tune", name), message)
    if tune.epochs is not None and most is not None and tune.epochs > most:
        message = f"{tune.epochs} is more than a run has, training.max_epochs: {most}; use less"
        yield Problem(("tune", "epochs"), message)


def _range(key: str, tune: Tune, config: Config) -> Iterator[Problem]:
    """What is wrong with a key or with its range, whatever the values are."""
    path: Path = ("tune", "over", key)
    reason = _refused(key)
    if reason:
        yield Problem(path, f"cannot be tuned: {reason}")
        return
    unknown = _unknown(key, config)
    if unknown:
        yield Problem(path, unknown)
        return
    inside = next((other for other in tune.over if other != key and _within(key, other)), None)
    if inside is not None:
        yield Problem(path, f"is a part of {inside}, which is tuned as a whole; leave one out")
        return
    yield from _form(key, tune.over[key], config)


def _refused(key: str) -> str:
    """Why a key cannot be tuned, or the empty string."""
    for name, reason in _REFUSED.items():
        if _within(key, name) or _within(name, key):
            return reason
    if key.split(".")[0] not in _TUNED or "." not in key:
        return f"only keys of {' and '.join(_TUNED)} can, such as training.learning_rate"
    return ""


def _within(key: str, section: str) -> bool:
    """Whether a key is a section, or one of its keys."""
    return f"{key}.".startswith(f"{section}.")


def _unknown(key: str, config: Config) -> str:
    """Why there is no such key in the configuration as it is, or the empty string."""
    value: Any = _plain(config)
    names = key.split(".")
    for depth, name in enumerate(names):
        here = ".".join(names[:depth])
        if value is None:
            return f"there is no section {here}, which is null; give it first, such as {here}: {{}}"
        if not isinstance(value, dict):
            return f"{here} is {show(value)}, and has no keys"
        if name not in value:
            return f"unknown key: {here} has no {name}{suggest(name, value)}"
        value = value[name]
    return ""


def _form(key: str, given: Range, config: Config) -> Iterator[Problem]:
    path: Path = ("tune", "over", key)
    forms = [name for name in ("linear", "log", "choice") if getattr(given, name) is not None]
    if len(forms) != 1:
        told = " and ".join(forms) or "none"
        yield Problem(path, f"one of linear, log and choice is expected, {told} was given")
        return
    (form,) = forms
    values = list(getattr(given, form))
    if form == "choice":
        if given.step is not None:
            yield Problem((*path, "step"), "is for linear and log; leave it out")
        if len(values) < 2 or any(value in values[:i] for i, value in enumerate(values)):
            yield Problem((*path, form), "two or more different values are expected")
        return
    kind = _number(key, config)
    if kind is None:
        yield Problem((*path, form), "the key takes no numbers; use choice")
    elif len(values) != 2 or values[0] >= values[1]:
        message = f"[LOW, HIGH] is expected, the lower one first; {show(values)} was given"
        yield Problem((*path, form), message)
    elif form == "log" and values[0] <= 0:
        yield Problem((*path, form), f"must begin above 0; {show(values[0])} was given")
    else:
        numbers = [*values, *([] if given.step is None else [given.step])]
        if kind is int and any(number != int(number) for number in numbers):
            message = f"the key takes whole numbers only; {show(numbers)} was given"
            yield Problem((*path, form), message)
        if given.step is not None:
            yield from _step(path, form, values, given.step)


def _step(path: Path, form: str, values: list[float], step: float) -> Iterator[Problem]:
    low, high = values
    if form == "log" and step <= 1:
        yield Problem((*path, "step"), f"is a factor here, and must be more than 1; {step:g} given")
    elif (low * step if form == "log" else low + step) > high:
        yield Problem((*path, "step"), f"{step:g} leaves one value only, {low:g}; use less")


def _values(config: Config, others: Others) -> Iterator[Problem]:
    """Each value alone, then some at random together: as `regard validate` would check them."""
    made = [_dimension(key, given, config) for key, given in config.tune.over.items()]  # type: ignore[union-attr]
    found = False
    for dimension in made:
        path: Path = ("tune", "over", dimension.key)
        for value in dimension.probes():
            message = _refusal(config, {dimension.key: value}, others)
            if message:
                found = True
                yield Problem(path, f"{show(value)} is not possible: {message}")
                break
    drawn = random.Random(0)
    for _ in range(0 if found or len(made) < 2 else _COMBINATIONS):
        values = {one.key: drawn.choice(one.probes()) for one in made}
        message = _refusal(config, values, others)
        if message:
            told = ", ".join(f"{key}: {show(value)}" for key, value in values.items())
            yield Problem(("tune", "over"), f"not possible together: {told}: {message}")
            return


def _refusal(config: Config, values: Mapping[str, Any], others: Others) -> str:
    """Why the configuration cannot have these values, or the empty string."""
    try:
        changed = _with(config, values)
    except ValidationError as error:
        found = problems(error, type(config), with_values(_plain(config), values))
    else:
        found = list(others(changed))
        if not found and _preprocessed(changed) != _preprocessed(config):
            return f"the data would have to be preprocessed anew; {_COMPARE}"
    if not found:
        return ""
    key = ".".join(map(str, found[0].path))
    return found[0].message if key in values and len(values) == 1 else f"{key}: {found[0].message}"


def _with(config: Config, values: Mapping[str, Any]) -> Config:
    return type(config).model_validate(with_values(_plain(config), values))


def _plain(config: Config) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude={"tune"})


def _preprocessed(config: Config) -> Any:
    """What the nodes before the Tuner depend on."""
    described = config.description
    return described.preprocessing(_plain(config)["model"]), config.features


def _dimension(key: str, given: Range, config: Config) -> Dimension:
    if given.choice is not None:
        return Dimension(key, choices=list(given.choice))
    low, high = given.log or given.linear or ()
    whole = _number(key, config) is int
    return Dimension(key, low, high, given.step, log=given.log is not None, whole=whole)


def _at(value: Any, key: str) -> Any:
    for name in key.split("."):
        value = value[name]
    return value


def _number(key: str, config: Config) -> type | None:
    """The numbers that a key takes: float or int; None: none."""
    owner: Any = config
    *sections, name = key.split(".")
    for section in sections:
        owner = getattr(owner, section)
    if not isinstance(owner, BaseModel) or models_in(type(owner).model_fields[name].annotation):
        return None
    kinds = set(_atoms(type(owner).model_fields[name].annotation))
    return float if float in kinds else int if int in kinds else None


def _atoms(annotation: Any) -> Iterator[Any]:
    """The plain types inside of an annotation."""
    parts = typing.get_args(annotation)
    if not parts:
        yield annotation
    for part in parts:
        yield from _atoms(part)
