"""The ServingCheck as a TFX component."""

from __future__ import annotations

from tfx.types.standard_artifacts import Examples, InfraBlessing, Model

from regard.components.common.artifacts import Predictions
from regard.components.common.component import Component
from regard.components.serving_check.executor import ServingCheckExecutor


class ServingCheck(Component):
    """Checks that the exported model works alone, as in TensorFlow Serving.

    Args:
        model: the exported model of the Trainer.
        predictions: the Predictor's predictions of the model.
        examples: the examples of the predictions, which contain the images.
        tf_serving_versions: a JSON list of versions of TensorFlow Serving whose operations the
            model may use.
        rows: the number of real rows to check.
    """

    EXECUTOR = ServingCheckExecutor
    PARAMETERS = {"tf_serving_versions": str, "rows": int}
    INPUTS = {"model": Model, "predictions": Predictions, "examples": Examples}
    OUTPUTS = {"blessing": InfraBlessing}
