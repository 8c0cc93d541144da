"""How probable the references are, of a real Transformer as the Trainer exports it."""

from __future__ import annotations

import pytest
import tensorflow as tf

from components.predictor.likelihood import Likelihood
from serving import saved_model
from tests import fake_models, fake_tasks
from tests.models.tasks.exported import made
from tests.models.tasks.tokenizers import write_tokenizers

ROWS = [{"source": "a cat sat"}, {"source": "the dog ran far away"}]
REFERENCES = ["eine Katze", "der Hund lief weit weg"]


def test_a_reference_has_the_score_that_the_model_gives_it(tmp_path):
    write_tokenizers(tmp_path)
    made(tmp_path)
    model = saved_model.load(tmp_path / "saved")
    found = Likelihood().beside(model, model.ask("align", ROWS), ROWS, REFERENCES)
    for row, reference, answer in zip(ROWS, REFERENCES, found, strict=True):
        told = model.signature("score")(
            source=tf.constant([row["source"]]), target=tf.constant([reference])
        )
        assert answer.outputs["forced_score"] == pytest.approx(float(told["score"][0]), abs=1e-4)
        assert answer.outputs["forced_length"] == int(told["target_length"][0])
        assert answer.outputs["translation"] != ""


@pytest.mark.parametrize(
    ("fake", "row", "reference"),
    [
        (fake_tasks.Matcher, {"first": "a", "second": "a"}, 0.5),
        (fake_models.Reverser, {"source": "ab"}, "ba"),
    ],
)
def test_models_without_scores_of_pieces_leave_it_out(tmp_path, fake, row, reference):
    model = saved_model.load(fake_models.save(fake(), tmp_path / "m"))
    own = model.ask(model.contract["detail"], [row])
    (answer,) = Likelihood().beside(model, own, [row], [reference])
    scored = "forced_score" in answer.outputs
    told = model.contract["signatures"].get(model.contract["scored"], {"outputs": {}})["outputs"]
    assert scored == any(name.endswith("scores") for name in told)
