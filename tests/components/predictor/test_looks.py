"""Whose weights of the references are kept, of a real Transformer as the Trainer exports it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from components.errors import UserError
from components.predictor.looks import Looks
from models import metrics
from models.metrics import Rows, aligning
from models.tasks import heads
from serving import saved_model
from tests.models.tasks.exported import made
from tests.models.tasks.tokenizers import write_tokenizers

SIDES = ("source", "target")
SOURCES = ["a cat sat", "the dog ran far away", "the mat"]
REFERENCES = ["eine Katze", "der Hund lief weit weg", "weit weg"]
LINKS = ["0-0 1-1", "0-0 1-1 2-2 3p3 4-4", "0p1 1-0"]
# Of the longest pair: 2 layers of 2 heads, of its pieces on both sides.
MOST = 4 * 24 * 24
ROWS = [{"source": text} for text in SOURCES]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> saved_model.ServedModel:
    """One that gives the weights of the longest pair, but not of all three at once."""
    folder = tmp_path_factory.mktemp("transformer")
    write_tokenizers(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heads, "MOST", MOST)
        made(folder)
    return saved_model.load(folder / "saved")


@pytest.fixture(scope="module")
def answers(model) -> list[saved_model.Answer]:
    return model.ask("align", ROWS)


def weights(model, layer: int, head: int | None) -> list[np.ndarray]:
    """What the signature gives of each pair alone."""
    found = []
    for source, reference in zip(SOURCES, REFERENCES, strict=True):
        function = model.signature("heads")
        out = function(source=tf.constant([source]), target=tf.constant([reference]))
        of_layer = out["cross_heads"].numpy()[0, layer - 1]
        found.append(of_layer.mean(axis=0) if head is None else of_layer[head - 1])
    return found


def words(pieces: list[str]) -> list[list[int]]:
    """The places of each word's pieces."""
    found: list[list[int]] = []
    for place, piece in enumerate(pieces[:-1]):  # without the end of sentence
        if piece.startswith("\u2581"):
            found.append([])
        found[-1].append(place)
    return found


@pytest.mark.parametrize(("layer", "head"), [(1, None), (1, 1), (2, 2)])
def test_its_error_rate_is_that_computed_by_hand(model, answers, layer, head):
    shown = Looks(layer, head).beside(model, answers, ROWS, REFERENCES)
    expected = weights(model, layer, head)
    right = possible = links = sure = 0
    for answer, matrix, gold in zip(shown, expected, LINKS, strict=True):
        np.testing.assert_allclose(answer.outputs["forced_alignment"], matrix, atol=1e-6)
        source, target = (words(answer.outputs[f"forced_{side}_pieces"]) for side in SIDES)
        for number, pieces in enumerate(target):
            sums = [sum(matrix[t, s] for t in pieces for s in word) for word in source]
            link = int(np.argmax(sums))
            right += f"{link}-{number}" in gold.split()
            possible += f"{link}-{number}" in gold.replace("p", "-").split()
            links += 1
        sure += gold.count("-")
    columns = {
        name: [answer.outputs[name] for answer in shown]
        for name in (aligning.ALIGNMENT, aligning.SOURCE, aligning.TARGET)
    }
    rows = Rows(REFERENCES, [[text] for text in REFERENCES], {**columns, "links": LINKS})
    asked = {"gold": "links", "unit": "word", "layer": layer, "head": head}
    (found,) = metrics.compute(["aer"], rows, {"alignment": asked})
    assert found.value == pytest.approx(1 - (right + possible) / (links + sure))


def test_heads_differ_and_the_answers_stay(model, answers):
    rates = {
        (layer, head): Looks(layer, head).beside(model, answers, ROWS, REFERENCES)
        for layer in (1, 2)
        for head in (None, 1, 2)
    }
    shown = [of[1].outputs["forced_alignment"] for of in rates.values()]
    for number, one in enumerate(shown):
        assert not any(np.allclose(one, other) for other in shown[:number])
    for of in rates.values():
        for before, after in zip(answers, of, strict=True):
            kept = {name: after.outputs[name] for name in before.outputs}
            assert kept.keys() == before.outputs.keys()
            assert kept["translation"] == before.outputs["translation"]


def test_without_a_layer_it_is_the_mean_of_the_last(model, answers):
    by_default = Looks().beside(model, answers, ROWS, REFERENCES)
    for answer, expected in zip(by_default, weights(model, 2, None), strict=True):
        np.testing.assert_allclose(answer.outputs["forced_alignment"], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("wanted", "key", "message"),
    [
        (Looks(3), "layer", "there is no layer 3; the model has 1 to 2"),
        (Looks(1, 5), "head", "there is no head 5; the model has 1 to 2"),
    ],
)
def test_what_there_is_not_is_named_with_the_choices(model, answers, wanted, key, message):
    with pytest.raises(UserError, match=message) as caught:
        wanted.beside(model, answers, ROWS, REFERENCES)
    assert caught.value.where == f"evaluation.alignment.{key}"


def test_a_recurrent_decoder_has_no_layers(tmp_path):
    """Though its encoder has heads, which look at the source from the source."""
    write_tokenizers(tmp_path)
    made(tmp_path, decoder={"type": "luong", "units": 8})
    recurrent = saved_model.load(tmp_path / "saved")
    assert recurrent.contract["heads"]
    with pytest.raises(UserError, match="no layers with heads") as caught:
        Looks(1).beside(recurrent, recurrent.ask("align", ROWS), ROWS, REFERENCES)
    assert caught.value.where == "evaluation.alignment.layer"


def test_rows_with_too_many_weights_are_asked_in_smaller_parts(model, answers):
    asked = [{"source": s, "target": t} for s, t in zip(SOURCES, REFERENCES, strict=True)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="ask fewer"):
        model.ask("heads", asked)
    found = Looks(1).beside(model, answers, ROWS, REFERENCES)
    assert [answer.outputs["translation"] for answer in found] == [
        answer.outputs["translation"] for answer in answers
    ]


def test_a_row_with_too_many_weights_is_refused(model):
    long = [{"source": "a cat sat on the mat"}]
    own = model.ask("align", long)
    with pytest.raises(UserError, match="a row is too long for the weights of all heads"):
        Looks(1).beside(model, own, long, ["eine Katze " * 9])
