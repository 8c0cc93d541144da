"""The Predictor as a TFX component."""

from __future__ import annotations

from tfx.dsl.components.base.base_beam_component import BaseBeamComponent
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from regard.components.common.artifacts import Predictions
from regard.components.common.code_digest import code_digest
from regard.components.predictor.executor import PredictorExecutor


class PredictorSpec(ComponentSpec):
    """Inputs, outputs and parameters of `Predictor`."""

    PARAMETERS = {
        "features": ExecutionParameter(type=str),
        "production": ExecutionParameter(type=str),
        "production_version": ExecutionParameter(type=str),
        "batch_size": ExecutionParameter(type=int),
        "reference_attention": ExecutionParameter(type=str),
        "reference_scores": ExecutionParameter(type=int),
        "code": ExecutionParameter(type=str),
    }
    INPUTS = {
        "examples": ChannelParameter(type=standard_artifacts.Examples),
        "model": ChannelParameter(type=standard_artifacts.Model),
    }
    OUTPUTS = {"predictions": ChannelParameter(type=Predictions)}


class Predictor(BaseBeamComponent):
    """Decodes the test split once with each model, and keeps all outputs.

    A Beam pipeline runs for each model, whose workers load the SavedModel and share the batches.

    Args:
        examples: the examples of CorpusGen, of which the split ``test`` is decoded.
        model: the exported model of the Trainer.
        features: a JSON list of the task's features, in the form of ``Feature.to_json``.
        production: the folder of the version in production; empty if there is none.
        production_version: its number. With ``latest``, ``production`` is the folder of all
            versions, and the newest is chosen when the node runs.
        batch_size: the number of rows in a batch.
        reference_attention: JSON with the ``layer`` and the ``head`` whose attention for the
            reference of each row is kept; null selects the model's default. Empty: none is kept.
        reference_scores: whether to keep the log-probability of each row's reference.
        code: a digest of the code, for the cache; by default that of this component.
    """

    SPEC_CLASS = PredictorSpec
    EXECUTOR_SPEC = BeamExecutorSpec(PredictorExecutor)

    def __init__(
        self,
        examples: BaseChannel,
        model: BaseChannel,
        features: str,
        production: str = "",
        production_version: str = "",
        batch_size: int = 64,
        reference_attention: str = "",
        reference_scores: bool = False,
        code: str | None = None,
    ):
        super().__init__(
            PredictorSpec(
                examples=examples,
                model=model,
                features=features,
                production=production,
                production_version=production_version,
                batch_size=batch_size,
                reference_attention=reference_attention,
                reference_scores=int(reference_scores),
                code=code_digest(__package__) if code is None else code,
                predictions=Channel(type=Predictions),
            )
        )
