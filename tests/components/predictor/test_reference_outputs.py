"""Attention and scores of the references, from fake models and from a real Transformer."""

import copy
from typing import Any

import numpy as np
import pytest

from regard.components.predictor.reference_outputs import ReferenceAttention, ReferenceScores
from regard.core.errors import UserError
from regard.models import metrics
from regard.models.metrics import Rows, attention
from regard.models.tasks import search_outputs
from regard.serving import saved_model
from regard.serving.saved_model import Prediction
from regard.serving.session import SessionError
from tests import fake_models, fake_tasks
from tests.models.tasks.exported import created
from tests.models.tasks.tokenizers import write_tokenizers
from tests.tolerances import assert_close, close_to

SIDES = ("source", "target")
SOURCES = ["a cat sat", "the dog ran far away", "the mat"]
REFERENCES = ["eine Katze", "der Hund lief weit weg", "weit weg"]
LINKS = ["0-0 1-1", "0-0 1-1 2-2 3p3 4-4", "0p1 1-0"]
# The weights of the longest pair: 2 layers of 2 heads, 24 tokens on both sides.
MOST = 4 * 24 * 24
ROWS = [{"source": text} for text in SOURCES]


class FakeModel:
    """Has two layers of three heads over two tokens, and scores single tokens.

    Args:
        contract: the contract.
        max_rows: the rows of a batch whose attention it gives.
    """

    def __init__(self, contract: dict[str, Any], max_rows: int = 9):
        self.contract, self.max_rows = contract, max_rows

    def predict(self, signature: str, rows: list[dict[str, Any]]) -> list[Prediction]:
        if signature == "heads" and len(rows) > self.max_rows:
            raise SessionError(3, "too many weights: ask fewer or shorter rows")
        return [self.output(row) for row in rows]

    def output(self, row: dict[str, Any]) -> Prediction:
        weights = float(row["target"]) + np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
        outputs = {
            "source_pieces": [row["source"], "</s>"],
            "target_pieces": [row["target"], "</s>"],
            "cross_heads": weights,
            "alignment": -weights[1, 0],
            "target_scores": np.array([-0.5, -0.25], np.float32),
            "target_cut": 3,
        }
        return Prediction(outputs, self.contract)


def fake_contract() -> dict[str, Any]:
    contract = copy.deepcopy(fake_models.ManyHeaded().contract())
    contract["signatures"]["score"]["outputs"] |= {"target_scores": ["target_length"]}
    return contract


PAIRS = [{"source": "a", "target": "100"}, {"source": "b", "target": "200"}]
PREDICTIONS = [Prediction({"translation": text}, fake_contract()) for text in ("x", "y")]


def extend(output, model: FakeModel) -> list[dict[str, Any]]:
    """Return the outputs that are added to two predictions."""
    rows, references = ([pair[side] for pair in PAIRS] for side in SIDES)
    inputs = [{"source": text} for text in rows]
    extended = output.extend(model, PREDICTIONS, inputs, references)
    assert [prediction.outputs["translation"] for prediction in extended] == ["x", "y"]
    return [prediction.outputs for prediction in extended]


@pytest.mark.parametrize("max_rows", [2, 1])
@pytest.mark.parametrize(
    ("layer", "head", "first"), [(1, 1, 0.0), (1, None, 4.0), (2, 1, 12.0), (2, 3, 20.0)]
)
def test_a_layer_and_a_head_are_selected(layer, head, first, max_rows):
    """A batch with too many weights is computed in halves."""
    outputs = extend(ReferenceAttention(layer, head), FakeModel(fake_contract(), max_rows))
    for offset, pair, added in zip((100, 200), PAIRS, outputs, strict=True):
        expected = offset + first + np.array([[0, 1], [2, 3]])
        np.testing.assert_array_equal(added["forced_alignment"], expected)
        assert added["forced_source_pieces"] == [pair["source"], "</s>"]
        assert added["forced_target_pieces"] == [pair["target"], "</s>"]


def test_without_a_layer_the_alignment_of_the_signature_is_added():
    outputs = extend(ReferenceAttention(), FakeModel(fake_contract()))
    np.testing.assert_array_equal(outputs[0]["forced_alignment"], [[-112, -113], [-114, -115]])


@pytest.mark.parametrize(("layer", "head", "key"), [(3, None, "layer"), (1, 4, "head")])
def test_missing_layers_and_heads_are_errors(layer, head, key):
    with pytest.raises(UserError) as caught:
        extend(ReferenceAttention(layer, head), FakeModel(fake_contract()))
    assert caught.value.where == f"evaluation.alignment.{key}"


def test_a_row_with_too_much_attention_is_an_error():
    with pytest.raises(UserError) as caught:
        extend(ReferenceAttention(1), FakeModel(fake_contract(), max_rows=0))
    assert caught.value.where == "evaluation.alignment.layer"


def test_scores_of_tokens_are_added_up():
    (first, _) = extend(ReferenceScores(), FakeModel(fake_contract()))
    added = {name: value for name, value in first.items() if name.startswith("forced")}
    assert added == {"forced_score": -0.75, "forced_length": 2, "forced_cut": 3}


@pytest.mark.parametrize(
    ("fake", "outputs"),
    [
        # Scores no given prediction.
        (fake_tasks.Matcher, ReferenceScores()),
        (fake_tasks.Matcher, ReferenceAttention()),
        # Scores only the whole output.
        (fake_models.Reverser, ReferenceScores()),
    ],
)
def test_models_without_the_outputs_are_unchanged(fake, outputs):
    model = FakeModel(fake().contract())
    assert outputs.extend(model, PREDICTIONS, PAIRS, ["100", "200"]) == PREDICTIONS


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> saved_model.ServedModel:
    """Return a model that gives the weights of the longest pair, but not of all pairs at once."""
    folder = tmp_path_factory.mktemp("transformer")
    write_tokenizers(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_outputs, "MAX_WEIGHTS", MOST)
        created(folder)
    return saved_model.load(folder / "saved")


@pytest.fixture(scope="module")
def base_predictions(model) -> list[saved_model.Prediction]:
    return model.predict("align", ROWS)


def weights(model, layer: int, head: int | None) -> list[np.ndarray]:
    """Return the signature's weights of each pair alone."""
    weights_of_pairs = []
    for source, reference in zip(SOURCES, REFERENCES, strict=True):
        out = model.run("heads", {"source": [source], "target": [reference]})
        of_layer = out["cross_heads"][0, layer - 1]
        weights_of_pairs.append(of_layer.mean(axis=0) if head is None else of_layer[head - 1])
    return weights_of_pairs


def words(tokens: list[str]) -> list[list[int]]:
    """Return the token positions of each word."""
    positions: list[list[int]] = []
    for position, piece in enumerate(tokens[:-1]):  # without the end token
        if piece.startswith("\u2581"):
            positions.append([])
        positions[-1].append(position)
    return positions


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "head"), [(1, None), (2, 2)])
def test_the_error_rate_equals_a_manual_computation(model, base_predictions, layer, head):
    extended = ReferenceAttention(layer, head).extend(model, base_predictions, ROWS, REFERENCES)
    expected = weights(model, layer, head)
    right = possible = links = sure = 0
    for prediction, matrix, gold in zip(extended, expected, LINKS, strict=True):
        assert_close(prediction.outputs["forced_alignment"], matrix)
        source, target = (words(prediction.outputs[f"forced_{side}_pieces"]) for side in SIDES)
        for number, tokens in enumerate(target):
            sums = [sum(matrix[t, s] for t in tokens for s in word) for word in source]
            link = int(np.argmax(sums))
            right += f"{link}-{number}" in gold.split()
            possible += f"{link}-{number}" in gold.replace("p", "-").split()
            links += 1
        sure += gold.count("-")
    columns = {
        name: [prediction.outputs[name] for prediction in extended]
        for name in (attention.ALIGNMENT, attention.SOURCE, attention.TARGET)
    }
    rows = Rows(REFERENCES, [[text] for text in REFERENCES], {**columns, "links": LINKS})
    options = metrics.MetricOptions(
        alignment=metrics.GoldAlignment("links", layer=layer, head=head)
    )
    (metric,) = metrics.compute(["aer"], rows, options)
    assert metric.value == pytest.approx(1 - (right + possible) / (links + sure))


@pytest.mark.slow
def test_the_default_is_the_mean_of_the_last_layer(model, base_predictions):
    default = ReferenceAttention().extend(model, base_predictions, ROWS, REFERENCES)
    for prediction, expected in zip(default, weights(model, 2, None), strict=True):
        assert_close(prediction.outputs["forced_alignment"], expected)


@pytest.mark.slow
def test_a_recurrent_decoder_has_no_layers(tmp_path):
    """Its encoder has heads of self-attention only."""
    write_tokenizers(tmp_path)
    created(tmp_path, decoder={"type": "luong", "units": 8})
    recurrent = saved_model.load(tmp_path / "saved")
    assert recurrent.contract["heads"]
    with pytest.raises(UserError, match="no layers of attention heads") as caught:
        ReferenceAttention(1).extend(recurrent, recurrent.predict("align", ROWS), ROWS, REFERENCES)
    assert caught.value.where == "evaluation.alignment.layer"


@pytest.mark.slow
def test_large_batches_of_the_transformer_are_split(model, base_predictions):
    requests = [{"source": s, "target": t} for s, t in zip(SOURCES, REFERENCES, strict=True)]
    with pytest.raises(SessionError, match="fewer or shorter rows"):
        model.predict("heads", requests)
    predictions = ReferenceAttention(1).extend(model, base_predictions, ROWS, REFERENCES)
    assert [prediction.outputs["translation"] for prediction in predictions] == [
        prediction.outputs["translation"] for prediction in base_predictions
    ]


@pytest.mark.slow
def test_reference_scores_equal_the_score_signature(model, base_predictions):
    predictions = ReferenceScores().extend(model, base_predictions, ROWS, REFERENCES)
    for row, reference, prediction in zip(ROWS, REFERENCES, predictions, strict=True):
        scores = model.run("score", {"source": [row["source"]], "target": [reference]})
        assert prediction.outputs["forced_score"] == close_to(
            float(scores["score"][0]), roundings=1000
        )
        assert prediction.outputs["forced_length"] == int(scores["target_length"][0])
        assert prediction.outputs["forced_cut"] == 0
        assert prediction.outputs["translation"] != ""


@pytest.mark.slow
def test_truncated_reference_tokens_are_counted(model, base_predictions):
    long = "der Hund lief weit weg " * 20
    (prediction,) = ReferenceScores().extend(model, base_predictions[:1], ROWS[:1], [long])
    whole = model.run("score", {"source": ["a"], "target": [long]})
    assert prediction.outputs["forced_cut"] == int(whole["target_cut"][0]) > 0
