"""BLEU while training: of the rows that were asked for, with the weights of the moment."""

import numpy as np
import pytest

from components.trainer.validation import decoder
from models import metrics
from tests.components.trainer.tiny import Tiny, data, make, settings, train


class Telling(Tiny):
    """Answers with the references themselves in rows whose first piece is even."""

    def __init__(self):
        self.models, self.rows = [], 0

    def build(self, model, training, pieces):
        built = super().build(model, training, pieces)
        assert training["precision"] == "float32"
        return built

    def answering(self, model, tokenizers, config):
        assert config["search"] == {"type": "beam"}

        def answer(batch):
            self.models.append([np.array(w) for w in model.weights])
            self.rows += len(batch["target"])
            wanted = [" ".join(str(i) for i in row if i) for row in np.array(batch["target"])]
            found = [w if w[0] in "468" else "11 11 11 11 11" for w in wanted]
            return found, [[w] for w in wanted]

        return answer


def ask(task, **changes):
    training = settings(**changes)
    config = {"model": {}, "training": training, "search": {"type": "beam"}}
    return decoder(data()[1], task, config, {}, {})


@pytest.mark.parametrize(
    ("changes", "rows"),
    [
        ({}, None),
        ({"early_stop": {"metric": "loss"}}, None),
        ({"validation_rows": 7}, 7),
        ({"early_stop": {"metric": "bleu"}}, 40),
        ({"early_stop": {"metric": "bleu"}, "validation_rows": 12}, 12),
    ],
)
def test_how_many_rows_are_decoded(changes, rows):
    task = Telling()
    decode = ask(task, **changes)
    if rows is None:
        assert decode is None
        return
    found = decode(make(settings()))
    assert task.rows == rows
    assert 0.0 < found["bleu"] < 100.0
    decode(make(settings()))
    assert task.rows == 2 * rows


def test_its_tokenization():
    values = {
        name: ask(Telling(), validation_rows=20, validation_tokenize=name)(make(settings()))["bleu"]
        for name in ("none", "char")
    }
    assert values["none"] != values["char"]
    assert set(metrics.tokenizers()) > set(values)


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
def test_the_weights_are_those_of_the_moment(precision):
    """In mixed precision a model in float32 answers, with the same weights."""
    task = Telling()
    decode = ask(task, validation_rows=4, precision=precision)
    model = make(settings(precision=precision))
    for scale in (1.0, 2.0):
        for weight in model.weights:
            weight.assign(np.array(weight) * scale)
        task.models.clear()
        decode(model)
        for ours, theirs in zip(task.models[-1], model.get_weights(), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_it_goes_into_the_history(tmp_path):
    _, position = train(tmp_path, decode=ask(Telling(), validation_rows=9), max_epochs=2)
    assert [entry["bleu"] > 0 for entry in position.history] == [True, True]
