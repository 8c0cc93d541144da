"""The optimizer: settings, weight decay, accumulation."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.tensor_batches import epoch_dataset
from regard.models import tasks
from regard.models.tasks.text_to_text.settings import TextToTextModelConfig
from tests.components.trainer.tiny_training import TinyTask, batches, training_config
from tests.tolerances import assert_close


def compiled_model(**changes):
    training = training_config(**{"clip_norm": None, **changes})
    keras.utils.set_random_seed(3)
    model = TinyTask().build(TextToTextModelConfig(dropout=0.0), training, {})
    compile_model(model, training)
    return model


def test_settings():
    model = compiled_model(beta_1=0.8, beta_2=0.9, epsilon=1e-4, learning_rate=0.02, clip_norm=0.5)
    config = model.optimizer.get_config()
    assert (config["beta_1"], config["beta_2"], config["epsilon"]) == (0.8, 0.9, 1e-4)
    assert config["global_clipnorm"] == 0.5
    assert float(model.optimizer.learning_rate) == pytest.approx(0.02)
    assert isinstance(model.optimizer, keras.optimizers.Adam)
    assert not isinstance(model.optimizer, keras.optimizers.AdamW)


def test_weight_decay_excludes_biases():
    """With gradients of zero, AdamW's update is the decay."""
    model = compiled_model(weight_decay=0.5, learning_rate=0.1)
    assert isinstance(model.optimizer, keras.optimizers.AdamW)
    model.dense.bias.assign(np.ones(12))
    before = model.get_weights()
    zeros = [np.zeros(w.shape, "float32") for w in model.trainable_variables]
    model.optimizer.apply(zeros, model.trainable_variables)
    for weight, old in zip(model.weights, before, strict=True):
        factor = 1.0 if weight is model.dense.bias else 1 - 0.1 * 0.5
        np.testing.assert_allclose(np.array(weight), factor * old, rtol=1e-5)


RECURRENT = {"encoder": {"cell": "gru", "units": 4}, "decoder": {"type": "luong", "units": 8}}
BLOCKS = {"layers": 1, "heads": 2, "feed_forward": 8}
IMAGES = {"image": {"height": 16, "width": 16}, "encoder": {"channels": [4, 4], "units": 8}}
MODELS = [
    ("translation", {**RECURRENT, "attention": {"score": "cosine"}}),
    ("translation", {side: {"type": "transformer", **BLOCKS} for side in ("encoder", "decoder")}),
    (
        "translation",
        {
            "encoder": {"type": "convolutional", "units": 4, "layers": 1},
            "decoder": {"type": "feed_forward", "units": 8},
            "attention": {"score": {"type": "additive", "layers": 2}},
        },
    ),
    ("captioning", {**IMAGES, "decoder": {"type": "bahdanau", "units": 8}}),
    ("pointer", {"encoder": {"type": "recurrent", "units": 4}, "decoder": {"units": 8}}),
    ("similarity", {"encoder": {"units": 4}, "hidden_units": 6}),
    ("span", {"encoder": {"units": 4}, "modelling": {"units": 4}}),
]


@pytest.mark.parametrize(("task", "model"), MODELS)
def test_weights_of_model_families_without_decay(task, model):
    """The layers say the same as the list of names that the optimizer had before."""
    width = {"width": 8} if task == "pointer" else {"embedding": 8}
    config = TrainerConfig(task=task, model={**width, **model}, training={})
    sizes = dict.fromkeys(tasks.describe(task).text_features, 20)
    built = tasks.get_network(task).build(config.model, config.training, sizes)
    names = ("bias", "gamma", "beta", "temperature")
    expected = {w.path for w in built.trainable_variables if any(n in w.name for n in names)}
    assert {weight.path for weight in built.undecayed_weights()} == expected
    assert len(expected) < len(built.trainable_variables)
    assert any("temperature" in path for path in expected) == ("cosine" in str(model))


def test_accumulation_equals_the_joint_batch():
    """Also of embeddings, and of batches with unequal numbers of tokens."""
    parts = [dict(batch) for batch in epoch_dataset(batches()[0], 0).take(3)]
    parts[1] = {name: tensor[:1] for name, tensor in parts[1].items()}
    model, reference = compiled_model(gradient_accumulation_steps=3), compiled_model()
    initial = model.get_weights()
    for number, batch in enumerate(parts):
        for weight, old in zip(model.get_weights(), initial, strict=True):
            np.testing.assert_array_equal(weight, old, f"changed before batch {number}")
        model.train_step(batch)
    tokens = [int(tf.math.count_nonzero(batch["target"])) for batch in parts]
    assert len(set(tokens)) == 3
    reference.train_step({name: joined([part[name] for part in parts]) for name in parts[0]})
    assert int(model.optimizer.iterations) == 1
    for one, other in zip(model.get_weights(), reference.get_weights(), strict=True):
        assert_close(one, other)


def joined(tensors):
    """Stack the rows of batches of different lengths."""
    length = max(tensor.shape[1] for tensor in tensors)
    return tf.concat([tf.pad(x, [[0, 0], [0, length - x.shape[1]]]) for x in tensors], axis=0)
