"""The Evaluator as a TFX component."""

from __future__ import annotations

from tfx.types.standard_artifacts import ModelBlessing, ModelEvaluation

from regard.components.common.artifacts import Findings, Predictions
from regard.components.common.component import Component
from regard.components.evaluator.executor import EvaluatorExecutor


class Evaluator(Component):
    """Computes the metrics, and blesses the model or gives the reasons against it.

    Args:
        predictions: the predictions of the Predictor.
        findings: the findings of the ExampleValidator, with the words and the overlapping
            references of the training split; None: there are no slices by unknown words or
            overlap.
        config: the ``evaluation`` section as JSON.
    """

    EXECUTOR = EvaluatorExecutor
    PARAMETERS = {"config": str}
    INPUTS = {"predictions": Predictions}
    OPTIONAL_INPUTS = {"findings": Findings}
    OUTPUTS = {"evaluation": ModelEvaluation, "blessing": ModelBlessing}
