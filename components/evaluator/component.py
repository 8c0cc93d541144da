"""The Evaluator as a TFX component."""

from __future__ import annotations

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from regard.components.common.artifacts import Findings, Predictions
from regard.components.common.code_digest import code_digest
from regard.components.evaluator.executor import EvaluatorExecutor


class EvaluatorSpec(ComponentSpec):
    """Inputs, outputs and parameters of `Evaluator`."""

    PARAMETERS = {
        "config": ExecutionParameter(type=str),
        "code": ExecutionParameter(type=str),
    }
    INPUTS = {
        "predictions": ChannelParameter(type=Predictions),
        "findings": ChannelParameter(type=Findings, optional=True),
    }
    OUTPUTS = {
        "evaluation": ChannelParameter(type=standard_artifacts.ModelEvaluation),
        "blessing": ChannelParameter(type=standard_artifacts.ModelBlessing),
    }


class Evaluator(BaseComponent):
    """Computes the metrics, and blesses the model or gives the reasons against it.

    Args:
        predictions: the predictions of the Predictor.
        findings: the findings of the ExampleValidator, with the words and the overlapping
            references of the training split; None: there are no slices by unknown words or
            overlap.
        config: the ``evaluation`` section as JSON.
        code: a digest of the code, for the cache; by default that of this component.
    """

    SPEC_CLASS = EvaluatorSpec
    EXECUTOR_SPEC = ExecutorClassSpec(EvaluatorExecutor)

    def __init__(
        self,
        predictions: BaseChannel,
        config: str,
        findings: BaseChannel | None = None,
        code: str | None = None,
    ):
        super().__init__(
            EvaluatorSpec(
                predictions=predictions,
                findings=findings,
                config=config,
                code=code_digest(__package__) if code is None else code,
                evaluation=Channel(type=standard_artifacts.ModelEvaluation),
                blessing=Channel(type=standard_artifacts.ModelBlessing),
            )
        )
