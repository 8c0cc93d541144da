"""What is wrong with the parameters of a pipeline, and with those that a run is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.kubeflow.lint.fault import Fault

_NUMBER = (int, float)
TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "NUMBER_INTEGER": ("a whole number", _NUMBER),
    "NUMBER_DOUBLE": ("a number", _NUMBER),
    "STRING": ("a text", (str,)),
    "BOOLEAN": ("true or false", (bool,)),
    "LIST": ("a list", (list,)),
    "STRUCT": ("a mapping", (dict,)),
}
_AT = ("root", "inputDefinitions", "parameters")


def fits(value: Any, kind: str) -> bool:
    """Whether a value is of a parameter's type."""
    _, types = TYPES[kind]
    if isinstance(value, bool) and bool not in types:
        return False
    if kind == "NUMBER_INTEGER" and isinstance(value, float) and not value.is_integer():
        return False
    return isinstance(value, types)


def parameter_faults(spec: dict[str, Any]) -> Iterator[Fault]:
    """Yields what the API server would say about the parameters of a pipeline."""
    for name, parameter in _parameters(spec).items():
        kind = parameter.get("parameterType", "")
        default = parameter.get("defaultValue")
        if kind not in TYPES:
            message = f"the parameter {name} has no type that a pipeline's parameter can have"
            remedy = f"Give it a parameterType: {', '.join(TYPES)}."
            yield Fault("parameter-type", (*_AT, name), message, remedy)
        elif default is not None and not fits(default, kind):
            message = f"the default of {name} is {default!r}, which is not {TYPES[kind][0]}"
            remedy = "Give it a default of its type."
            yield Fault("parameter-default", (*_AT, name, "defaultValue"), message, remedy)


def given_faults(spec: dict[str, Any], given: Mapping[str, Any]) -> Iterator[Fault]:
    """Yields what the API server would say about the parameters that a run is given."""
    known = _parameters(spec)
    for name, parameter in known.items():
        kind = parameter.get("parameterType", "")
        if name in given and kind in TYPES and not fits(given[name], kind):
            message = f"the parameter {name} is {TYPES[kind][0]}; {given[name]!r} was given"
            yield Fault("parameter-value", (*_AT, name), message, "Give another value.")
        elif name not in given and not ("defaultValue" in parameter or parameter.get("isOptional")):
            message = f"the parameter {name} has no default and was not given"
            yield Fault("parameter-required", (*_AT, name), message, f"Add --param {name}=VALUE.")
    for name in given:
        if name not in known:
            message = f"the pipeline has no parameter {name}"
            remedy = f"Its parameters: {', '.join(known)}." if known else "It has none."
            yield Fault("parameter-unknown", _AT, message, remedy)


def _parameters(spec: dict[str, Any]) -> dict[str, Any]:
    return spec.get("root", {}).get("inputDefinitions", {}).get("parameters", {})
