"""The span reader: padding, loss, gradients, configuration."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.models.encoders import EmbeddingEncoder, RecurrentEncoder, TransformerEncoder
from regard.models.span import SpanReader
from tests.models.tensors import round_trip
from tests.tolerances import assert_close

PASSAGE = np.array([[5, 6, 7, 4, 8], [4, 3, 6, 0, 0]], "int32")
QUESTION = np.array([[6, 7, 0], [4, 5, 8]], "int32")
ANSWER = np.array([[1, 2], [0, 0]], "int32")
INPUTS = {"passage": PASSAGE, "question": QUESTION, "answer": ANSWER}


def created(kind="recurrent", **settings):
    keras.utils.set_random_seed(3)
    encoder = RecurrentEncoder(9, embedding=6, units=3, cell="gru")
    modelling = RecurrentEncoder(None, embedding=6, units=4, dimensions=24)
    if kind == "transformer":
        encoder = EmbeddingEncoder(9, embedding=6)
        options = {"layers": 2, "heads": 2, "feed_forward": 5}
        modelling = TransformerEncoder(None, embedding=6, dimensions=24, **options)
    model = SpanReader(encoder, modelling, **{"units": 4, "hops": 1, **settings})
    model.build()
    return model


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_a_row_alone_has_the_logits_of_its_batch(kind):
    model = created(kind)
    batched = np.asarray(model(INPUTS)["logits"])
    assert batched.shape == (2, 3, 5)
    for row, (n, m) in enumerate([(5, 2), (3, 3)]):
        one = {"passage": PASSAGE[row : row + 1, :n], "question": QUESTION[row : row + 1, :m]}
        assert_close(model(one)["logits"][0], batched[row, :, :n])
        assert (batched[row, :, n:] < -1e8).all()


def test_the_loss_is_that_of_begin_and_end():
    model = created()
    outputs = model(INPUTS)
    logits = np.asarray(outputs["logits"], "float64")[:, -2:]
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -(log_probs[0, 0, 1] + log_probs[0, 1, 2] + log_probs[1, 0, 0] + log_probs[1, 1, 0])
    assert float(model.compute_loss(INPUTS, None, outputs)) == pytest.approx(expected / 2, rel=1e-5)
    assert float(model.loss_mean.count) == 2.0
    padded = {name: np.pad(value, [[0, 1], [0, 0]]) for name, value in INPUTS.items()}
    loss = float(model.compute_loss(padded, None, model(padded)))
    assert loss == pytest.approx(expected / 2, rel=1e-5)


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_every_weight_gets_a_gradient(kind):
    model = created(kind)
    with tf.GradientTape() as tape:
        loss = model.compute_loss(INPUTS, None, model(INPUTS))
    gradients = tape.gradient(loss, model.trainable_variables)
    for weight, gradient in zip(model.trainable_variables, gradients, strict=True):
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        assert np.isfinite(values).all()
        # A softmax does not depend on what is added to all scores.
        if not weight.path.endswith(("key/bias", "columns/kernel")):
            assert np.abs(values).max() > 0, weight.path


def test_the_configuration_gives_the_same_model():
    model = created(hops=2, score={"type": "general"}, dropout=0.25)
    again = round_trip(model)
    assert again.get_config() == model.get_config()
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(INPUTS)["logits"], model(INPUTS)["logits"])
