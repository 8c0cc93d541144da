"""The Reporter as a TFX component."""

from __future__ import annotations

from tfx.types.standard_artifacts import (
    InfraBlessing,
    ModelBlessing,
    ModelEvaluation,
    ModelRun,
    PushedModel,
)

from regard.components.common.artifacts import Findings, Predictions, Report
from regard.components.common.component import Component
from regard.components.reporter.executor import ReporterExecutor


class Reporter(Component):
    """Writes the report of a run, ``report.html``.

    Its inputs have the names in `run_facts.ARTIFACTS`.

    Args:
        about: JSON with ``name``, ``task``, ``config`` and the data's ``fingerprint``.
    """

    EXECUTOR = ReporterExecutor
    PARAMETERS = {"about": str}
    RUN_SECTIONS = ("data", "training")
    INPUTS = {
        "corpus": Findings,
        "checks": Findings,
        "model_run": ModelRun,
        "predictions": Predictions,
        "evaluation": ModelEvaluation,
        "blessing": ModelBlessing,
        "serving": InfraBlessing,
        "pushed": PushedModel,
    }
    OUTPUTS = {"report": Report}
