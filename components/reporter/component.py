"""The Reporter's place in the graph: what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components import parameters
from components.artifacts import Findings, Predictions, Report
from components.files import source_digest
from components.reporter.executor import ReporterExecutor

SOURCES = (
    "components/reporter",
    "components/corpus_gen/images.py",
    "components/corpus_gen/problems.py",
    "components/evaluator/answers.py",
    "components/evaluator/blessing.py",
    "components/parameters.py",
    "components/pictures.py",
    "components/predictions.py",
    "components/provenance.py",
    "components/words.py",
    "models/metrics",
    "models/unspaced.py",
    "serving/web/page",
)


class ReporterSpec(ComponentSpec):
    """All that a run has made in, one page out."""

    PARAMETERS = {
        "about": ExecutionParameter(type=str),
        "code": ExecutionParameter(type=str),
        **parameters.properties("data", "training"),
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
    """Makes the page about a run, ``report.html``.

    Args:
        about: JSON of what the run is: ``name``, ``task``, ``config`` and the data's
            ``fingerprint``.
        code: a digest of the code, for the cache; by default that of this component.
        run_parameters: the parameters of a run, by name; the page shows their values.
        artifacts: the channels, by the names in ``ARTIFACTS`` of ``components.reporter.facts``.
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
                code=source_digest(*SOURCES) if code is None else code,
                report=Channel(type=Report),
                **artifacts,
                **(run_parameters or {}),
            )
        )
