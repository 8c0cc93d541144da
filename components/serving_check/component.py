"""The ServingCheck as a TFX component."""

from __future__ import annotations

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from regard.components.common.artifacts import Predictions
from regard.components.common.code_digest import code_digest
from regard.components.serving_check.executor import ServingCheckExecutor


class ServingCheckSpec(ComponentSpec):
    """Inputs, outputs and parameters of `ServingCheck`."""

    PARAMETERS = {
        "tf_serving_versions": ExecutionParameter(type=str),
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
        predictions: the Predictor's predictions of the model.
        examples: the examples of the predictions, which contain the images.
        tf_serving_versions: a JSON list of versions of TensorFlow Serving whose operations the
            model may use.
        rows: the number of real rows to check.
        timeout_seconds: the time limit of the fresh process.
        code: a digest of the code, for the cache; by default that of this component.
    """

    SPEC_CLASS = ServingCheckSpec
    EXECUTOR_SPEC = ExecutorClassSpec(ServingCheckExecutor)

    def __init__(
        self,
        model: BaseChannel,
        predictions: BaseChannel,
        examples: BaseChannel,
        tf_serving_versions: str,
        rows: int = 32,
        timeout_seconds: int = 900,
        code: str | None = None,
    ):
        super().__init__(
            ServingCheckSpec(
                model=model,
                predictions=predictions,
                examples=examples,
                tf_serving_versions=tf_serving_versions,
                rows=rows,
                timeout_seconds=timeout_seconds,
                code=code_digest(__package__) if code is None else code,
                blessing=Channel(type=standard_artifacts.InfraBlessing),
            )
        )
