"""The Predictor's place in the graph: what goes in and what comes out."""

from __future__ import annotations

from tfx.dsl.components.base.base_beam_component import BaseBeamComponent
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components.artifacts import Predictions
from components.files import source_digest
from components.predictor.executor import PredictorExecutor

SOURCES = (
    "components/predictor",
    "components/predictions.py",
    "components/registry/rival.py",
    "components/registry/records.py",
    "components/registry/versions.py",
    "models/metrics/aligning.py",
    "models/metrics/likelihood.py",
    "models/tasks/features.py",
    "serving/saved_model.py",
)


class PredictorSpec(ComponentSpec):
    """Examples and a model in, predictions out."""

    PARAMETERS = {
        "features": ExecutionParameter(type=str),
        "production": ExecutionParameter(type=str),
        "production_version": ExecutionParameter(type=str),
        "batch_size": ExecutionParameter(type=int),
        "aligned": ExecutionParameter(type=str),
        "likelihood": ExecutionParameter(type=int),
        "code": ExecutionParameter(type=str),
    }
    INPUTS = {
        "examples": ChannelParameter(type=standard_artifacts.Examples),
        "model": ChannelParameter(type=standard_artifacts.Model),
    }
    OUTPUTS = {"predictions": ChannelParameter(type=Predictions)}


class Predictor(BaseBeamComponent):
    """Decodes the test split once with each model, and keeps all that they answered.

    A Beam pipeline for each: the workers load the SavedModel and share out the batches.

    Args:
        examples: the examples of CorpusGen; the split ``test`` is decoded.
        model: the exported model of the Trainer.
        features: a JSON list of the task's features, each as ``Feature.to_json`` gives it.
        production: the folder of the version in production; empty where there is none.
        production_version: its number, for people; or ``latest``, and ``production`` is the folder
            of all versions: the newest is looked up when the node runs.
        batch_size: rows decoded together.
        aligned: JSON of the ``layer`` and the ``head`` that show where the model looks for the
            reference of each row, null for what it shows by default; empty: it is not asked.
        likelihood: whether it also tells how probable the reference of each row is.
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
        aligned: str = "",
        likelihood: bool = False,
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
                aligned=aligned,
                likelihood=int(likelihood),
                code=source_digest(*SOURCES) if code is None else code,
                predictions=Channel(type=Predictions),
            )
        )
