"""Validation of the section ``tune``: values are tried on the whole configuration."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError

from regard.components.common.formatting import format_count
from regard.components.settings.tune import DEFAULT_FACTOR, Range, TuneConfig
from regard.components.tuner.space import Dimension, replace_values
from regard.models.settings.base import Path, Problem
from regard.pipeline.config.annotations import models_in
from regard.pipeline.config.config import Config
from regard.pipeline.config.errors import problems, show, suggest
from regard.pipeline.config.training_checks import validate_metric

Validator = Callable[[Config], Iterator[Problem]]

_SECTIONS = ("model", "training")
_COMPARE = "use `regard compare` to compare values"
_LIMIT = "limits the training; use tune.max_epochs and tune.max_minutes to limit a trial"
_MEASURE = "changes what is measured, so scores of trials would not be comparable"
_NO_EFFECT = "does not affect the model"
_FORBIDDEN = {
    "tokenizer": _COMPARE,
    "search": _COMPARE,
    "model.pretrained": _COMPARE,
    "training.max_length": _COMPARE,
    "training.warm_start": _COMPARE,
    "training.max_epochs": _LIMIT,
    "training.max_steps": _LIMIT,
    "training.max_minutes": _LIMIT,
    "training.early_stopping.metric": _MEASURE,
    "training.validation_rows": _MEASURE,
    "training.validation_tokenize": _MEASURE,
    "training.checkpoint_seconds": _NO_EFFECT,
    "training.deterministic": _NO_EFFECT,
    "training.devices": _NO_EFFECT,
}


def validate_tuning(config: Config, validate_rest: Validator) -> Iterator[Problem]:
    """Yield what cannot work in ``tune``.

    Args:
        config: a configuration without other problems.
        validate_rest: validates all other sections.
    """
    tune = config.tune
    assert tune is not None
    yield from _validate_algorithm(tune, config)
    if tune.objective is not None:
        yield from validate_metric(tune.objective, config, ("tune", "objective"))
    ranges = [p for key in tune.search_space for p in _validate_range(key, tune, config)]
    yield from ranges
    if not ranges:
        yield from _validate_values(config, validate_rest)


def dimensions(config: Config) -> tuple[Dimension, ...]:
    """Return the dimensions of the search space of a valid configuration."""
    assert config.tune is not None
    ranges = config.tune.search_space.items()
    return tuple(_dimension(key, range_, config) for key, range_ in ranges)


def _validate_algorithm(tune: TuneConfig, config: Config) -> Iterator[Problem]:
    limit = config.training.max_epochs
    if tune.algorithm == "hyperband":
        if tune.max_trials is not None:
            message = (
                "hyperband derives it from max_epochs, factor and iterations; remove it, or use "
                "algorithm: bayesian or random"
            )
            yield Problem(("tune", "max_trials"), message)
        if tune.max_epochs is None and limit is None:
            message = "hyperband needs it because training.max_epochs is null; set it"
            yield Problem(("tune", "max_epochs"), message)
        epochs, factor = tune.max_epochs or limit, tune.factor or DEFAULT_FACTOR
        if epochs is not None and epochs < factor:
            message = f"{format_count(epochs, 'epoch')} cannot be divided by factor: {factor}"
            name = "max_epochs" if tune.factor is None else "factor"
            remedy = "use more epochs, a smaller factor, or algorithm: random"
            yield Problem(("tune", name), f"{message}; {remedy}")
    else:
        for name in ("factor", "iterations"):
            if getattr(tune, name) is not None:
                message = f"applies to hyperband, not to {tune.algorithm}; remove it"
                yield Problem(("tune", name), message)
    if tune.max_epochs is not None and limit is not None and tune.max_epochs > limit:
        message = f"{tune.max_epochs} exceeds training.max_epochs: {limit}; use less"
        yield Problem(("tune", "max_epochs"), message)


def _validate_range(key: str, tune: TuneConfig, config: Config) -> Iterator[Problem]:
    """Yield what is wrong with a key, or with the form of its range."""
    path: Path = ("tune", "search_space", key)
    message = _forbidden(key) or _unknown(key, config)
    if message:
        yield Problem(path, message)
        return
    outer = next((o for o in tune.search_space if o != key and _is_within(key, o)), None)
    if outer is not None:
        yield Problem(path, f"is part of {outer}, which is searched as a whole; remove one")
        return
    yield from _validate_form(key, tune.search_space[key], config)


def _forbidden(key: str) -> str:
    """Return why a key cannot be tuned, or the empty string."""
    for name, reason in _FORBIDDEN.items():
        if _is_within(key, name) or _is_within(name, key):
            return f"cannot be tuned: {reason}"
    if key.split(".")[0] not in _SECTIONS or "." not in key:
        return (
            f"cannot be tuned: use keys of {' and '.join(_SECTIONS)}, such as "
            "training.learning_rate"
        )
    return ""


def _is_within(key: str, section: str) -> bool:
    """Whether a key is a section or one of its keys."""
    return f"{key}.".startswith(f"{section}.")


def _unknown(key: str, config: Config) -> str:
    """Return why the configuration has no such key, or the empty string."""
    value: Any = _to_json(config)
    names = key.split(".")
    for depth, name in enumerate(names):
        parent = ".".join(names[:depth])
        if value is None:
            return f"the section {parent} is null; set it first, for example {parent}: {{}}"
        if not isinstance(value, dict):
            return f"{parent} is {show(value)}, which has no keys"
        if name not in value:
            return f"unknown key: {parent} has no {name}{suggest(name, value)}"
        value = value[name]
    return ""


def _validate_form(key: str, range_: Range, config: Config) -> Iterator[Problem]:
    path: Path = ("tune", "search_space", key)
    forms = [name for name in ("linear", "log", "choice") if getattr(range_, name) is not None]
    if len(forms) != 1:
        yield Problem(
            path, f"set one of linear, log and choice, not {' and '.join(forms) or 'none'}"
        )
        return
    (form,) = forms
    values = list(getattr(range_, form))
    if form == "choice":
        if range_.step is not None:
            yield Problem((*path, "step"), "applies to linear and log; remove it")
        if len(values) < 2 or any(value in values[:i] for i, value in enumerate(values)):
            yield Problem((*path, form), "needs two or more different values")
        return
    number = _number_type(key, config)
    if number is None:
        yield Problem((*path, form), "this key is not a number; use choice")
    elif len(values) != 2 or values[0] >= values[1]:
        yield Problem((*path, form), f"must be [LOW, HIGH] with LOW < HIGH, not {show(values)}")
    elif form == "log" and values[0] <= 0:
        yield Problem((*path, form), f"LOW must be greater than 0, not {show(values[0])}")
    else:
        numbers = [*values, *([] if range_.step is None else [range_.step])]
        if number is int and any(value != int(value) for value in numbers):
            yield Problem((*path, form), f"this key takes integers only, not {show(numbers)}")
        if range_.step is not None:
            yield from _validate_step(path, form, values, range_.step)


def _validate_step(path: Path, form: str, values: list[float], step: float) -> Iterator[Problem]:
    low, high = values
    if form == "log" and step <= 1:
        yield Problem((*path, "step"), f"is a ratio for log and must exceed 1, not {step:g}")
    elif (low * step if form == "log" else low + step) > high:
        yield Problem((*path, "step"), f"{step:g} leaves only one value, {low:g}; use less")


def _validate_values(config: Config, validate_rest: Validator) -> Iterator[Problem]:
    """Validate the configuration with each value."""
    for dimension in dimensions(config):
        for value in dimension.test_values():
            message = _rejection(config, {dimension.key: value}, validate_rest)
            if message:
                path: Path = ("tune", "search_space", dimension.key)
                yield Problem(path, f"the value {show(value)} is invalid: {message}")
                break


def _rejection(config: Config, values: Mapping[str, JsonValue], validate_rest: Validator) -> str:
    """Return why the configuration cannot have these values, or the empty string."""
    try:
        changed = _with_values(config, values)
    except ValidationError as error:
        invalid = problems(error, type(config), replace_values(_to_json(config), values))
    else:
        invalid = list(validate_rest(changed))
        if not invalid and _preprocessing(changed) != _preprocessing(config):
            return f"the data would have to be preprocessed again; {_COMPARE}"
    if not invalid:
        return ""
    first, key = invalid[0], ".".join(map(str, invalid[0].path))
    return first.message if key in values and len(values) == 1 else f"{key}: {first.message}"


def _with_values(config: Config, values: Mapping[str, JsonValue]) -> Config:
    return type(config).model_validate(replace_values(_to_json(config), values))


def _to_json(config: Config) -> dict[str, JsonValue]:
    return config.model_dump(mode="json", exclude={"tune"})


def _preprocessing(config: Config) -> object:
    """Return everything that the nodes before the Tuner depend on."""
    return config.description.preprocessing_settings(config.model), config.features


def _dimension(key: str, range_: Range, config: Config) -> Dimension:
    if range_.choice is not None:
        return Dimension(key, choices=list(range_.choice))
    low, high = range_.log or range_.linear or ()
    integer = _number_type(key, config) is int
    return Dimension(key, low, high, range_.step, log=range_.log is not None, integer=integer)


def _number_type(key: str, config: Config) -> type | None:
    """Return the type of number that a key takes, float or int; None if it takes none."""
    owner: Any = config
    *sections, name = key.split(".")
    for section in sections:
        owner = getattr(owner, section)
    if not isinstance(owner, BaseModel) or models_in(type(owner).model_fields[name].annotation):
        return None
    types = set(_scalar_types(type(owner).model_fields[name].annotation))
    return float if float in types else int if int in types else None


def _scalar_types(annotation: Any) -> Iterator[Any]:
    """Yield the types inside an annotation."""
    arguments = typing.get_args(annotation)
    if not arguments:
        yield annotation
    for argument in arguments:
        yield from _scalar_types(argument)
