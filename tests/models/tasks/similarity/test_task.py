"""Pairs of sentences: what is trained on, what is served, what answers while training."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as text

from regard.models import tasks
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.similarity.description import SimilarityModelConfig
from regard.models.tasks.similarity.word_tokens import split_words, word_ids
from regard.models.vocabulary import UNK
from tests.models.tasks.task_parts import (
    as_rows,
    batch_decoding,
    check_output_names,
    module_of,
    one_row,
)
from tests.models.tasks.tokenizers import trained
from tests.tolerances import assert_close

FIRST = ["a cat sat on the mat", "the dog ran", "the zebra ran away", ""]
SECOND = ["the cat sat", "a dog ran far away from home", "a zebra", "a cat"]
PREPROCESSING, NETWORK = tasks.get_preprocessing("similarity"), tasks.get_network("similarity")


@pytest.fixture
def tokenizer():
    keras.utils.set_random_seed(4)  # it takes away the tokenizers that are there
    lines = ["a cat sat on the mat", "the dog ran far away from home"]
    model = trained(lines, model_type="word", vocab_size=40)
    return text.SentencepieceTokenizer(model, out_type=tf.int32, name="first_tokenizer")


def section(**changes):
    small = {"embedding": 8, "dropout": 0.0, "oov_buckets": 7, "hidden_units": 6, "max_length": 5}
    encoder = {"encoder": {"units": 4}}
    return SimilarityModelConfig.model_validate({**small, **encoder, **changes})


def created(tokenizer, **changes):
    model = section(**changes)
    tokens = dict.fromkeys(("first", "second"), int(tokenizer.vocab_size()))
    built = NETWORK.build(model, TrainingConfig(), tokens)
    tokenizers = {"first": tokenizer, "second": tokenizer}
    served = module_of("similarity", built, tokenizers, model).served_model()
    return built, model, served


def test_unknown_words_share_a_bucket_with_themselves_only(tokenizer):
    words = split_words(tokenizer, tf.constant(["a zebra saw the okapi", "zebra"]))
    assert [w.decode() for w in words.to_list()[0]][1:3] == ["▁zebra", "▁saw"]
    ids = word_ids(tokenizer, words, 1000).to_list()
    size = int(tokenizer.vocab_size())
    assert ids[0][0] == int(tokenizer.string_to_id("▁a"))
    assert ids[0][1] == ids[1][0]
    assert size <= ids[0][1] < size + 1000
    assert ids[0][1] != ids[0][4]
    assert word_ids(tokenizer, words, 0).to_list()[0][1] == UNK


def test_preprocessing(tokenizer):
    inputs = {
        "first": tf.constant(FIRST[:2])[:, None],
        "second": tf.sparse.from_dense([[SECOND[0]], [SECOND[1]]]),
        "score": tf.constant([[1.0], [4.0]]),
    }
    model = section(scale={"low": 1.0, "high": 5.0})
    settings = NETWORK.description.preprocessing_settings(model)
    result = PREPROCESSING.transform(inputs, {"first": tokenizer, "second": tokenizer}, settings)
    assert_close(result["target"], [[0.0], [0.75]])
    assert result["first_ids"].to_list() == tokenizer.tokenize(FIRST[:2]).to_list()
    row = one_row(result, 1)
    assert PREPROCESSING.lengths(result)[1].numpy().tolist() == [7]
    inputs = NETWORK.model_inputs(as_rows(result))
    assert inputs["score"].tolist() == [0.0, 0.75]
    assert inputs["second"].dtype == np.int32
    for side in ("first", "second"):
        ids = result[f"{side}_ids"]
        assert inputs[side].tolist() == ids.to_tensor().numpy().tolist()
        nothing = {**result, f"{side}_ids": ids[:, :0]}
        assert PREPROCESSING.lengths(nothing).numpy().tolist() == [[0], [0]]
    module = module_of("similarity", tokenizers={"first": tokenizer})
    requested = module.raw_inputs(row)
    assert requested == {"first": FIRST[1].encode(), "second": SECOND[1].encode()}
    unknown = {**row, "first_ids": np.append(row["first_ids"][:1], 10**6)}
    assert module.raw_inputs(unknown)["first"] == b"the"


@pytest.mark.parametrize("cross", [None, {"units": 4, "attention": {"score": "scaled_dot"}}])
def test_served_as_the_model(tokenizer, cross, tmp_path):
    model, _, served = created(tokenizer, cross=cross, scale={"low": 1.0, "high": 5.0})
    tf.saved_model.save(served.module, str(tmp_path), signatures=served.signatures)
    loaded = tf.saved_model.load(str(tmp_path))
    align = loaded.signatures["align"]
    result = align(first=tf.constant(FIRST), second=tf.constant(SECOND))
    answer = loaded.signatures["serving_default"](
        first=tf.constant(FIRST), second=tf.constant(SECOND)
    )
    assert_close(result["similarity"], answer["similarity"])
    assert result["first_length"].numpy().tolist() == [5, 3, 4, 0]
    assert result["second_length"].numpy().tolist() == [3, 5, 2, 2]
    assert result["cut"].numpy().tolist() == [1, 2, 0, 0]
    assert result["first_pieces"][2, 1].numpy().decode() == "▁zebra"
    assert set(served.contract["signatures"]["align"]["outputs"]) == set(result)
    assert "from 1 to 5" in served.contract["about"]
    check_output_names(served.contract)
    assert ("alignment" in result) == (cross is not None)
    for row in range(len(FIRST)):
        alone = align(
            first=tf.constant(FIRST[row : row + 1]), second=tf.constant(SECOND[row : row + 1])
        )
        assert_close(alone["similarity"][0], result["similarity"][row])
        ids = [
            word_ids(
                tokenizer, split_words(tokenizer, tf.constant([side[row]]))[:, :5], 7
            ).to_tensor()
            for side in (FIRST, SECOND)
        ]
        if all(part.shape[1] for part in ids):
            inside = 1.0 + 4.0 * model.compare(*ids)["similarity"]
            assert_close(inside[0], result["similarity"][row])
    empty = align(first=tf.constant([], tf.string), second=tf.constant([], tf.string))
    assert empty["similarity"].shape == (0,)


def test_a_vector_of_one_sentence_where_there_is_one(tokenizer):
    model, _, served = created(tokenizer)
    vectors = served.signatures["embed"](tf.constant(FIRST))["vector"]
    assert vectors.shape == (4, model.depth)
    assert served.contract["signatures"]["embed"] == {
        "inputs": [{"name": "sentence", "kind": "text", "like": "first"}],
        "outputs": {"vector": [None]},
    }
    assert "embed" not in created(tokenizer, pooling="top_down")[2].signatures
    assert "embed" not in created(tokenizer, cross={"units": 4})[2].signatures


def test_answers_while_training_are_in_the_scale_of_the_data(tokenizer):
    model, settings, _ = created(tokenizer, scale={"low": 1.0, "high": 5.0})
    decode = batch_decoding("similarity", model, settings=settings)
    batch = {
        "first": np.array([[5, 6, 0], [4, 5, 6]]),
        "second": np.array([[6, 7], [8, 0]]),
        "score": np.array([0.25, 1.0]),
    }
    outputs, references = decode(batch)
    assert references == [2.0, 5.0]
    inside = model(batch)["similarity"]
    assert_close(outputs, 1.0 + 4.0 * inside.numpy())


def test_word_vectors_go_into_the_shared_embedding(tokenizer):
    model, _, _ = created(tokenizer)
    embedding, feature = NETWORK.embeddings(model, "file")
    assert (embedding.vocabulary, feature) == (int(tokenizer.vocab_size()) + 7, "first")
