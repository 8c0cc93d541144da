"""The Evaluator's executor: evaluates the candidate, and marks the blessing."""

import math
from pathlib import Path

from tfx.components.evaluator import constants
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact

from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.evaluator.evaluation import evaluate
from regard.components.evaluator.results import Decision, Evaluation
from regard.components.settings.evaluation import EvaluationConfig
from regard.core import events
from regard.core.files import atomic_write

NODE = "Evaluator"


class EvaluatorExecutor(BaseExecutor):
    """Writes the evaluation, and the blessing in TFX's form with the reasons."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Score the models and decide; a model that fails the gate is not an error."""
        source = Path(artifact_utils.get_single_uri(input_dict["predictions"]))
        artifact = artifact_utils.get_single_instance(output_dict["evaluation"])
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        config = EvaluationConfig.model_validate_json(exec_properties["config"])
        findings = input_dict.get("findings")
        evaluation, decision = evaluate(
            source,
            Path(artifact.uri),
            config,
            Path(artifact_utils.get_single_uri(findings)) if findings else None,
        )
        decision.write(Path(blessing.uri))
        _mark(blessing, decision)
        _set_properties(artifact, evaluation)
        events.emit("result", node=NODE, text=decision.sentence)


def _set_properties(artifact: Artifact, evaluation: Evaluation) -> None:
    """Set the candidate's metrics as properties, by which ML Metadata can be queried."""
    artifact.set_int_custom_property("rows", evaluation.rows)
    for name, metric in evaluation.metrics.items():
        if math.isfinite(metric.value):  # databases do not store NaN
            artifact.set_float_custom_property(f"metric_{name}", metric.value)
        artifact.set_string_custom_property(f"signature_{name}", metric.signature)


def _mark(blessing: Artifact, decision: Decision) -> None:
    """Mark the blessing by TFX's convention, which TFX's own Pusher understands too."""
    name, value = constants.NOT_BLESSED_FILE_NAME, constants.NOT_BLESSED_VALUE
    if decision.blessed:
        name, value = constants.BLESSED_FILE_NAME, constants.BLESSED_VALUE
    atomic_write(Path(blessing.uri) / name, "")
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY, value)
