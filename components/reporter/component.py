"""The Reporter: the component that writes the report of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from regard.components.common import runtime_parameters
from regard.components.common.artifacts import Findings, Predictions, Report
from regard.components.common.code_digest import code_digest
from regard.components.reporter.executor import ReporterExecutor


class ReporterSpec(ComponentSpec):
    """The artifacts of a run, and the report."""

    PARAMETERS = {
        "about": ExecutionParameter(type=str),
        "code": ExecutionParameter(type=str),
        **runtime_parameters.properties("data", "training"),
    }
    INPUTS = {
        "corpus": ChannelParameter(type=Findings),
        "checks": ChannelParameter(type=Findings),
        "model_run": ChannelParameter(type=standard_artifacts.ModelRun),
        "predictions": ChannelParameter(type=Predictions),
        "evaluation": ChannelParameter(type=standard_artifacts.ModelEvaluation),
        "blessing": ChannelParameter(type=standard_artifacts.ModelBlessing),
        "serving": ChannelParameter(type=standard_artifacts.InfraBlessing),
        "pushed": ChannelParameter(type=standard_artifacts.PushedModel),
    }
    OUTPUTS = {"report": ChannelParameter(type=Report)}


class Reporter(BaseComponent):
    """Writes the report of a run, ``report.html``.

    Args:
        about: JSON with ``name``, ``task``, ``config`` and the data's ``fingerprint``.
        code: a digest of the code, for the cache; by default that of this component.
        run_parameters: the run-time parameters by name, which the configuration shows.
        artifacts: the channels, by the names in `run_facts.ARTIFACTS`.
    """

    SPEC_CLASS = ReporterSpec
    EXECUTOR_SPEC = ExecutorClassSpec(ReporterExecutor)

    def __init__(
        self,
        about: str,
        code: str | None = None,
        run_parameters: Mapping[str, Any] | None = None,
        **artifacts: BaseChannel,
    ):
        super().__init__(
            ReporterSpec(
                about=about,
                code=code_digest(__package__) if code is None else code,
                report=Channel(type=Report),
                **artifacts,
                **(run_parameters or {}),
            )
        )
