"""ExampleValidator's specification: TFX's, with the examples and a second output."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from regard.components.common.artifacts import Findings
from regard.components.example_validator.executor import Executor


class ExampleValidatorSpec(ComponentSpec):
    """Parameters, inputs and outputs of ExampleValidator."""

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
    """Compare the statistics with the schema, as TFX does, and check the rows themselves.

    Args:
        statistics: from StatisticsGen.
        schema: from SchemaGen.
        examples: the examples of the statistics.
        checks: JSON of ``data.checks``.
        features: JSON list of the features.
        production: JSON with the ``version`` in production, the path of its ``profile``, and the
            ``digest`` of that file, for the cache; or with ``latest`` as ``version`` and the folder
            of all ``versions``, of which the newest is used; empty if there is none.
        code: the digest of this component's code.

    Outputs: ``anomalies`` (as TFX's) and ``findings``: ``checks.json`` (count, share and first
    examples of every check, with file and line; lengths; drift), ``profile.json`` (words and
    lengths of the training split) and ``target_overlap.json`` (hashes of references of the other
    splits that the training split contains).
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
