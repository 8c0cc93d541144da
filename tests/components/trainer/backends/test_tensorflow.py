"""Adam's fused updates, and decoders as graphs."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.components.trainer.backends import current_backend
from regard.components.trainer.backends.tensorflow import Adam, AdamW
from regard.models.tasks.network import BatchDecoder
from tests.components.trainer.tiny_training import batches, new_model, training_config

OPTIMIZERS = {
    "Adam": (Adam, keras.optimizers.Adam, {}),
    "AdamW": (AdamW, keras.optimizers.AdamW, {"weight_decay": 0.1}),
}


def random_weights():
    random = np.random.default_rng(5)
    shapes = [(7, 4), (4, 3), (3,)]
    return [keras.Variable(random.normal(size=shape), dtype="float32") for shape in shapes]


def random_gradients(step):
    """Of an embedding with repeated lookups of a row, of a matrix, and of a bias."""
    random = np.random.default_rng(step)
    values = tf.cast(random.normal(size=(3, 4)), tf.float32)
    rows = tf.IndexedSlices(values, tf.constant([1, 5, 1]), tf.constant([7, 4]))
    rest = [tf.cast(random.normal(size=shape), tf.float32) for shape in [(4, 3), (3,)]]
    return [rows, *rest]


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("clip", [None, 0.5, 1e6])
def test_fused_updates_equal_keras(kind, clip):
    fused_class, keras_class, options = OPTIMIZERS[kind]
    options = {**options, "learning_rate": 0.01, "beta_2": 0.98, "epsilon": 1e-8}
    options["global_clipnorm"] = clip
    weights, keras_weights = random_weights(), random_weights()
    fused, reference = fused_class(**options), keras_class(**options)
    fused.build(weights)
    reference.build(keras_weights)
    apply = tf.function(lambda *gradients: fused.apply(gradients, weights))
    for step in range(5):
        apply(*random_gradients(step))
        reference.apply([tf.convert_to_tensor(g) for g in random_gradients(step)], keras_weights)
    pairs = zip(fused.variables + weights, reference.variables + keras_weights, strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-7, err_msg=one.path)


def test_clipping_keeps_gradients_that_are_not_finite():
    """The training has to see them, to end."""
    weight = keras.Variable(np.zeros(3), dtype="float32")
    adam = Adam(global_clipnorm=1.0)
    adam.build([weight])
    adam.apply([tf.constant([1.0, np.inf, 0.0])], [weight])
    assert np.isnan(np.array(weight)).any()


class SumDecoder(BatchDecoder):
    """Adds a weight of the model to the sums of the sources, and counts its traces."""

    inputs = ("source",)

    def __init__(self, model):
        self.model, self.traces = model, 0

    def compute(self, source):
        self.traces += 1
        return tf.cast(tf.reduce_sum(source, axis=1), "float32") + self.model.dense.bias[0]

    def outputs(self, computed, batch):
        return computed.tolist()

    def references(self, batch):
        return batch["target"].tolist()


def test_a_compiled_decoder_reads_batches_of_any_size_and_the_present_weights():
    model, (train, _) = new_model(training_config()), batches()
    decoder = SumDecoder(model)
    decode = current_backend().compile_decoder(model, decoder, train)
    for number, bias in ((0, 0.0), (1, 5.0)):
        model.dense.bias.assign(np.full(model.dense.bias.shape, bias))
        source = train.read(0, number)["source"]
        np.testing.assert_array_equal(decode(source), source.sum(axis=1) + bias)
    assert decoder.traces == 1
