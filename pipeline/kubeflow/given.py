"""The parameters that a run is given: read by their types, and held against the configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from components.errors import UserError
from components.parameters import PARAMETERS, applied
from pipeline.kubeflow.lint.document import mapping_at
from pipeline.kubeflow.lint.parameters import given_faults

_OPTION = "--param"


def given_parameters(pairs: Sequence[str], spec: Any) -> dict[str, Any]:
    """The values of ``NAME=VALUE``, each read as its parameter's type wants it.

    Args:
        pairs: as they were given.
        spec: the pipeline.

    Raises:
        UserError: one has no ``=``, or is given twice.
    """
    known = mapping_at(spec, "root", "inputDefinitions", "parameters")
    given: dict[str, Any] = {}
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark or not name:
            raise UserError(f"{pair!r} is no parameter", _OPTION, "Write --param NAME=VALUE.")
        if name in given:
            raise UserError(f"{name} is given twice", _OPTION, "Give it once.")
        kind = mapping_at(known, name).get("parameterType", "STRING")
        given[name] = value if kind == "STRING" else _read(value)
    return given


def checked_parameters(pairs: Sequence[str], spec: dict[str, Any]) -> dict[str, Any]:
    """The values of ``NAME=VALUE``, which a run of the pipeline can be given.

    Args:
        pairs: as they were given.
        spec: a pipeline without faults.

    Raises:
        UserError: a parameter is not known, is not of its type, or cannot work with the
            configuration that the pipeline was compiled from.
    """
    given = given_parameters(pairs, spec)
    faults = list(given_faults(spec, given))
    if faults:
        message = "\n".join(fault.message for fault in faults)
        raise UserError(message, _OPTION, faults[0].remedy)
    if problems := _problems(configuration_in(spec), given):
        raise UserError("\n".join(problems), _OPTION, "Give other values.")
    return given


def configuration_in(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration that one of our pipelines was compiled from; empty for any other."""
    task = mapping_at(spec, "root", "dag", "tasks", "Pusher", "inputs", "parameters", "record")
    try:
        record = json.loads(mapping_at(task, "runtimeValue").get("constant", ""))
    except (ValueError, TypeError):
        return {}
    return mapping_at(record, "config")


def _problems(config: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """What cannot be in a configuration with the values of a run."""
    from pipeline.config.loading import checked

    paths = {name: PARAMETERS[name].path for name in given if name in PARAMETERS}
    if not config or not paths:
        return []
    for name in paths:
        try:
            PARAMETERS[name].setting(given[name])
        except UserError as error:
            return [f"{name}: {error.message}"]
    _, found = checked(applied(config, given))
    return [
        f"{name}: {problem.message}"
        for problem in found
        for name, path in paths.items()
        if problem.path == path
    ]


def _read(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:  # the check says what it should have been
        return value
