"""What `context.show` of TFX's InteractiveContext displays of Regard's Evaluator."""

from __future__ import annotations

from html import escape
from pathlib import Path

from IPython.display import HTML, display
from tfx.orchestration.experimental.interactive import standard_visualizations, visualizations
from tfx.types.artifact import Artifact
from tfx.types.standard_artifacts import ModelBlessing

from regard.components.evaluator.results import Decision, Evaluation


class EvaluationVisualization(standard_visualizations.ModelEvaluationVisualization):
    """Display the metrics of Regard's Evaluator; those of TFX's Evaluator as before."""

    def display(self, artifact: Artifact) -> None:
        """Display a table of the candidate, the model in production and the baselines."""
        evaluation = Evaluation.read(Path(artifact.uri))
        if evaluation is None:
            super().display(artifact)
            return
        models = {"this model": evaluation.metrics}
        if evaluation.production is not None:
            models["in production"] = evaluation.production.metrics
        models |= {baseline.label: baseline.metrics for baseline in evaluation.baselines}
        rows = [["metric", *models]]
        for name, metric in evaluation.metrics.items():
            values = [metrics.get(name) for metrics in models.values()]
            rows.append([metric.label, *(f"{one.value:.4g}" if one else "" for one in values)])
        lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        table = "".join(f"<tr>{line}</tr>" for line in lines)
        display(HTML(f"<table>{table}</table><p>{evaluation.rows} rows</p>"))


class BlessingVisualization(visualizations.ArtifactVisualization):
    """Display the decision of Regard's Evaluator; TFX has no display of a blessing."""

    ARTIFACT_TYPE = ModelBlessing

    def display(self, artifact: Artifact) -> None:
        """Display the decision in a sentence."""
        if decision := Decision.read(Path(artifact.uri)):
            display(HTML(f"<p>{escape(decision.sentence)}</p>"))


def register_visualizations() -> None:
    """Let ``context.show`` display the evaluation and the blessing of Regard's Evaluator.

    Call it after the InteractiveContext is created, which registers the displays of TFX.
    """
    for kind in (EvaluationVisualization, BlessingVisualization):
        visualizations.get_registry().register(kind)
