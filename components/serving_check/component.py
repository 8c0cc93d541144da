"""The ServingCheck's place in the graph: what goes in and what comes out."""

from __future__ import annotations

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components.artifacts import Predictions
from components.files import source_digest
from components.serving_check.executor import ServingCheckExecutor

SOURCES = (
    "components/serving_check",
    "components/predictions.py",
    "components/predictor/rows.py",
    "serving",
)


class ServingCheckSpec(ComponentSpec):
    """A model, its predictions and what it was asked in, a blessing out."""

    PARAMETERS = {
        "tf_serving": ExecutionParameter(type=str),
        "rows": ExecutionParameter(type=int),
        "timeout_seconds": ExecutionParameter(type=int),
        "code": ExecutionParameter(type=str),
    }
    INPUTS = {
        "model": ChannelParameter(type=standard_artifacts.Model),
        "predictions": ChannelParameter(type=Predictions),
        "examples": ChannelParameter(type=standard_artifacts.Examples),
    }
    OUTPUTS = {"blessing": ChannelParameter(type=standard_artifacts.InfraBlessing)}


class ServingCheck(BaseComponent):
    """Checks that the exported model works alone, as in TensorFlow Serving.

    Args:
        model: the exported model of the Trainer.
        predictions: what the Predictor made with it.
        examples: those that the Predictor read, for what the predictions do not hold: images.
        tf_serving: a JSON list of the server versions whose operations it may use.
        rows: how many real rows are sent.
        timeout_seconds: how long the fresh process may take.
        code: a digest of the code, for the cache; by default that of this component.
    """

    SPEC_CLASS = ServingCheckSpec
    EXECUTOR_SPEC = ExecutorClassSpec(ServingCheckExecutor)

    def __init__(
        self,
        model: BaseChannel,
        predictions: BaseChannel,
        examples: BaseChannel,
        tf_serving: str,
        rows: int = 32,
        timeout_seconds: int = 900,
        code: str | None = None,
    ):
        super().__init__(
            ServingCheckSpec(
                model=model,
                predictions=predictions,
                examples=examples,
                tf_serving=tf_serving,
                rows=rows,
                timeout_seconds=timeout_seconds,
                code=source_digest(*SOURCES) if code is None else code,
                blessing=Channel(type=standard_artifacts.InfraBlessing),
            )
        )
