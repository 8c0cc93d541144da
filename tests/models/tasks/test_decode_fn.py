"""Decoding during training."""

import pytest
import tensorflow as tf
import tensorflow_text as text

from regard.models.search import GreedySearch, Hypotheses
from regard.models.settings.search import BeamSearchConfig
from regard.models.vocabulary import EOS
from tests.models.tasks.task_parts import module_of
from tests.models.tasks.tokenizers import trained

SOURCES = ["a cat sat", "the dog ran", "a"]
TARGETS = ["a mat", "the dog ran far away from home", "home"]
SEARCH = BeamSearchConfig(beam_size=9, max_length_factor=1.5, max_length_offset=2)


class Echo(tf.Module):
    """Answers with the source, or once its weight has changed with nothing but its first piece."""

    def __init__(self):
        super().__init__()
        self.weights = []
        self.brief = tf.Variable(False)
        self.requested = []

    def search(self, source, search, limits):
        self.requested.append(type(search))
        self.limits = limits
        position = tf.range(tf.shape(source)[1])[None]
        brief = tf.where(position == 0, source, tf.where(position == 1, EOS, 0))
        ids = tf.where(self.brief, brief, source)[:, None]
        return Hypotheses(ids, None, None, None)


@pytest.fixture(scope="module")
def tokenizer():
    model = trained([*SOURCES, *TARGETS], vocab_size=40)
    return text.SentencepieceTokenizer(model, out_type=tf.int32)


def batch(tokenizer, texts):
    ids = tokenizer.tokenize(texts)
    return tf.concat([ids, tf.fill([len(texts), 1], EOS)], axis=1).to_tensor().numpy()


def test_hypotheses_and_references_of_a_greedy_search(tokenizer):
    model = Echo()
    decode = module_of("translation", model, {"target": tokenizer}, None, SEARCH).decode_fn()
    inputs = {"source": batch(tokenizer, SOURCES), "target": batch(tokenizer, TARGETS)}
    assert decode(inputs) == (SOURCES, [[target] for target in TARGETS])
    model.brief.assign(True)  # the weights of a training change between two calls
    firsts = [tokenizer.detokenize(tokenizer.tokenize([s])[:, :1])[0] for s in SOURCES]
    hypotheses, references = decode(inputs)
    assert hypotheses == [first.numpy().decode() for first in firsts]
    assert references == [[target] for target in TARGETS]
    assert model.requested == [GreedySearch]  # traced once


def test_limits_depend_on_the_source(tokenizer):
    model = Echo()
    tf.config.run_functions_eagerly(True)
    try:
        decode = module_of("translation", model, {"target": tokenizer}, None, SEARCH).decode_fn()
        ids = batch(tokenizer, SOURCES)
        decode({"source": ids, "target": ids})
    finally:
        tf.config.run_functions_eagerly(False)
    tokens = [len(row) for row in tokenizer.tokenize(SOURCES).to_list()]
    assert model.limits.numpy().tolist() == [int(1.5 * n) + 2 + 1 for n in tokens]
