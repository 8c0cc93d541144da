"""Metrics of decoded outputs during training."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.validation import metric_function
from regard.models import metrics, tasks
from tests.components.trainer.tiny_training import (
    TinyTask,
    assert_equal_arrays,
    batches,
    new_model,
    training_config,
)


class DecodingTask(TinyTask):
    """Outputs the reference in rows whose first token is even; records weights and rows."""

    def __init__(self):
        super().__init__()
        self.weights, self.rows = [], 0

    def build(self, model, training, sizes):
        assert training.precision == "float32"
        return super().build(model, training, sizes)

    def decode_fn(self, model, search):
        assert search.type == "beam"

        def decode(batch):
            self.weights.append([np.array(w) for w in model.weights])
            self.rows += len(batch["target"])
            texts = [" ".join(str(i) for i in row if i) for row in np.array(batch["target"])]
            outputs = [text if text[0] in "468" else "11 11 11 11 11" for text in texts]
            return outputs, [[text] for text in texts]

        return decode


@pytest.fixture
def metric_function_for(monkeypatch):
    """Return a function that makes the function of metrics with a task's decoding."""

    def create(task, **changes):
        def served(description, model, tokenizers, settings, search):
            return SimpleNamespace(decode_fn=lambda: task.decode_fn(model, search))

        monkeypatch.setattr(tasks, "get_served_module", lambda name: served)
        return create_metric_function(task, **changes)

    return create


def create_metric_function(task, **changes):
    config = TrainerConfig(
        task="translation",
        model={},
        training=training_config(**changes),
        search={"type": "beam"},
    )
    return metric_function(replace(batches()[1], network=task), config, {}, {})


@pytest.mark.parametrize(
    ("changes", "rows"),
    [
        ({}, None),
        ({"early_stopping": {"metric": "loss"}}, None),
        ({"validation_rows": 7}, 7),
        ({"early_stopping": {"metric": "bleu"}}, 40),
        ({"early_stopping": {"metric": "bleu"}, "validation_rows": 12}, 12),
    ],
)
def test_the_configuration_selects_the_rows(metric_function_for, changes, rows):
    task = DecodingTask()
    compute = metric_function_for(task, **changes)
    if rows is None:
        assert compute is None
        return
    values = compute(new_model(training_config()))
    assert task.rows == rows
    assert 0.0 < values["bleu"] < 100.0
    compute(new_model(training_config()))
    assert task.rows == 2 * rows


def test_tokenization_of_bleu(metric_function_for):
    model = new_model(training_config())
    values = set()
    for name in ("none", "char"):
        options = {"validation_rows": 20, "validation_tokenize": name}
        values.add(metric_function_for(DecodingTask(), **options)(model)["bleu"])
    assert len(values) == 2
    assert {"none", "char"} < set(metrics.tokenizers())


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
def test_a_float32_model_decodes_with_the_present_weights(metric_function_for, precision):
    task = DecodingTask()
    compute = metric_function_for(task, validation_rows=4, precision=precision)
    model = new_model(training_config(precision=precision))
    for scale in (1.0, 2.0):
        for weight in model.weights:
            weight.assign(np.array(weight) * scale)
        task.weights.clear()
        compute(model)
        assert_equal_arrays(task.weights[-1], model.get_weights())
