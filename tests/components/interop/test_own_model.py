"""Models of the user's own, as Regard's nodes see them."""

import keras
import pytest
import tensorflow as tf

from regard.components import load_tokenizers, write_contract
from regard.core.errors import UserError
from regard.serving import saved_model
from tests.models.tasks.tokenizers import write_tokenizers


def save(folder, outputs, name="source", signature="serving_default"):
    """A SavedModel whose outputs are functions of a text."""
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name)])
    def serve(text):
        return {key: function(text) for key, function in outputs.items()}

    tf.saved_model.save(module, str(folder), signatures={signature: serve})
    return folder


def length(text):
    return -tf.cast(tf.strings.length(text), tf.float32)


def test_a_described_model_is_one_of_the_task(tmp_path):
    folder = save(tmp_path, {"translation": tf.strings.upper, "score": length})
    write_contract(folder, "translation", tags=["de"])
    model = saved_model.load(folder)
    first, second = model.predict(model.contract["detail"], [{"source": "ab"}, {"source": "c"}])
    assert (first.hypothesis, first.score) == ("AB", -2.0)
    assert (second.hypothesis, second.score) == ("C", -1.0)
    assert model.contract["tags"] == ["de"]


def test_a_model_may_have_no_score(tmp_path):
    write_contract(save(tmp_path, {"translation": tf.strings.upper}), "translation")
    model = saved_model.load(tmp_path)
    (prediction,) = model.predict("serving_default", [{"source": "ab"}])
    assert (prediction.hypothesis, prediction.score) == ("AB", None)


def test_dimensions_of_further_outputs(tmp_path):
    outputs = {
        "translation": tf.strings.upper,
        "letters": lambda text: tf.strings.bytes_split(text).to_tensor(),
        "letters_length": lambda text: tf.strings.length(text),
    }
    dimensions = {"letters": ["letters_length"], "letters_length": []}
    write_contract(save(tmp_path, outputs), "translation", dimensions)
    rows = [{"source": "a"}, {"source": "bcd"}]
    letters = [
        row.outputs["letters"]
        for row in saved_model.load(tmp_path).predict("serving_default", rows)
    ]
    assert letters == [["a"], ["b", "c", "d"]]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"signature": "other"}, "no signature 'serving_default'"),
        ({"name": "text"}, r"has the inputs text: .*expected source: "),
        ({"outputs": {"output": tf.strings.upper}}, "no output translation"),
    ],
)
def test_a_model_of_another_task_is_an_error(changes, error, tmp_path):
    save(tmp_path, **{"outputs": {"translation": tf.strings.upper}, **changes})
    with pytest.raises(UserError, match=error):
        write_contract(tmp_path, "translation")
    assert not (tmp_path / "assets.extra").exists()


@pytest.mark.parametrize("tracked", [False, True])
def test_tensorflow_serving_restores_no_variable_that_only_keras_owns(tracked, tmp_path):
    module, layer = tf.Module(), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    layer.build([1])
    if tracked:
        module.weights = [weight.value for weight in layer.weights]
    else:
        module.layer = layer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "source")])
    def serve(source):
        lengths = layer(tf.cast(tf.strings.length(source), tf.float32)[:, None])
        return {"translation": tf.strings.as_string(lengths[:, 0], precision=0)}

    tf.saved_model.save(module, str(tmp_path), signatures={"serving_default": serve})
    if tracked:
        write_contract(tmp_path, "translation")
        (prediction,) = saved_model.load(tmp_path).predict("serving_default", [{"source": "abc"}])
        assert prediction.hypothesis == "3"
    else:
        with pytest.raises(UserError, match="cannot run in TensorFlow Serving") as caught:
            write_contract(tmp_path, "translation")
        assert "w.value for w in model.weights" in caught.value.remedy


def test_an_output_without_a_batch_is_an_error(tmp_path):
    save(tmp_path, {"translation": lambda text: tf.strings.upper(text)[0]})
    with pytest.raises(UserError, match=r"has shape .* for a batch of 1"):
        write_contract(tmp_path, "translation")


def test_a_folder_without_a_model_is_an_error(tmp_path):
    with pytest.raises(UserError, match="The SavedModel does not fit"):
        write_contract(tmp_path, "translation")


def test_tokenizers_by_feature(tmp_path):
    (tmp_path / "tokenizer").mkdir()
    write_tokenizers(tmp_path / "tokenizer")
    tokenizers = load_tokenizers(str(tmp_path), "translation")
    ids = tokenizers["target"].tokenize(["eine Katze"])
    assert tokenizers["target"].detokenize(ids).numpy().tolist() == [b"eine Katze"]
    assert set(tokenizers) == {"source", "target"}
