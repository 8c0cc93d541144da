"""The Evaluator's place in the graph: what goes in and what comes out."""

from __future__ import annotations

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components.artifacts import Findings, Predictions
from components.evaluator.executor import EvaluatorExecutor
from components.files import source_digest

SOURCES = (
    "components/evaluator",
    "components/normal_form.py",
    "components/profiles.py",
    "components/predictions.py",
    "components/scripts.py",
    "components/seen.py",
    "components/slice_names.py",
    "components/words.py",
    "models/metrics",
    "models/unspaced.py",
)


class EvaluatorSpec(ComponentSpec):
    """Predictions and what is known of the data in, evaluation and blessing out."""

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
    """Computes the metrics and blesses the model, or says why not.

    Args:
        predictions: what the Predictor made.
        findings: what the ExampleValidator noticed, with the words of the train split and the
            references that it has too; None: rows are not told apart by what is new to the model.
        config: the ``evaluation`` section of the configuration as JSON.
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
                code=source_digest(*SOURCES) if code is None else code,
                evaluation=Channel(type=standard_artifacts.ModelEvaluation),
                blessing=Channel(type=standard_artifacts.ModelBlessing),
            )
        )
