"""Sentence similarity."""

import keras
import numpy as np
import pytest

from regard.models.similarity import Similarity
from tests.marks import slow
from tests.models.backends.similarity import FIRST, MODELS, SECOND
from tests.models.tensors import train
from tests.tolerances import assert_close, close_to

NAMES = [f"{make.__name__}, {settings['pooling']}" for make, _, settings in MODELS]


def created(make, reading, settings, **more):
    keras.utils.set_random_seed(2)
    model = Similarity(make(9, embedding=6, **reading), hidden=5, **{**settings, **more})
    model.build()
    return model


@pytest.fixture(scope="module", params=MODELS, ids=NAMES)
def model(request):
    """A model of each kind, for all tests that do not change it."""
    return created(*request.param)


def test_the_order_does_not_matter(model):
    there, back = model.compare(FIRST, SECOND), model.compare(SECOND, FIRST)
    assert_close(there["similarity"], back["similarity"])
    assert_close(there["first_vector"], back["second_vector"])
    if there["alignment"] is not None:
        assert_close(there["alignment"], back["reverse_alignment"])


def test_a_row_in_a_batch_is_as_alone(model):
    batched = model.compare(FIRST, SECOND)
    alone = model.compare(FIRST[1:, :2], SECOND[1:])
    for name in ("similarity", "first_vector", "second_vector", "second_weights"):
        assert_close(batched[name][1:], alone[name])
    assert_close(batched["first_weights"][1:, :2], alone["first_weights"])


def test_a_sentence_has_a_vector_of_its_own_where_it_is_read_alone(model):
    if model.encodes_independently:
        actual = model.compare(FIRST, SECOND)["first_vector"]
        assert_close(model.embed(FIRST), actual)
        assert model.embed(FIRST).shape[-1] == model.depth
    else:
        with pytest.raises(ValueError, match="depend on the other"):
            model.embed(FIRST)


QUICK_NAMES = ("mean", "self_attention")


@pytest.mark.parametrize(
    "parts",
    [
        parts if any(word in name for word in QUICK_NAMES) else slow(parts)
        for parts, name in zip(MODELS, NAMES, strict=True)
    ],
    ids=NAMES,
)
def test_it_learns_and_comes_back_from_a_file(parts, tmp_path):
    model = created(*parts, dropout=0.1)
    inputs = {
        "first": np.tile(FIRST, (4, 1)),
        "second": np.tile(SECOND, (4, 1)),
        "score": np.tile(np.array([0.1, 0.9], "float32"), 4),
    }
    model.compile(optimizer=keras.optimizers.Adam(0.02))
    losses = train(model, inputs, 25)
    assert losses[-1] < losses[0] / 2
    model.save(tmp_path / "m.keras")
    again = keras.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(
        model(inputs)["similarity"], again(inputs)["similarity"], strict=True
    )


def test_cosine_of_the_mean_vectors_is_the_average_of_word_vectors():
    """A cosine model learns only a line, which does not change a correlation."""
    make, reading, settings = MODELS[0]
    model = created(make, reading, settings)
    vectors = np.asarray(model.encoder.embedding.table, "float64")  # a factor is none for a cosine
    slope, offset = (float(w.numpy().ravel()[0]) for w in model.output_layer.weights)
    actual = model.compare(FIRST, SECOND)["similarity"]
    for row in (0, 1):
        one, two = (vectors[ids[row][ids[row] > 0]].mean(0) for ids in (FIRST, SECOND))
        cosine = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
        assert float(actual[row]) == close_to(slope * cosine + offset)
    assert (float(slope), float(offset)) == (1.0, 0.0)  # so that unlearnt ones rank as cosines do


def test_the_loss_is_the_mean_squared_error_of_rows_that_are_there():
    model = created(*MODELS[2])
    inputs = {
        "first": np.vstack([FIRST, np.zeros((1, 4), "int32")]),
        "second": np.vstack([SECOND, np.zeros((1, 3), "int32")]),
        "score": np.array([0.2, 0.9, 0.0], "float32"),
    }
    actual = np.asarray(model(inputs)["similarity"], "float64")[:2]
    loss = model.compute_loss(inputs, y_pred=model(inputs))
    assert float(loss) == pytest.approx(np.mean((actual - [0.2, 0.9]) ** 2), rel=1e-5)
    assert float(model.loss_mean.result()) == pytest.approx(float(loss))
    assert float(model.loss_mean.count) == 2.0
    assert model.evaluation_metrics({"plain_loss": 0.25}) == {"loss": 0.25}


def test_unknown_comparison():
    with pytest.raises(ValueError, match=r"Unknown comparison 'dot'. Choices: cosine, features"):
        created(*MODELS[0], comparison="dot")


def test_exact_matches_in_the_other_sentence_are_features():
    """Two ids with one vector differ only in being the same or not."""
    make, reading, settings = MODELS[1]
    model = created(make, reading, settings)
    table = np.array(model.encoder.embedding.table)
    table[6] = table[5]
    model.encoder.embedding.table.assign(table)
    one = np.array([[5, 4]], "int32")
    same = model.compare(one, np.array([[5, 4]], "int32"))["similarity"]
    alike = model.compare(one, np.array([[6, 4]], "int32"))["similarity"]
    assert abs(float(same[0]) - float(alike[0])) > 1e-5
