"""The Pusher as a TFX component."""

from __future__ import annotations

from tfx.types.standard_artifacts import (
    InfraBlessing,
    Model,
    ModelBlessing,
    ModelEvaluation,
    PushedModel,
)

from regard.components.common.artifacts import Findings
from regard.components.common.component import Component
from regard.components.pusher.executor import PusherExecutor


class Pusher(Component):
    """Copies a blessed and checked model to the next version of the registry.

    Args:
        model: the exported model of the Trainer.
        model_blessing: the decision of the Evaluator.
        infra_blessing: the result of the ServingCheck.
        registry: the registry's folder.
        name: the model's name.
        record: JSON fields for the version's record, such as the configuration.
        evaluation: the metrics of the Evaluator, for the record.
        findings: the findings of the ExampleValidator; the profile of the training split is
            stored with the version.
        corpus: the findings of CorpusGen; fingerprint, rows and spans are recorded.
    """

    EXECUTOR = PusherExecutor
    PARAMETERS = {"registry": str, "name": str, "record": str}
    RUN_SECTIONS = ("data", "training")
    INPUTS = {
        "model": Model,
        "model_blessing": ModelBlessing,
        "infra_blessing": InfraBlessing,
        "evaluation": ModelEvaluation,
        "findings": Findings,
        "corpus": Findings,
    }
    OUTPUTS = {"pushed_model": PushedModel}
