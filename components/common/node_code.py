"""Digests of the code of nodes that also depend on the task, or on other packages."""

from regard.components.common.code_digest import code_digest
from regard.components.settings.evaluation import EvaluationConfig
from regard.core.plugins import plugin_modules
from regard.models import tasks


def preprocess_code(task: str) -> str:
    """Return a digest of the code that preprocesses for a task."""
    return code_digest("regard.components.preprocess", *tasks.preprocessing_modules(task))


def evaluator_code(evaluation: EvaluationConfig) -> str:
    """Return a digest of the code that evaluates, and of the metrics of other packages."""
    return code_digest("regard.components.evaluator", *plugin_modules(evaluation.to_json()))
