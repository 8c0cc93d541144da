"""Attention and scores of the references, from a real Transformer as the Trainer exports it."""

import numpy as np
import pytest

from regard.components.predictor.reference_outputs import ReferenceAttention, ReferenceScores
from regard.core.errors import UserError
from regard.models import metrics
from regard.models.metrics import Rows, attention
from regard.models.tasks import search_outputs
from regard.serving import saved_model
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


@pytest.mark.parametrize(("layer", "head"), [(1, None), (1, 1), (2, 2)])
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


def test_the_default_is_the_mean_of_the_last_layer(model, base_predictions):
    default = ReferenceAttention().extend(model, base_predictions, ROWS, REFERENCES)
    for prediction, expected in zip(default, weights(model, 2, None), strict=True):
        assert_close(prediction.outputs["forced_alignment"], expected)


@pytest.mark.parametrize(
    ("attention_option", "key", "message"),
    [
        (ReferenceAttention(3), "layer", "There is no layer 3; the model has 1 to 2"),
        (ReferenceAttention(1, 5), "head", "There is no head 5; the model has 1 to 2"),
    ],
)
def test_missing_layers_and_heads_are_errors(
    model, base_predictions, attention_option, key, message
):
    with pytest.raises(UserError, match=message) as caught:
        attention_option.extend(model, base_predictions, ROWS, REFERENCES)
    assert caught.value.where == f"evaluation.alignment.{key}"


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


def test_large_batches_are_split(model, base_predictions):
    requests = [{"source": s, "target": t} for s, t in zip(SOURCES, REFERENCES, strict=True)]
    with pytest.raises(SessionError, match="fewer or shorter rows"):
        model.predict("heads", requests)
    predictions = ReferenceAttention(1).extend(model, base_predictions, ROWS, REFERENCES)
    assert [prediction.outputs["translation"] for prediction in predictions] == [
        prediction.outputs["translation"] for prediction in base_predictions
    ]


def test_a_row_with_too_much_attention_option_is_an_error(model):
    long = [{"source": "a cat sat on the mat"}]
    own = model.predict("align", long)
    with pytest.raises(UserError, match="A row is too long for the attention of all heads"):
        ReferenceAttention(1).extend(model, own, long, ["eine Katze " * 9])


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


def test_truncated_reference_tokens_are_counted(model, base_predictions):
    long = "der Hund lief weit weg " * 20
    (prediction,) = ReferenceScores().extend(model, base_predictions[:1], ROWS[:1], [long])
    whole = model.run("score", {"source": ["a"], "target": [long]})
    assert prediction.outputs["forced_cut"] == int(whole["target_cut"][0]) > 0


@pytest.mark.parametrize(
    ("fake", "row", "reference", "outputs"),
    [
        # Scores no given prediction.
        (fake_tasks.Matcher, {"first": "a", "second": "a"}, 0.5, ReferenceScores()),
        (fake_tasks.Matcher, {"first": "a", "second": "a"}, 0.5, ReferenceAttention()),
        # Scores only the whole output.
        (fake_models.Reverser, {"source": "ab"}, "ba", ReferenceScores()),
    ],
)
def test_models_without_the_outputs_are_unchanged(tmp_path, fake, row, reference, outputs):
    model = saved_model.load(fake_models.save(fake(), tmp_path / "m"))
    own = model.predict(model.contract["detail"], [row])
    assert outputs.extend(model, own, [row], [reference]) == own
