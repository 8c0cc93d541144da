"""Images with captions: what is trained on, what is served, what answers while training."""

import io

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text as text
from PIL import Image

from regard.components.trainer.optimizer import compile_model
from regard.models import tasks
from regard.models.settings.search import BeamSearchConfig
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.captioning.description import CaptioningModelConfig
from regard.models.tasks.captioning.preprocess import encode_images
from regard.models.tasks.image_decoding import decode_images
from regard.models.tasks.served_model import EXAMPLES_SIGNATURE
from regard.models.tasks.text_preprocessing import MAX_TOKEN_CHARACTERS
from regard.models.vocabulary import EOS
from tests.marks import slow_except
from tests.models.tasks.exported import assert_equal_outputs, serialized, servable
from tests.models.tasks.task_parts import as_rows, batch_decoding, check_output_names, module_of
from tests.models.tasks.test_image_decoding import png_of
from tests.models.tasks.tokenizers import trained
from tests.models.tensors import train
from tests.tolerances import assert_close

PREPROCESSING, NETWORK = tasks.get_preprocessing("captioning"), tasks.get_network("captioning")
RANDOM = np.random.default_rng(0)
PICTURES = [
    RANDOM.integers(0, 256, size).astype("uint8") for size in [(16, 16, 3), (9, 30, 3), (40, 20, 3)]
]
PNGS = [tf.io.encode_png(picture).numpy() for picture in PICTURES]
SEARCH = {
    "type": "beam",
    "beam_size": 3,
    "max_length_factor": 0.0,
    "max_length_offset": 6,
    "min_length_factor": 0.0,
    "max_source_length": 256,
    "long_source": "truncate",
}


def tokenizer_model():
    return trained(["a red circle", "a blue square"], vocab_size=30)


@pytest.fixture
def tokenizer():
    keras.utils.set_random_seed(4)  # it takes away the tokenizers that are there
    return text.SentencepieceTokenizer(
        tokenizer_model(), out_type=tf.int32, name="caption_tokenizer"
    )


def section(**changes):
    small = {
        "image": {"height": 16, "width": 24},
        "embedding": 8,
        "dropout": 0.0,
        "encoder": {"channels": [8, 8], "units": 8},
        "decoder": {"type": "bahdanau", "units": 8},
    }
    return CaptioningModelConfig.model_validate({**small, **changes}).model_dump(mode="json")


def built(tokenizer, model, **training):
    config, settings = CaptioningModelConfig.model_validate(model), TrainingConfig(**training)
    return NETWORK.build(config, settings, {"caption": int(tokenizer.vocab_size())}), settings


def test_an_image_of_another_shape_is_stretched():
    result = decode_images(tf.constant(PNGS), 16, 24)
    assert result.shape == (3, 16, 24, 3)
    assert result.dtype == tf.uint8
    np.testing.assert_array_equal(decode_images(tf.constant(PNGS[:1]), 16, 16)[0], PICTURES[0])
    np.testing.assert_array_equal(decode_images(encode_images(result), 16, 24), result)


@pytest.mark.parametrize("kind", ["jpeg", "png", "bmp"])
def test_every_kind_of_file(kind):
    content = io.BytesIO()
    Image.new("RGB", (8, 8), (120, 120, 120)).save(content, kind)
    result = decode_images(tf.constant([content.getvalue()]), 4, 4).numpy()
    np.testing.assert_allclose(result, 120, atol=2)


def test_what_is_no_image_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode_images(tf.constant([b"no image"]), 4, 4)


def test_preprocessing_and_inputs(tokenizer):
    inputs = {
        "image": tf.constant(PNGS[:2])[:, None],
        "caption": tf.sparse.from_dense([["a red circle", "a blue"], ["a square", ""]]),
    }
    settings = NETWORK.description.preprocessing_settings(
        CaptioningModelConfig.model_validate(section())
    )
    result = PREPROCESSING.transform(inputs, {"caption": tokenizer}, settings)
    repeated = {name: tf.gather(value, [0, 0, 1]) for name, value in result.items()}
    rows = NETWORK.select_references(as_rows(repeated), np.array([0, 1, 0]))
    created = NETWORK.model_inputs(rows)
    assert created["source"].shape == (3, 16, 24, 3)
    ids = [[*tokenizer.tokenize(x).numpy(), EOS] for x in ("a red circle", "a blue", "a square")]
    np.testing.assert_array_equal(created["target"], tf.ragged.constant(ids).to_tensor())
    (first, second), (third,) = PREPROCESSING.lengths(result).to_list()
    assert [first, second, third] == [len(row) for row in ids]
    nothing = {"caption_lengths": tf.ragged.constant([[0, 2]], tf.int64), "image": [[b"png"]]}
    assert PREPROCESSING.lengths(nothing).to_list() == [[0, 3]]
    one = {name: column[1] for name, column in rows.items()}
    again = decode_images(
        tf.constant([module_of("captioning", tokenizers={}).raw_inputs(one)["image"]]), 16, 24
    )
    np.testing.assert_array_equal(again[0], created["source"][1])


DECODERS = {
    "soft": {},
    "hard": {"attention": {"alignment": "hard"}},
    "transformer": {
        "decoder": {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 8},
        "encoder": {"channels": [8, 8], "units": 12, "self_attention": True},
    },
    "no attention": {"attention": None},
}


@pytest.mark.parametrize("name", slow_except(["transformer"], DECODERS))
def test_trained_a_little_and_served(tokenizer, name, tmp_path):
    model = section(**DECODERS[name])
    penalties = {} if name == "no attention" else {"doubly_stochastic": 0.1}
    captioner, settings = built(tokenizer, model, penalties=penalties, learning_rate=0.02)
    compile_model(captioner, settings)
    pixels = decode_images(tf.constant(PNGS * 2), 16, 24)
    ids = tokenizer.tokenize(["a red circle", "a blue square", "a red square"] * 2)
    target = tf.concat([ids, tf.fill([6, 1], EOS)], 1).to_tensor()
    losses = train(captioner, {"source": pixels, "target": target}, 8)
    assert losses[-1] < losses[0]
    config = CaptioningModelConfig.model_validate(model)
    search = BeamSearchConfig(**SEARCH)
    served = module_of(
        "captioning", captioner, {"caption": tokenizer}, config, search
    ).served_model()
    tf.saved_model.save(served.module, str(tmp_path), signatures=served.signatures)
    assert servable(tmp_path)
    loaded = tf.saved_model.load(str(tmp_path))
    align = loaded.signatures["align"]
    batched = align(image=tf.constant(PNGS))
    assert set(batched) == set(served.contract["signatures"]["align"]["outputs"])
    check_output_names(served.contract)
    assert served.contract["size"] is None
    assert not tasks.describe("captioning").has_input_length
    assert {*served.contract["signatures"], EXAMPLES_SIGNATURE} == set(loaded.signatures)
    examples = tf.constant([serialized(image=[image]) for image in PNGS])
    outputs = loaded.signatures[EXAMPLES_SIGNATURE](examples=examples)
    outputs["caption"] = outputs["caption"][:, 0]
    expected = loaded.signatures["serving_default"](image=tf.constant(PNGS))
    assert_equal_outputs(outputs, expected)
    inside = served.module.align(tf.constant(PNGS))
    assert_close(batched["score"], inside["score"])
    assert batched["alignment"].shape[2:] == captioner.encoder.grid
    answer = loaded.signatures["serving_default"](image=tf.constant(PNGS))
    assert answer["caption"].numpy().tolist() == batched["caption"].numpy().tolist()
    for row in range(3):
        alone = align(image=tf.constant(PNGS[row : row + 1]))
        assert alone["caption"][0] == batched["caption"][row]
        assert_close(alone["score"][0], batched["score"][row], roundings=1000)
        length = int(batched["length"][row])
        sums = batched["alignment"][row].numpy().sum(axis=(1, 2))
        assert_close(sums[:length], 0.0 if name == "no attention" else 1.0, roundings=1000)
        np.testing.assert_array_equal(sums[length:], 0.0)
    assert align(image=tf.constant([], tf.string))["caption"].shape == (0,)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Send fewer of them at once"):
        align(image=tf.constant([png_of(8000, 8000)] * 13))
    arguments = loaded.signatures["score"](
        image=tf.constant(PNGS), caption=["a red", "", "blue " * 90]
    )
    ids = [[*tokenizer.tokenize(text).numpy(), EOS] for text in ("a red", "")]
    for row, one in enumerate(ids):
        expected = captioner.score(
            decode_images(tf.constant(PNGS[row : row + 1]), 16, 24), tf.constant([one])
        )
        assert_close(arguments["score"][row], expected[0], roundings=1000)
    sums = arguments["alignment"].numpy().sum(axis=(2, 3))
    real = np.arange(sums.shape[1])[None] < arguments["length"].numpy()[:, None]
    assert_close(sums, real * (name != "no attention"), roundings=1000)
    assert set(arguments) == set(served.contract["signatures"]["score"]["outputs"])
    characters = MAX_TOKEN_CHARACTERS * SEARCH["max_length_offset"]
    tokens = int(tokenizer.tokenize(("blue " * 90)[:characters]).shape[0])
    assert arguments["cut"].numpy().tolist() == [0, 0, tokens - SEARCH["max_length_offset"]]
    assert ("heads" in loaded.signatures) == (name == "transformer")
    if name == "transformer":
        captions = batched["caption"]
        result = loaded.signatures["heads"](image=tf.constant(PNGS), caption=captions)
        assert set(result) == set(served.contract["signatures"]["heads"]["outputs"])
        alignments = served.contract["heads"]["looks"]
        assert [attention_map["weights"] for attention_map in alignments] == [
            "cross_heads",
            "target_heads",
        ]
        assert result["cross_heads"].shape[4:] == captioner.encoder.grid
        for row, length in enumerate(result["length"].numpy()):
            sums = result["cross_heads"][row, :, :, :length].numpy().sum(axis=(-2, -1))
            assert_close(sums, 1.0, roundings=1000)


def test_answers_while_training(tokenizer):
    model = section()
    captioner, _ = built(tokenizer, model)
    search = BeamSearchConfig(**SEARCH)
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer_model())
    decode = batch_decoding("captioning", captioner, {"caption": processor}, None, search)
    pixels = decode_images(tf.constant(PNGS), 16, 24).numpy()
    ids = tokenizer.tokenize(["a red circle", "a blue square", "a red"])
    target = tf.concat([ids, tf.fill([3, 1], EOS)], 1).to_tensor().numpy()
    outputs, references = decode({"source": pixels, "target": target})
    assert references == ["a red circle", "a blue square", "a red"]
    assert len(outputs) == 3
    assert all(isinstance(text, str) for text in outputs)


def test_features_of_a_confidence(tokenizer):
    captioner, _ = built(tokenizer, section())
    config, search = CaptioningModelConfig.model_validate(section()), BeamSearchConfig(**SEARCH)
    module = module_of("captioning", captioner, {"caption": tokenizer}, config, search)
    outputs = module.features_function()(tf.constant(PNGS))
    features = outputs["features"].numpy()
    assert features.shape == (3, 4)
    assert (features[:, 0] < 0).all()
    assert ((features[:, 2:] > 0) & (features[:, 2:] <= 1 + 1e-6)).all()
    ids = tokenizer.tokenize("a red circle").numpy()
    assert module.raw_reference({"caption_ids": ids}) == "a red circle"
