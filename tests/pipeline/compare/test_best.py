"""Which model of a comparison is marked as the best."""

import pytest

from regard.components.common import prediction_table
from regard.components.evaluator.results import MetricResult
from regard.components.settings.evaluation import EvaluationConfig
from regard.pipeline.compare.best import best_models
from regard.pipeline.compare.results import ModelResult
from tests.components.evaluator.evaluating import CONTRACT, predictions_folder, write_table

TEXTS = [f"this is sentence number {n} of all" for n in range(40)]
METRICS = ["exact_match", "ter"]


def outputs(wrong):
    """Return outputs of which the first are wrong."""
    return ["what is this" if n < wrong else text for n, text in enumerate(TEXTS)]


@pytest.fixture
def model(tmp_path):
    def model(label, wrong, recipe=None, data="1"):
        root = tmp_path / label
        root.mkdir()
        write_table(root, prediction_table.CANDIDATE, outputs(wrong), TEXTS)
        folder = predictions_folder(root)
        summary = {"rows": 40, "contract": CONTRACT}
        prediction_table.write_summary(folder, summary)
        values = {"exact_match": (1 - wrong / 40, True), "ter": (wrong / 40, False)}
        metrics = {
            name: MetricResult(
                name=name, label=name, value=value, signature="", higher_is_better=higher
            )
            for name, (value, higher) in values.items()
        }
        facts = {"recipe": recipe or label, "data": data, "predictions": str(folder)}
        return ModelResult(label=label, state="finished", metrics=metrics, **facts)

    return model


def best(*models, **config):
    settings = {"metrics": METRICS, "samples": 300, **config}
    return best_models(models, EvaluationConfig.model_validate(settings))


def test_the_best_is_significantly_better_than_all_others(model):
    a, b, c = model("a", 20), model("b", 4), model("c", 22)
    waiting = ModelResult(label="w", state="waiting")
    assert best(a, b, c, waiting) == {"exact_match": "b", "ter": "b"}
    near = model("near", 5)
    assert best(a, b, c, near) == {}
    assert best(b) == {}
    assert best(a, b, samples=0) == {}


def test_p_values_are_adjusted_for_the_number_of_models(model):
    models = [model("a", 0), *(model(f"m{n}", 6) for n in range(8))]
    assert best(*models[:2]) == {"exact_match": "a", "ter": "a"}  # p = 0.03
    assert best(*models) == {}


def test_other_rows_cannot_be_tested(model):
    assert best(model("a", 20), model("b", 4, data="2")) == {}


def test_missing_predictions_cannot_be_tested(model):
    a, b = model("a", 20), model("b", 4)
    assert best(a, b.model_copy(update={"predictions": None})) == {}


def test_every_seed_must_be_better(model):
    a, b, other = model("a", 2, "r"), model("b", 5, "r"), model("c", 30)
    assert best(a, b, other) == {"exact_match": "a", "ter": "a"}
    assert best(a, model("unlucky", 32, "r"), other) == {}
    assert best(a, b) == {}


def test_commands_are_not_run_again(model):
    external = {"odd": {"command": "false"}}
    models = [model("a", 20), model("b", 4)]
    for one in models:
        one.metrics["odd"] = one.metrics["ter"]
    config = {"metrics": [*METRICS, "odd"], "external": external}
    assert best(*models, **config) == {"exact_match": "b", "ter": "b"}
