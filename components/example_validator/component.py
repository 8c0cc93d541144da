"""ExampleValidator's specification: TFX's own, with the examples and a second output."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components.artifacts import Findings
from components.example_validator.executor import Executor


class ExampleValidatorSpec(ComponentSpec):
    """What ExampleValidator takes and gives."""

    PARAMETERS = {
        "checks": ExecutionParameter(type=str),
        "features": ExecutionParameter(type=str),
        "production": ExecutionParameter(type=str),
        "code": ExecutionParameter(type=str),
    }
    INPUTS = {
        "statistics": ChannelParameter(type=standard_artifacts.ExampleStatistics),
        "schema": ChannelParameter(type=standard_artifacts.Schema),
        "examples": ChannelParameter(type=standard_artifacts.Examples),
    }
    OUTPUTS = {
        "anomalies": ChannelParameter(type=standard_artifacts.ExampleAnomalies),
        "findings": ChannelParameter(type=Findings),
    }


class ExampleValidator(base_beam_component.BaseBeamComponent):
    """Compares the statistics with the schema as TFX does, and reads the rows themselves.

    Args:
        statistics: of StatisticsGen.
        schema: of SchemaGen.
        examples: the examples that the statistics are of.
        checks: JSON of ``data.checks``: each check's limit and action; null leaves one out.
        features: JSON list of the task's features, each as JSON.
        production: JSON with the ``version`` in production, the path of its ``profile``, and that
            file's ``digest``, for the cache; or with ``latest`` as ``version`` and the folder of
            all ``versions``: the newest is looked up when the node runs; empty where there is none.
        code: the digest of this component's code.

    Outputs: ``anomalies`` (as TFX's) and ``findings``: ``checks.json`` (count, share and first
    examples of every check, with file and line; lengths; drift), ``profile.json`` (words and
    lengths of the training split) and ``seen.json`` (references of the others that it has too).
    """

    SPEC_CLASS = ExampleValidatorSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self,
        statistics: types.BaseChannel,
        schema: types.BaseChannel,
        examples: types.BaseChannel,
        checks: str,
        features: str,
        production: str,
        code: str,
    ):
        super().__init__(
            spec=ExampleValidatorSpec(
                statistics=statistics,
                schema=schema,
                examples=examples,
                checks=checks,
                features=features,
                production=production,
                code=code,
                anomalies=types.Channel(type=standard_artifacts.ExampleAnomalies),
                findings=types.Channel(type=Findings),
            )
        )
