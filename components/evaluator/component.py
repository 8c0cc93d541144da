"""The Evaluator's place in the graph: what goes in and what comes out."""

from __future__ import annotations

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components.artifacts import Predictions
from components.evaluator.executor import EvaluatorExecutor
from components.files import source_digest

SOURCES = (
    "components/evaluator",
    "components/predictions.py",
    "components/scripts.py",
    "models/metrics",
)


class EvaluatorSpec(ComponentSpec):
    """Predictions in, evaluation and blessing out."""

    PARAMETERS = {
        "config": ExecutionParameter(type=str),
        "code": ExecutionParameter(type=str),
    }
    INPUTS = {"predictions": ChannelParameter(type=Predictions)}
    OUTPUTS = {
        "evaluation": ChannelParameter(type=standard_artifacts.ModelEvaluation),
        "blessing": ChannelParameter(type=standard_artifacts.ModelBlessing),
    }


class Evaluator(BaseComponent):
    """Computes the metrics and blesses the model, or says why not.

    Args:
        predictions: what the Predictor made.
        config: the ``evaluation`` section of the configuration as JSON.
        code: a digest of the code, for the cache; by default that of this component.
    """

    SPEC_CLASS = EvaluatorSpec
    EXECUTOR_SPEC = ExecutorClassSpec(EvaluatorExecutor)

    def __init__(self, predictions: BaseChannel, config: str, code: str | None = None):
        super().__init__(
            EvaluatorSpec(
                predictions=predictions,
                config=config,
                code=source_digest(*SOURCES) if code is None else code,
                evaluation=Channel(type=standard_artifacts.ModelEvaluation),
                blessing=Channel(type=standard_artifacts.ModelBlessing),
            )
        )
