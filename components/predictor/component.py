"""The Predictor as a TFX component."""

from __future__ import annotations

from tfx.types.standard_artifacts import Examples, Model

from regard.components.common.artifacts import Predictions
from regard.components.common.component import Component
from regard.components.predictor.executor import PredictorExecutor


class Predictor(Component):
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
        reference_scores: 1 to keep the log-probability of each row's reference, otherwise 0.
    """

    EXECUTOR = PredictorExecutor
    PARAMETERS = {
        "features": str,
        "production": str,
        "production_version": str,
        "batch_size": int,
        "reference_attention": str,
        "reference_scores": int,
    }
    INPUTS = {"examples": Examples, "model": Model}
    OUTPUTS = {"predictions": Predictions}
