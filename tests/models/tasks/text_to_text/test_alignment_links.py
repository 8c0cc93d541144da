"""Links of words or characters become links of tokens, and supervise the attention."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as text

from regard.components.settings.data import DataConfig
from regard.models import tasks
from regard.models.metrics.attention import _unit_of_tokens
from regard.models.seq2seq import shift
from regard.models.settings.training import TrainingConfig
from regard.models.settings.word_alignments import AlignmentLinksConfig
from regard.models.tasks.text_to_text.settings import TextPreprocessingConfig, TextToTextModelConfig
from tests.marks import slow
from tests.models.tasks.task_parts import as_rows
from tests.models.tasks.tokenizers import trained
from tests.models.tensors import train

LINES = ["the house is small", "a house is big", "das Haus ist klein", "ein Haus ist groß"]
SOURCES = ["the house is small", "", "the xyz7 house"]
TARGETS = ["das Haus ist klein", "ein Haus", "Haus qq"]
LINKS = ["0-0 1-1 2p2 3-3", "", "1-1  2-0 0-0 9-0"]


def create_tokenizer(kind, size):
    model = trained(LINES, model_type=kind, vocab_size=size)
    return text.SentencepieceTokenizer(model, out_type=tf.int32)


def preprocessed(kind, size, unit="word", sparse=False):
    tokenizer = create_tokenizer(kind, size)
    settings = TextPreprocessingConfig(guided_alignment={"links": "gold", "unit": unit})
    columns = {"source": SOURCES, "target": TARGETS, "gold": LINKS}
    inputs = {name: tf.constant(values)[:, None] for name, values in columns.items()}
    if sparse:
        inputs["gold"] = tf.sparse.from_dense(inputs["gold"])
    task = tasks.get_preprocessing("translation")
    run = tf.function(
        lambda: task.transform(inputs, {"source": tokenizer, "target": tokenizer}, settings)
    )
    return tokenizer, run()


@pytest.mark.parametrize(
    ("kind", "size", "sparse"), [("word", 16, True), ("bpe", 45, False), ("char", 30, True)]
)
def test_tokens_of_linked_words_are_linked(kind, size, sparse):
    tokenizer, features = preprocessed(kind, size, sparse=sparse)
    inputs = tasks.get_network("translation").model_inputs(as_rows(features))
    lengths = [tf.reduce_sum(tf.cast(inputs[x] != 0, tf.int32), 1) for x in ("target", "source")]
    for i in range(3):
        padded = inputs["links"][i]
        matrix = padded[: lengths[0][i], : lengths[1][i]]
        assert padded.sum() == matrix.sum()
        sides = [np.append(words_of(tokenizer, x[i]), -1) for x in (SOURCES, TARGETS)]
        pairs = {tuple(map(int, link.replace("p", "-").split("-"))) for link in LINKS[i].split()}
        expected = [[(s, t) in pairs for s in sides[0]] for t in sides[1]]
        np.testing.assert_array_equal(matrix, np.array(expected, "float32"))
    assert matrix.any()


def words_of(tokenizer, sentence):
    """The word of each token, from the offsets of the tokens in the text."""
    _, _, ends = tokenizer.tokenize_with_offsets([sentence])
    prefixes = [sentence.encode()[:end].decode() for end in ends.to_list()[0]]
    return np.array([len(f"{x}.".split()) - 1 for x in prefixes], int)


def test_characters_have_the_numbers_of_the_error_rate():
    tokenizer, features = preprocessed("bpe", 45, "character")
    for side, values in (("source", SOURCES), ("target", TARGETS)):
        for sentence, numbers in zip(values, features[f"{side}_units"].to_list(), strict=True):
            tokenizer.out_type = tf.string
            pieces = [piece.decode() for piece in tokenizer.tokenize(sentence).numpy()]
            expected = np.array(_unit_of_tokens(pieces, "character")[0], int).clip(0)
            assert numbers == expected.tolist()


@pytest.mark.parametrize("copies", [False, True])
def test_adjacent_unknown_words_do_not_shift_links(copies):
    """SentencePiece joins them to one token, which a model that copies splits again."""
    tokenizer = create_tokenizer("word", 16)
    columns = {"source": "the qq zz house", "target": "Haus ww vv ist", "gold": "3-0 0-3 2-2"}
    settings = TextPreprocessingConfig(copies=copies, guided_alignment={"links": "gold"})
    features = tasks.get_preprocessing("translation").transform(
        {name: tf.constant([[value]]) for name, value in columns.items()},
        {"source": tokenizer, "target": tokenizer},
        settings,
    )
    inputs = tasks.get_network("translation").model_inputs(as_rows(features))
    assert inputs["links"].shape == (1, inputs["target"].shape[1], inputs["source"].shape[1])
    links = np.argwhere(inputs["links"][0].T).tolist()
    assert links == ([[0, 3], [2, 2], [3, 0]] if copies else [[0, 2], [2, 0]])


def test_without_the_setting_there_are_no_links():
    tokenizer = create_tokenizer("word", 16)
    inputs = {"source": tf.constant([["a house"]]), "target": tf.constant([["ein Haus"]])}
    settings = TextPreprocessingConfig()
    task = tasks.get_preprocessing("translation")
    features = task.transform(inputs, {"source": tokenizer, "target": tokenizer}, settings)
    assert set(features) == {"source_ids", "target_ids", "target_lengths"}
    assert set(tasks.get_network("translation").model_inputs(as_rows(features))) == {
        "source",
        "target",
    }


def test_the_preprocessing_depends_on_column_and_unit_only():
    describe = tasks.describe("translation").preprocessing_settings
    data = DataConfig(train="a.tsv")
    guided = [{"links": "gold", "weight": weight} for weight in (0.1, 0.2)]
    one, other = (
        describe(TextToTextModelConfig(), TrainingConfig(guided_alignment=x), data) for x in guided
    )
    assert one == other
    links = {"links": "gold", "unit": "word"}
    assert one.model_dump() == {
        "copies": False,
        "tag_feature": None,
        "protect": None,
        "guided_alignment": links,
    }
    assert type(one.guided_alignment) is AlignmentLinksConfig


MODELS = {
    "luong": {"encoder": {"units": 8}, "decoder": {"type": "luong", "units": 16}},
    "bahdanau": {"encoder": {"units": 8}, "decoder": {"type": "bahdanau", "units": 16}},
    "transformer": {
        "encoder": {"type": "transformer", "layers": 2, "heads": 2, "feed_forward": 32},
        "decoder": {"type": "transformer", "layers": 2, "heads": 2, "feed_forward": 32},
    },
}


@pytest.mark.parametrize("decoder", ["bahdanau", slow("luong"), slow("transformer")])
def test_supervised_attention_follows_the_links(decoder):
    """A permutation that the targets alone do not reveal: all tokens of a row are equal."""
    random = np.random.default_rng(3)
    tokens = random.integers(4, 9, size=(32, 1)).repeat(5, axis=1)
    ids = np.pad(tokens, ((0, 0), (0, 1)), constant_values=3).astype("int32")
    links = np.zeros((32, 6, 6), "float32")
    links[:, :5, :5] = np.eye(5)[::-1]  # from right to left
    inputs = {"source": ids, "target": ids, "links": links}
    heads = {"layer": 1, "head": 2} if decoder == "transformer" else {}
    training = TrainingConfig(
        guided_alignment={"links": "gold", "weight": 1.0, **heads}, label_smoothing=0.0, seed=1
    )
    keras.utils.set_random_seed(1)
    settings = TextToTextModelConfig(embedding=16, dropout=0.0, **MODELS[decoder])
    model = tasks.get_network("translation").build(settings, training, {"source": 9, "target": 9})
    model.compile(optimizer=keras.optimizers.Adam(0.02))

    def accuracy():
        _, weights = model.decoder.unroll(shift(ids), model.encode(ids), **heads)
        chosen = np.argmax(tf.cast(weights, "float32"), axis=-1)[:, :5]
        return float((chosen == np.arange(4, -1, -1)).mean())

    assert accuracy() < 0.6
    train(model, inputs, steps=120)
    assert accuracy() > 0.9
