"""Validation of the section ``tune``: values are tried on the whole configuration."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pydantic import JsonValue, ValidationError

from regard.components.settings.tune import Range
from regard.components.tuner.dimensions import dimensions, number_type
from regard.components.tuner.space import replace_values
from regard.core.suggestions import suggest
from regard.models.settings.base import KeyPath, Problem
from regard.models.settings.synonyms import SYNONYMS
from regard.models.settings.validation_errors import show, validation_problems
from regard.pipeline.config.config import Config
from regard.pipeline.config.training_checks import validate_metric

Validator = Callable[[Config], Iterator[Problem]]

_COMPARE = "use `regard compare` to compare values"
_FORBIDDEN = {
    _COMPARE: (
        "tokenizer",
        "search",
        "model.pretrained",
        "training.max_length",
        "training.warm_start",
        "training.ensemble",
    ),
    "limits the training; use tune.max_epochs and tune.max_minutes to limit a trial": (
        "training.max_epochs",
        "training.max_steps",
        "training.max_minutes",
    ),
    "changes what is measured, so scores of trials would not be comparable": (
        "training.early_stopping.metric",
        "training.validation_rows",
        "training.validation_tokenize",
    ),
    "does not affect the model": (
        "training.checkpoint_seconds",
        "training.deterministic",
        "training.devices",
    ),
}


def validate_tuning(config: Config, validate_rest: Validator) -> Iterator[Problem]:
    """Yield what cannot work in ``tune``.

    Args:
        config: A configuration without other problems.
        validate_rest: Validates all other sections.
    """
    tune = config.tune
    assert tune is not None
    for name, message in tune.algorithm_problems(config.training.max_epochs):
        yield Problem(("tune", name), message)
    if tune.objective is not None:
        yield from validate_metric(tune.objective, config, ("tune", "objective"))
    if config.training.run_fn is not None:
        message = "`regard tune` trains with Regard's run_fn; remove it, or the section tune"
        yield Problem(("training", "run_fn"), message)
    path: KeyPath = ("tune", "search_space")
    errors: list[Problem] = []
    for key in tune.search_space:
        errors += [Problem((*path, *place), text) for place, text in _range_problems(key, config)]
    if errors:
        yield from errors
        return
    for dimension in dimensions(tune, config):
        for value in dimension.test_values():
            if message := _rejection(config, dimension.key, value, validate_rest):
                message = f"the value {show(value)} is invalid: {message}"
                yield Problem((*path, dimension.key), message)
                break


def _range_problems(key: str, config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path and the message of what is wrong with a key, or with the form of its range."""
    space = config.tune.search_space if config.tune is not None else {}
    if message := _key_error(key, space, config):
        yield (key,), message
        return
    for name, message in _form_problems(space[key], number_type(key, config)):
        yield ((key, name) if name else (key,)), message


def _key_error(key: str, space: Iterable[str], config: Config) -> str:
    """Return why a key cannot be tuned, or the empty string."""
    for outer in space:
        if outer != key and _is_within(key, outer):
            return f"is part of {outer}, which is searched as a whole; remove one"
    for reason, names in _FORBIDDEN.items():
        if any(_is_within(key, name) or _is_within(name, key) for name in names):
            return f"cannot be tuned: {reason}"
    if not key.startswith(("model.", "training.")):
        return "cannot be tuned: use keys of model and training, such as training.learning_rate"
    section: Any = _to_json(config)
    parent = ""
    for name in key.split("."):
        if section is None:
            return f"the section {parent} is null; set it first, for example {parent}: {{}}"
        if isinstance(section, list):
            section = {str(i): item for i, item in enumerate(section)}
        if not isinstance(section, dict):
            return f"{parent} is {show(section)}, which has no keys"
        if name not in section:
            return f"unknown key: {parent} has no {name}. {suggest(name, section, SYNONYMS)}"
        section = section[name]
        parent = f"{parent}.{name}".lstrip(".")
    return ""


def _is_within(key: str, section: str) -> bool:
    """Whether a key is a section or one of its keys."""
    return f"{key}.".startswith(f"{section}.")


def _form_problems(range_: Range, number: type | None) -> Iterator[tuple[str, str]]:
    """Yield the key within a range, or the empty string, and what is wrong with it."""
    forms = [name for name in ("linear", "log", "choice") if getattr(range_, name) is not None]
    if len(forms) != 1:
        yield "", f"set one of linear, log and choice, not {' and '.join(forms) or 'none'}"
        return
    (form,) = forms
    step = range_.step
    values = list(getattr(range_, form))
    if form == "choice":
        if step is not None:
            yield "step", "applies to linear and log; remove it"
        if len(values) < 2 or any(value in values[:i] for i, value in enumerate(values)):
            yield form, "needs two or more different values"
    elif number is None:
        yield form, "this key is not a number; use choice"
    elif len(values) != 2 or values[0] >= values[1]:
        yield form, f"must be [LOW, HIGH] with LOW < HIGH, not {show(values)}"
    elif form == "log" and values[0] <= 0:
        yield form, f"LOW must be greater than 0, not {show(values[0])}"
    elif number is int and any(value % 1 for value in (*values, step or 0)):
        yield form, "this key takes integers only"
    elif form == "log" and step is not None and step <= 1:
        yield "step", f"is a ratio for log and must exceed 1, not {step:g}"
    elif step is not None and _next_value(form, values[0], step) > values[1]:
        yield "step", f"{step:g} leaves only one value, {values[0]:g}; use less"


def _next_value(form: str, value: float, step: float) -> float:
    """Return the value of a range that follows another one."""
    return value * step if form == "log" else value + step


def _rejection(config: Config, key: str, value: JsonValue, validate_rest: Validator) -> str:
    """Return why a key of the configuration cannot have a value, or the empty string."""
    try:
        changed = type(config).model_validate(replace_values(_to_json(config), {key: value}))
    except ValidationError as error:
        errors = validation_problems(error, type(config))
    else:
        errors = list(validate_rest(changed.model_copy(update={"tune": config.tune})))
        if not errors and _preprocessing(changed) != _preprocessing(config):
            return f"the data would have to be preprocessed again; {_COMPARE}"
    if not errors:
        return ""
    place = ".".join(map(str, errors[0].path))
    return errors[0].message if place == key else f"{place}: {errors[0].message}"


def _to_json(config: Config) -> dict[str, JsonValue]:
    return config.model_dump(mode="json", exclude={"tune"})


def _preprocessing(config: Config) -> object:
    """Return everything that the nodes before the Tuner depend on."""
    settings = config.description.preprocessing_settings(config.model, config.training, config.data)
    return settings, config.features
