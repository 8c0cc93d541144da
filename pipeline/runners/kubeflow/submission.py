"""Prepare a pipeline and the parameters of a run for submission to a cluster."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from regard.components.common.runtime_parameters import PARAMETERS, Value, apply_parameters
from regard.core.errors import UserError
from regard.pipeline.config.load import validate_values
from regard.pipeline.runners.kubeflow import settings
from regard.pipeline.runners.kubeflow.compiler import compile_pipeline
from regard.pipeline.runners.kubeflow.pipeline_file import (
    CompiledPipeline,
    read_pipeline,
    validate_pipeline,
)
from regard.pipeline.scheduling.cron import split_cron
from regard.pipeline.scheduling.triggers import cron_trigger

_OPTION = "--param"
_CRON_HELP = "Write minute, hour, day, month and weekday, such as '0 3 * * 1-5', or @daily."


@dataclasses.dataclass(frozen=True)
class Submission:
    """A validated pipeline with the parameters of a run.

    Attributes:
        pipeline: the compiled pipeline.
        parameters: the values that differ from the defaults.
        warnings: what the nodes may not find.
    """

    pipeline: CompiledPipeline
    parameters: dict[str, Value] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def prepare_submission(path: Path, parameters: Sequence[str] = ()) -> Submission:
    """Compile a configuration, or read a compiled pipeline, and validate it.

    Args:
        path: a configuration or a compiled pipeline.
        parameters: ``NAME=VALUE`` for each run parameter.

    Raises:
        UserError: the file or a parameter is invalid, or the extra ``kubeflow`` is not installed.
    """
    settings.require_kubeflow_extra()
    pipeline, warnings = read_pipeline(path), []
    if pipeline is None:
        config = settings.load_for_cluster(path)
        warnings = list(settings.cluster_warnings(config))
        pipeline = compile_pipeline(config)
    validate_pipeline(pipeline, str(path))
    values = parse_parameters(parameters, pipeline)
    _check_with_config(values, pipeline)
    return Submission(pipeline, values, tuple(warnings))


def parse_parameters(pairs: Sequence[str], pipeline: CompiledPipeline) -> dict[str, Value]:
    """Convert ``NAME=VALUE`` arguments to the types of the pipeline's parameters.

    Raises:
        UserError: an argument is malformed, repeated, unknown or of the wrong type.
    """
    values: dict[str, Value] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise UserError(f"Invalid parameter {pair!r}.", _OPTION, "Write --param NAME=VALUE.")
        if name in values:
            raise UserError(f"The parameter {name} is repeated.", _OPTION, "Give it once.")
        definition = pipeline.parameters.get(name)
        if definition is None:
            known = ", ".join(pipeline.parameters) or "none"
            message = f"The pipeline has no parameter {name!r}."
            raise UserError(message, _OPTION, f"Available parameters: {known}.")
        try:
            values[name] = value if definition["parameterType"] == "STRING" else int(value)
        except ValueError:
            message = f"The parameter {name} is an integer, not {value!r}."
            raise UserError(message, _OPTION, "Give an integer.") from None
    return values


def kubeflow_cron(expression: str) -> str:
    """Convert a cron expression to the six fields of Kubeflow, the seconds first.

    Raises:
        UserError: the expression is invalid.
    """
    *fields, weekdays = split_cron(expression) or [""]
    try:
        cron_trigger(expression, ZoneInfo("UTC"))
        days = ["0" if day == "7" else day for day in weekdays.split(",")]
        if any("7" in day or day.lower().endswith("-sun") for day in days):
            raise ValueError(f"{expression!r}: Kubeflow numbers Sunday 0, not 7; list the days")
    except ValueError as error:
        raise UserError(f"{error}.", "--cron", _CRON_HELP) from None
    return " ".join(["0", *fields, ",".join(days)])


def _check_with_config(values: Mapping[str, Value], pipeline: CompiledPipeline) -> None:
    """Validate parameters together with the configuration that the pipeline was compiled from.

    Raises:
        UserError: the configuration would be invalid with these values.
    """
    config = compiled_config(pipeline)
    if not config or not values:
        return
    try:
        changed = apply_parameters(config, values)
    except UserError as error:
        raise UserError(f"{error.where}: {error.message}", _OPTION, "Give another value.") from None
    names: dict[tuple[str | int, ...], str] = {PARAMETERS[name].path: name for name in values}
    _, problems = validate_values(changed)
    messages = [f"{names[p.path]}: {p.message}" for p in problems if p.path in names]
    if messages:
        raise UserError("\n".join(messages), _OPTION, "Give other values.")


def compiled_config(pipeline: CompiledPipeline) -> dict[str, Any]:
    """Return the configuration that a pipeline was compiled from; empty if it has none."""
    try:
        task = pipeline.spec["root"]["dag"]["tasks"]["Pusher"]
        record = json.loads(task["inputs"]["parameters"]["record"]["runtimeValue"]["constant"])
        config = record["config"]
    except (KeyError, ValueError, TypeError):
        return {}
    return config if isinstance(config, dict) else {}
