"""Greedy decoding during training: outputs, references, and the limits of their lengths."""

from types import SimpleNamespace

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text as text

from regard.models.search import GreedySearch, Hypotheses
from regard.models.settings.search import BeamSearchConfig
from regard.models.tasks.copy_tokenizer import detokenize
from regard.models.tasks.greedy_decoding import limits_of_texts, texts_of_ids
from regard.models.vocabulary import EOS, UNK
from tests.models.tasks.task_parts import batch_decoding
from tests.models.tasks.tokenizers import trained

SOURCES = ["a cat sat", "the dog ran", "a"]
TARGETS = ["a mat", "the dog ran far away from home", "home"]
SEARCH = BeamSearchConfig(beam_size=9, max_length_factor=1.5, max_length_offset=2)


class Echo:
    """Outputs the source, and records the options of its searches."""

    def search(self, source, search, limits, longest):
        self.requested = SimpleNamespace(search=search, limits=limits.numpy(), longest=longest)
        return Hypotheses(source[:, None], None, None, None)


@pytest.fixture(scope="module")
def processor():
    model = trained([*SOURCES, *TARGETS], vocab_size=40)
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def batch(processor, texts):
    rows = [[*ids, EOS] for ids in processor.encode(texts)]
    width = max(map(len, rows)) + 1
    return np.array([row + [0] * (width - len(row)) for row in rows], "int32")


def test_outputs_references_and_limits_of_a_greedy_search(processor):
    model = Echo()
    decode = batch_decoding("translation", model, {"target": processor}, None, SEARCH)
    source = batch(processor, SOURCES)
    assert decode({"source": source, "target": batch(processor, TARGETS)}) == (SOURCES, TARGETS)
    assert type(model.requested.search) is GreedySearch
    expected = [int(1.5 * len(ids)) + 2 + 1 for ids in processor.encode(SOURCES)]
    assert model.requested.limits.tolist() == expected
    # A size of arrays, which depends on the shape only.
    assert model.requested.longest == int(1.5 * (source.shape[1] - 1)) + 2 + 1
    assert model.requested.longest >= max(expected)


@pytest.mark.parametrize("factor", [0.0, 0.3, 1.1, 1.5, 3.7])
def test_no_limit_exceeds_the_longest(factor):
    limits = limits_of_texts(factor, 5)
    for tokens in range(1, 200):
        source = np.full((1, tokens), 7)
        assert limits.of_rows(tf.constant(source)).numpy() == limits.longest(source.shape)


def test_copied_words_become_placeholders(processor):
    size = processor.vocab_size()
    ids = processor.encode("a cat")
    row = [*ids, size + 2, size, size + 2, EOS, 0]
    assert texts_of_ids(processor, np.array([row])) == ["a cat copy2 copy0 copy2"]


def test_texts_are_those_of_the_exported_tokenizer(processor):
    """Also with copied words at the start, and with unknown tokens."""
    size = processor.vocab_size()
    ids = np.random.default_rng(0).integers(4, size + 3, (50, 6)).astype("int32")
    ids[:9, 0] = size
    ids[5:20, 2] = UNK
    ids[30:, 4:] = 0
    tokenizer = text.SentencepieceTokenizer(processor.serialized_model_proto(), out_type=tf.int32)
    expected = detokenize(tokenizer, tf.ragged.boolean_mask(ids, ids != 0)).numpy()
    assert texts_of_ids(processor, ids) == [line.decode() for line in expected]
