"""The Pusher as a TFX component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from regard.components.common import runtime_parameters
from regard.components.common.artifacts import Findings
from regard.components.common.code_digest import code_digest
from regard.components.pusher.executor import PusherExecutor


class PusherSpec(ComponentSpec):
    """Inputs, outputs and parameters of `Pusher`."""

    PARAMETERS = {
        "registry": ExecutionParameter(type=str),
        "name": ExecutionParameter(type=str),
        "record": ExecutionParameter(type=str),
        "code": ExecutionParameter(type=str),
        **runtime_parameters.properties("data", "training"),
    }
    INPUTS = {
        "model": ChannelParameter(type=standard_artifacts.Model),
        "model_blessing": ChannelParameter(type=standard_artifacts.ModelBlessing),
        "infra_blessing": ChannelParameter(type=standard_artifacts.InfraBlessing),
        "evaluation": ChannelParameter(type=standard_artifacts.ModelEvaluation),
        "findings": ChannelParameter(type=Findings),
        "corpus": ChannelParameter(type=Findings),
    }
    OUTPUTS = {"pushed_model": ChannelParameter(type=standard_artifacts.PushedModel)}


class Pusher(BaseComponent):
    """Copies a blessed and checked model to the next version of the registry.

    Args:
        model: the exported model of the Trainer.
        model_blessing: the decision of the Evaluator.
        infra_blessing: the result of the ServingCheck.
        registry: the registry's folder.
        name: the model's name.
        record: JSON fields for the version's record, such as the configuration.
        evaluation: the metrics of the Evaluator, for the record.
        findings: the findings of the ExampleValidator; the profile of the training split is
            stored with the version.
        corpus: the findings of CorpusGen; fingerprint, rows and spans are recorded.
        code: a digest of the code, for the cache; by default that of this component.
        run_parameters: the parameters of a run, by name; their values are recorded.
    """

    SPEC_CLASS = PusherSpec
    EXECUTOR_SPEC = ExecutorClassSpec(PusherExecutor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        infra_blessing: BaseChannel,
        registry: str,
        name: str,
        record: str,
        evaluation: BaseChannel,
        findings: BaseChannel,
        corpus: BaseChannel,
        code: str | None = None,
        run_parameters: Mapping[str, Any] | None = None,
    ):
        super().__init__(
            PusherSpec(
                model=model,
                model_blessing=model_blessing,
                infra_blessing=infra_blessing,
                evaluation=evaluation,
                findings=findings,
                corpus=corpus,
                registry=registry,
                name=name,
                record=record,
                code=code_digest(__package__) if code is None else code,
                pushed_model=Channel(type=standard_artifacts.PushedModel),
                **(run_parameters or {}),
            )
        )
