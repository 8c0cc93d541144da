"""Metrics of decoded outputs during training."""

from dataclasses import replace

import numpy as np
import pytest

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.validation import metric_function
from regard.models import metrics
from regard.models.tasks.network import BatchDecoder
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

    def batch_decoder(self, model, processors, settings, search):
        assert search.type == "beam"
        return RecordingDecoder(self, model)


class RecordingDecoder(BatchDecoder):
    """Decodes for a ``DecodingTask``."""

    inputs = ("source", "target")

    def __init__(self, task, model):
        self.task, self.model = task, model

    def compute(self, source, target):
        return target

    def outputs(self, computed, batch):
        self.task.weights.append([np.array(weight) for weight in self.model.weights])
        self.task.rows += len(computed)
        return [text if text[0] in "468" else "11 11 11 11 11" for text in texts_of(computed)]

    def references(self, batch):
        return texts_of(batch["target"])


def texts_of(ids):
    return [" ".join(str(token) for token in row if token) for row in ids]


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
def test_the_configuration_selects_the_rows(changes, rows):
    task = DecodingTask()
    compute = create_metric_function(task, **changes)
    if rows is None:
        assert compute is None
        return
    values = compute(new_model(training_config()))
    assert task.rows == rows
    assert 0.0 < values["bleu"] < 100.0
    compute(new_model(training_config()))
    assert task.rows == 2 * rows


def test_tokenization_of_bleu():
    model = new_model(training_config())
    values = set()
    for name in ("none", "char"):
        options = {"validation_rows": 20, "validation_tokenize": name}
        values.add(create_metric_function(DecodingTask(), **options)(model)["bleu"])
    assert len(values) == 2
    assert {"none", "char"} < set(metrics.tokenizers())


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
def test_a_float32_model_decodes_with_the_present_weights(precision):
    task = DecodingTask()
    compute = create_metric_function(task, validation_rows=4, precision=precision)
    model = new_model(training_config(precision=precision))
    for scale in (1.0, 2.0):
        for weight in model.weights:
            weight.assign(np.array(weight) * scale)
        task.weights.clear()
        compute(model)
        assert_equal_arrays(task.weights[-1], model.get_weights())
