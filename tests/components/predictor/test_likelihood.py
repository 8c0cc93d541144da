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
        assert answer.outputs["forced_cut"] == 0
        assert answer.outputs["translation"] != ""


def test_of_a_reference_that_is_too_long_it_is_told_how_much_was_not_read(tmp_path):
    write_tokenizers(tmp_path)
    made(tmp_path)
    model = saved_model.load(tmp_path / "saved")
    long = "der Hund lief weit weg " * 20
    (answer,) = Likelihood().beside(model, model.ask("align", ROWS[:1]), ROWS[:1], [long])
    whole = model.signature("score")(source=tf.constant(["a"]), target=tf.constant([long]))
    assert answer.outputs["forced_cut"] == int(whole["target_cut"][0]) > 0


@pytest.mark.parametrize(
    ("fake", "row", "reference"),
    [
        (fake_tasks.Matcher, {"first": "a", "second": "a"}, 0.5),  # scores no given answer
        (fake_models.Reverser, {"source": "ab"}, "ba"),  # scores it as a whole
    ],
)
def test_models_without_scores_of_pieces_leave_it_out(tmp_path, fake, row, reference):
    model = saved_model.load(fake_models.save(fake(), tmp_path / "m"))
    own = model.ask(model.contract["detail"], [row])
    assert Likelihood().beside(model, own, [row], [reference]) == own
