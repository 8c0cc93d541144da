"""Raw features as dense and as sparse columns, in which rows may lack a value."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as text

from regard.models import tasks
from regard.models.tasks.preprocessing import first_values, single_values
from tests.models.tasks.task_parts import one_row
from tests.models.tasks.tokenizers import LINES, trained

PICTURES = [tf.io.encode_png(np.full((4, 6, 3), x, "uint8")).numpy() for x in (10, 200)]
# The values of two rows by feature: a text, a number, or a list of them.
TRANSLATION = {"source": ["a cat", "the dog ran"], "target": ["the mat", "home"]}
TAGS, LINKS = {"lang": ["de", "fr"]}, {"gold": ["0-0 1-1", "2-0"]}
SIMILARITY = {"first": ["a cat", "the dog"], "second": ["the mat", "home"], "score": [1.0, 4.0]}
SPAN = {
    "passage": ["a cat sat", "the dog ran"],
    "question": ["sat", "far away"],
    "answer": ["a", "dog"],
    "answer_start": [0, 4],
}
POINTS = {"points": [[0.0, 0.5, 1.0, 0.0], [0.0, 1.0, 0.5, 1.0]], "answer": [[1, 0], [0, 1]]}
CASES = {
    "translation": ("translation", {}, TRANSLATION),
    "tags": ("translation", {"tag_feature": "lang"}, TRANSLATION | TAGS),
    "copies": ("translation", {"copies": True}, TRANSLATION),
    "captioning": (
        "captioning",
        {"image": {"height": 4, "width": 6}},
        {"image": PICTURES, "caption": ["a cat", "the dog"]},
    ),
    "similarity": (
        "similarity",
        {"oov_buckets": 3, "scale": {"low": 0, "high": 5}},
        SIMILARITY,
    ),
    "span": ("span", {}, SPAN),
    "pointer": ("pointer", {"visits": "any", "normalise": True}, POINTS),
}


@pytest.fixture(scope="module")
def tokenizer():
    keras.utils.set_random_seed(4)  # it takes away the tokenizers that are there
    model = trained(LINES["source"][0], model_type="word", vocab_size=40)
    return text.SentencepieceTokenizer(model, out_type=tf.int32)


def preprocess(task, settings, rows, tokenizer, make_column):
    """Return the features and the lengths of rows, each a dictionary of lists of values."""
    preprocessing = tasks.get_preprocessing(task)
    description = preprocessing.description
    types = {feature.name: feature.kind.stored_list for feature in description.features}
    dtypes = {"bytes_list": tf.string, "float_list": tf.float32, "int64_list": tf.int64}
    columns = {}
    for name in rows[0]:
        dtype = dtypes[types.get(name, "bytes_list")]
        columns[name] = make_column(
            tf.ragged.constant([row[name] for row in rows], dtype, ragged_rank=1)
        )
    tokenizers = dict.fromkeys(description.text_features, tokenizer)
    section = description.preprocessing_section.model_validate(settings)
    features = preprocessing.transform(columns, tokenizers, section)
    lengths = preprocessing.lengths(features)
    return features, [np.asarray(row).tolist() for row in lengths]


@pytest.mark.parametrize("case", CASES)
def test_a_row_without_a_value_is_left_out_and_moves_no_other_row(case, tokenizer):
    task, settings, columns = CASES[case]
    first, last = (
        {name: np.atleast_1d(values[i]).tolist() for name, values in columns.items()}
        for i in range(2)
    )
    gaps = [first | {name: []} for name in columns]
    dense, expected = preprocess(task, settings, [first, last], tokenizer, lambda x: x.to_tensor())
    rows = [first, *gaps, last]
    sparse, lengths = preprocess(task, settings, rows, tokenizer, lambda x: x.to_sparse())
    assert all(length > 0 for row in expected for length in row)
    assert [lengths[0], lengths[-1]] == expected
    assert not any(length for row in lengths[1:-1] for length in row)
    for number, index in ((0, 0), (1, len(rows) - 1)):
        actual, complete = one_row(sparse, index), one_row(dense, number)
        assert {name: list(values) for name, values in actual.items()} == {
            name: list(values) for name, values in complete.items()
        }
    # A batch in which no row has the value.
    for gap in gaps:
        _, lengths = preprocess(task, settings, [gap] * 2, tokenizer, lambda x: x.to_sparse())
        assert not any(length for row in lengths for length in row)


def test_a_row_without_links_has_none(tokenizer):
    settings = {"guided_alignment": {"links": "gold", "unit": "word"}}
    columns = TRANSLATION | LINKS
    rows = [{name: [values[1]] for name, values in columns.items()} for _ in range(2)]
    rows[0]["gold"] = []
    features, _ = preprocess("translation", settings, rows, tokenizer, lambda x: x.to_sparse())
    assert features["links"].to_list() == [[], [2, 0]]


def test_one_value_a_row():
    dense, sparse = tf.constant([["a"], ["b"]]), tf.sparse.from_dense([["a"], ["b"]])
    for column in (dense, sparse, tf.constant(["a", "b"])):
        assert single_values({"x": column}, "x").numpy().tolist() == [b"a", b"b"]


def test_missing_values_keep_their_rows():
    texts = tf.ragged.constant([[], ["a", "b"], ["c"]])
    assert first_values(texts.to_sparse()).numpy().tolist() == [b"", b"a", b"c"]
    numbers = first_values(tf.ragged.constant([[1.5], []]).to_sparse())
    np.testing.assert_array_equal(numbers, np.array([1.5, np.nan], "float32"))
    assert first_values(tf.ragged.constant([[], [7]], tf.int64)).numpy().tolist() == [-1, 7]


@pytest.mark.parametrize("column", [tf.constant([["a", "b"]]), tf.ragged.constant([["a", "b"]])])
def test_several_values_of_a_row_are_refused(column):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="several values of the feature source"
    ):
        single_values({"source": column}, "source")
