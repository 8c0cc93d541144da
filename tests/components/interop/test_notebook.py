"""What `context.show` displays of the Evaluator's outputs."""

import pytest
from tfx.orchestration.experimental.interactive import standard_visualizations, visualizations
from tfx.types.standard_artifacts import ModelBlessing, ModelEvaluation

from regard.components.evaluator import results
from regard.components.interop import notebook


@pytest.fixture
def displayed(monkeypatch):
    """Register the displays, and return a list of the HTML that they display."""
    monkeypatch.setattr(visualizations.get_registry(), "visualizations", {})
    standard_visualizations.register_standard_visualizations()
    notebook.register_visualizations()
    pages = []
    monkeypatch.setattr(notebook, "display", lambda page: pages.append(page.data))
    return pages


def show(kind, folder):
    """Do what `InteractiveContext.show` does with each artifact of a channel."""
    artifact = kind()
    artifact.uri = str(folder)
    visualizations.get_registry().get_visualization(artifact.type_name).display(artifact)


def result(value):
    return results.MetricResult(name="chrf", label="chr<F>", value=value, signature="")


def test_the_models_of_an_evaluation_are_columns(tmp_path, displayed):
    baseline = results.BaselineResult(name="copy", label="copy of the input", metrics={})
    production = results.ProductionResult(metrics={"chrf": result(41.0)})
    results.Evaluation(
        rows=7, metrics={"chrf": result(42.5)}, production=production, baselines=[baseline]
    ).write(tmp_path)
    show(ModelEvaluation, tmp_path)
    (page,) = displayed
    cells = [line.split("</td><td>") for line in page.split("<tr><td>")[1:]]
    assert cells[0][:3] == ["metric", "this model", "in production"]
    assert cells[1][:3] == ["chr&lt;F&gt;", "42.5", "41"]
    assert cells[1][3].startswith("</td>")  # the baseline has no such metric
    assert "7 rows" in page


def test_an_evaluation_of_tfx_is_displayed_by_tfx(tmp_path, displayed, monkeypatch):
    loaded = []
    monkeypatch.setattr(
        standard_visualizations.ModelEvaluationVisualization,
        "display",
        lambda self, artifact: loaded.append(artifact.uri),
    )
    show(ModelEvaluation, tmp_path)
    assert (loaded, displayed) == ([str(tmp_path)], [])


def test_the_decision_is_a_sentence(tmp_path, displayed):
    show(ModelBlessing, tmp_path)  # of TFX's Evaluator: there is no sentence
    results.Decision(blessed=False, sentence="Failed: chrF < 40.").write(tmp_path)
    show(ModelBlessing, tmp_path)
    assert displayed == ["<p>Failed: chrF &lt; 40.</p>"]
